"""Code for another CPU than this machine's: its vectors, its instructions, right results where they can run here."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.targets.cpu.codegen import CodegenOptions
from stablehlo_py.targets.cpu.features import host, resolved

PROGRAM = """
func.func @main(%x: tensor<33x70xf32>, %y: tensor<70x65xf32>) -> (tensor<33x65xf32>, tensor<70x33xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<33x70xf32>, tensor<70x65xf32>) -> tensor<33x65xf32>
  %1 = stablehlo.tanh %0 : tensor<33x65xf32>
  %2 = stablehlo.transpose %x, dims = [1, 0] : (tensor<33x70xf32>) -> tensor<70x33xf32>
  return %1, %2 : tensor<33x65xf32>, tensor<70x33xf32>
}
"""
BF16 = PROGRAM.replace("f32", "bf16")


def compiled(text: str, cpu: str):
    return stablehlo_py.compile(text, cache=False, options=Options(codegen=CodegenOptions(cpu=cpu)))


@pytest.mark.skipif("+avx2" not in host()[1], reason="code for other x86-64 processors runs on x86-64 only")
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "znver2", "haswell"])
def test_older_processors(cpu):
    executable = compiled(PROGRAM, cpu)
    assembly = executable.as_text("asm")
    assert "zmm" not in assembly
    assert ("ymm" in assembly) == (cpu in ("znver2", "haswell"))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(33, 70)).astype(np.float32), rng.normal(size=(70, 65)).astype(np.float32)
    product, transposed = executable(x, y)
    np.testing.assert_allclose(product, np.tanh(x.astype(np.float64) @ y), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(transposed, x.T)


@pytest.mark.skipif(not host()[1].count("+sse2"), reason="names processors of x86-64")
@pytest.mark.parametrize("text", [PROGRAM, BF16], ids=["f32", "bf16"])
@pytest.mark.parametrize("cpu", ["x86-64", "znver2", "skylake-avx512", "znver4"])
def test_code_is_made_for_any_processor(cpu, text):
    """What this machine has and the other has not would make LLVM abort; what runs where is not asked here."""
    assembly = compiled(text, cpu).as_text("asm")
    assert ("zmm" in assembly) == (cpu in ("skylake-avx512", "znver4"))
    assert "vdpbf16ps" not in assembly or (cpu, text) == ("znver4", BF16)


def test_the_hosts_own_processor():
    assert resolved("", "") == resolved(host()[0], "") == host()
    assert resolved("", "+avx2") == (host()[0], "+avx2")
    assert resolved("unheard-of", "") == ("unheard-of", "")
