"""Another CPU's code, run here: it is that CPU's code, its instructions do what theirs do, and nothing of it stays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.targets.cpus import host
from stablehlo_py.testing import other_cpu

pytestmark = pytest.mark.skipif(
    "+avx2" not in other_cpu.HERE[1], reason="stands in for others only where there is AVX2"
)
PRODUCT = """func.func @main(%a: tensor<32x200x{t}>, %b: tensor<200x33x{t}>) -> tensor<32x33x{out}> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<32x200x{t}>, tensor<200x33x{t}>) -> tensor<32x33x{out}>
  return %0 : tensor<32x33x{out}>
}}"""


@pytest.mark.parametrize(
    ("cpu", "element", "dtype", "out", "instruction"),
    [
        ("znver4", "bf16", ml_dtypes.bfloat16, "f32", "avx512bf16.dpbf16ps.512"),
        ("znver4", "i8", np.int8, "i32", "avx512.vpdpbusd.512"),
        ("znver4", "ui8", np.uint8, "i32", "avx512.vpdpwssd.512"),
        ("skylake-avx512", "i8", np.int8, "i32", "avx512.pmaddw.d.512"),
        ("sapphirerapids", "bf16", ml_dtypes.bfloat16, "f32", "x86.tdpbf16ps"),
        ("sapphirerapids", "i8", np.int8, "i32", "x86.tdpbssd"),
        ("sapphirerapids", "ui8", np.uint8, "i32", "x86.tdpbuud"),
    ],
)
def test_instructions(cpu: str, element: str, dtype: type, out: str, instruction: str) -> None:
    if other_cpu.is_here(cpu):
        pytest.skip("the host's own instructions")
    low, text = 0 if element == "ui8" else -128, PRODUCT.format(t=element, out=out)
    a, b = (np.random.default_rng(n).integers(low, 128, (32, 200) if n else (200, 33)) for n in (1, 0))
    before = host(), stablehlo_py.compile(text, cache=False).as_text("llvm-ir")
    with other_cpu.as_cpu(cpu):
        assert host() != before[0]
        executable = stablehlo_py.compile(text, cache=False)
        assert instruction in executable.as_text("llvm-ir")
    assert (host(), stablehlo_py.compile(text, cache=False).as_text("llvm-ir")) == before
    np.testing.assert_array_equal(executable(a.astype(dtype), b.astype(dtype))[0], a @ b)
