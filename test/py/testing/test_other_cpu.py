"""Another CPU's code, run here: it is that CPU's code, its instructions do what theirs do, and nothing of it stays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py import Options
from stablehlo_py.targets.cpus import host
from stablehlo_py.targets.machine_code import CodegenOptions
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


ROWS = """func.func @main(%x: tensor<9x200x{t}>) -> (tensor<9x{t}>, tensor<9x{t}>, tensor<9x200x{t}>) {{
  %least = stablehlo.constant dense<{least}> : tensor<{t}>
  %most = stablehlo.constant dense<{most}> : tensor<{t}>
  %0 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
    : (tensor<9x200x{t}>, tensor<{t}>) -> tensor<9x{t}>
  %1 = stablehlo.reduce(%x init: %most) applies stablehlo.minimum across dimensions = [1]
    : (tensor<9x200x{t}>, tensor<{t}>) -> tensor<9x{t}>
  %2 = stablehlo.exponential %x : tensor<9x200x{t}>
  return %0, %1, %2 : tensor<9x{t}>, tensor<9x{t}>, tensor<9x200x{t}>
}}"""
INFINITIES = {"f32": ("0xFF800000", "0x7F800000"), "f64": ("0xFFF0000000000000", "0x7FF0000000000000")}


@pytest.mark.parametrize(("element", "dtype", "kind"), [("f32", np.float32, "ps"), ("f64", np.float64, "pd")])
def test_steps_of_floats(element: str, dtype: type, kind: str) -> None:
    x = (np.random.default_rng(0).standard_normal((9, 200)) * 60).astype(dtype)
    x[1, 7], x[2, 8], x[3, 9] = np.nan, np.inf, -np.inf
    x[4], x[4, ::2], x[5], x[6, 10], x[7, 11] = 0.0, -0.0, -0.0, 720, -740
    least, most = INFINITIES[element]
    text = ROWS.format(t=element, least=least, most=most)
    with other_cpu.as_cpu("znver4"):
        executable = stablehlo_py.compile(text, cache=False)
        for name in ("range", "fixupimm", "scalef"):
            assert f"avx512.mask.{name}.{kind}.512" in executable.as_text("llvm-ir")
    plain = Options(codegen=CodegenOptions(cpu="x86-64-v3"))
    for found, wanted in zip(executable(x), stablehlo_py.compile(text, cache=False, options=plain)(x), strict=True):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
