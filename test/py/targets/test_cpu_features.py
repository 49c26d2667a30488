"""Code for another CPU than this machine's: its vectors, its instructions, right results where they can run here."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.errors import BadOption, WrongMachine
from stablehlo_py.targets import cpus
from stablehlo_py.targets.cpu.features import host, resolved
from stablehlo_py.targets.machine_code import CodegenOptions

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
@pytest.mark.parametrize("cpu", ["x86-64", "x86-64-v2", "x86-64-v3", "haswell"])
def test_older_processors(cpu):
    executable = compiled(PROGRAM, cpu)
    assembly = executable.as_text("asm")
    assert "zmm" not in assembly
    assert ("ymm" in assembly) == (cpu in ("x86-64-v3", "haswell"))
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
    assert resolved("native", "") == host()


def for_cpu(cpu: str = "", features: str = "") -> Options:
    return Options(codegen=CodegenOptions(cpu=cpu, features=features))


@pytest.mark.parametrize(
    "cpu, features, said",
    [
        ("skylak", "", "LLVM knows no CPU 'skylak' of this machine's kind\n  hint: did you mean 'skylake'"),
        ("unheard-of", "", "LLVM knows no CPU 'unheard-of' of this machine's kind\n  hint: 'native' is"),
        ("", "+avx51f", "LLVM knows no feature 'avx51f' of this machine's kind\n  hint: did you mean 'avx512f'"),
        ("", "avx2", "feature 'avx2' has no sign\n  hint: write [+]avx2"),
    ],
)
@pytest.mark.skipif(not host()[1].count("+sse2"), reason="names processors of x86-64")
def test_a_name_that_llvm_does_not_know(cpu, features, said, capfd):
    with pytest.raises(BadOption, match=said):
        stablehlo_py.compile(PROGRAM, options=for_cpu(cpu, features))
    assert capfd.readouterr().err == ""


def test_a_call_on_a_machine_that_lacks_instructions(monkeypatch):
    absent = next((name[1:] for name in host()[1].split(",") if name.startswith("-avx")), None)
    if absent is None:
        pytest.skip("this machine has all that LLVM knows")
    executable = stablehlo_py.compile(PROGRAM, cache=False, options=for_cpu(features=f"+avx2,+{absent}"))
    assert executable.as_text("asm")
    x, y = np.zeros((33, 70), np.float32), np.zeros((70, 65), np.float32)
    with pytest.raises(WrongMachine, match=f"compiled for a CPU with {absent}, which this machine does not have"):
        executable(x, y)


def test_what_a_machine_lacks_of_a_named_cpu(monkeypatch):
    monkeypatch.setattr(cpus, "host", lambda: ("haswell", "+sse2,+avx2,+fma,-avx512f,-avx512vl,-gfni,-sse4a"))
    assert cpus.missing("znver2", "") == "sse4a"
    assert cpus.missing("icelake-server", "") == "avx512f, avx512vl, gfni"
    assert cpus.missing("icelake-server", "-gfni,+sse4a") == "avx512f, avx512vl, sse4a"
    assert cpus.missing("", "+avx2,+prefer-256-bit") == ""
    assert cpus.missing("x86-64-v3", "") == cpus.missing("haswell", "") == cpus.missing("", "") == ""
    assert cpus.missing("knl", "") == "instructions of knl that are not known here"


@pytest.mark.skipif("f16c" not in host()[1], reason="the CPU without them is an x86-64")
def test_halves_on_a_cpu_without_instructions_for_them():
    text = """func.func @main(%x: tensor<70xf16>) -> tensor<70xf16> {
      %0 = stablehlo.multiply %x, %x : tensor<70xf16>
      return %0 : tensor<70xf16>
    }"""
    x = np.linspace(-3, 300, 70).astype(np.float16)
    found = stablehlo_py.compile(text, cache=False, options=Options(codegen=CodegenOptions(cpu="x86-64")))(x)[0]
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, x * x)
