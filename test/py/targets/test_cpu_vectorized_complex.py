"""Complex numbers in vectors, real and imaginary parts apart: every remainder, every width, bit for bit as the reference."""

from __future__ import annotations

import numpy as np
import pytest
from targets import vectorised

from stablehlo_py import Options, compile
from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets.cpu.emit import streaming
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.machine_code import CodegenOptions

LENGTHS = (1, 3, 4, 7, 8, 9, 31, 64, 193)
NUMBERS = {"f32": np.complex64, "f64": np.complex128}
# A row that is repeated, a number that is the same everywhere, a choice between numbers, parts, and numbers of parts.
ELEMENTWISE = """
func.func @main(%x: tensor<3x{n}xcomplex<{ty}>>, %y: tensor<{n}xcomplex<{ty}>>, %m: tensor<complex<{ty}>>)
    -> (tensor<3x{n}xcomplex<{ty}>>, tensor<3x{n}x{ty}>, tensor<3x{n}xcomplex<{ty}>>) {{
  %c = stablehlo.constant dense<(2.0, -0.5)> : tensor<3x{n}xcomplex<{ty}>>
  %y3 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<{n}xcomplex<{ty}>>) -> tensor<3x{n}xcomplex<{ty}>>
  %m3 = stablehlo.broadcast_in_dim %m, dims = [] : (tensor<complex<{ty}>>) -> tensor<3x{n}xcomplex<{ty}>>
  %0 = stablehlo.subtract %x, %m3 : tensor<3x{n}xcomplex<{ty}>>
  %1 = stablehlo.add %0, %y3 : tensor<3x{n}xcomplex<{ty}>>
  %re = stablehlo.real %1 : (tensor<3x{n}xcomplex<{ty}>>) -> tensor<3x{n}x{ty}>
  %im = stablehlo.imag %x : (tensor<3x{n}xcomplex<{ty}>>) -> tensor<3x{n}x{ty}>
  %less = stablehlo.compare LT, %re, %im : (tensor<3x{n}x{ty}>, tensor<3x{n}x{ty}>) -> tensor<3x{n}xi1>
  %turned = stablehlo.complex %im, %re : tensor<3x{n}xcomplex<{ty}>>
  %2 = stablehlo.select %less, %turned, %c : tensor<3x{n}xi1>, tensor<3x{n}xcomplex<{ty}>>
  %3 = stablehlo.select %less, %x, %m3 : tensor<3x{n}xi1>, tensor<3x{n}xcomplex<{ty}>>
  return %2, %re, %3 : tensor<3x{n}xcomplex<{ty}>>, tensor<3x{n}x{ty}>, tensor<3x{n}xcomplex<{ty}>>
}}
"""
PRODUCTS = """
func.func @main(%x: tensor<{n}xcomplex<{ty}>>, %y: tensor<{n}xcomplex<{ty}>>)
    -> (tensor<{n}xcomplex<{ty}>>, tensor<{n}xcomplex<{ty}>>, tensor<{n}x{ty}>) {{
  %0 = stablehlo.multiply %x, %y : tensor<{n}xcomplex<{ty}>>
  %1 = stablehlo.divide %x, %y : tensor<{n}xcomplex<{ty}>>
  %2 = stablehlo.abs %x : (tensor<{n}xcomplex<{ty}>>) -> tensor<{n}x{ty}>
  return %0, %1, %2 : tensor<{n}xcomplex<{ty}>>, tensor<{n}xcomplex<{ty}>>, tensor<{n}x{ty}>
}}
"""
COLUMNS = """
func.func @main(%x: tensor<{rows}x{n}xcomplex<{ty}>>) -> tensor<{n}xcomplex<{ty}>> {{
  %zero = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<{ty}>>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<{rows}x{n}xcomplex<{ty}>>, tensor<complex<{ty}>>) -> tensor<{n}xcomplex<{ty}>>
  return %0 : tensor<{n}xcomplex<{ty}>>
}}
"""


def numbers(*shape: int, ty: str, seed: int = 0, special: bool = True) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(NUMBERS[ty])
    parts = values.reshape(-1).view(values.real.dtype)
    if special:
        parts[:: max(5, parts.size // 9)] = -0.0
        parts[1 :: max(7, parts.size // 5)] = np.inf
        parts[2 :: max(11, parts.size // 5)] = np.nan
    return values


def lanes() -> int:
    """Floats in a vector of what code is made for."""
    return cpu_of(host()[1]).lanes(4)


def check(text: str, *arrays: np.ndarray, vectors: bool, exact: bool = True) -> None:
    with np.errstate(all="ignore"):
        vectorised.check(text, *arrays, vectors=vectors, tolerance=None if exact else (1e-5, 1e-6))


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", NUMBERS)
@pytest.mark.parametrize("n", LENGTHS)
def test_elementwise(n: int, ty: str) -> None:
    arrays = numbers(3, n, ty=ty), numbers(n, ty=ty, seed=1), NUMBERS[ty](0.25 - 3j)
    check(ELEMENTWISE.format(n=n, ty=ty), *map(np.asarray, arrays), vectors=n >= lanes())


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", NUMBERS)
@pytest.mark.parametrize("n", LENGTHS)
def test_products(n: int, ty: str) -> None:
    arrays = numbers(n, ty=ty), numbers(n, ty=ty, seed=1)
    check(PRODUCTS.format(n=n, ty=ty), *arrays, vectors=n >= lanes(), exact=False)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", NUMBERS)
@pytest.mark.parametrize("rows", [3, 8, 19])
@pytest.mark.parametrize("n", (9, 64))
def test_columns(n: int, rows: int, ty: str) -> None:
    """Rows are taken eight at once, those that are left one by one."""
    array = np.rint(numbers(rows, n, ty=ty, special=False) * 9)
    check(COLUMNS.format(n=n, rows=rows, ty=ty), array, vectors=n >= lanes())


@pytest.mark.parametrize("n", (4096, 5008))
def test_results_that_go_past_the_caches(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "CACHE_BYTES", 1 << 12)
    monkeypatch.setattr(streaming, "LEAST_STREAM", 1 << 10)
    text = ELEMENTWISE.format(n=n, ty="f32")
    arrays = numbers(3, n, ty="f32"), numbers(n, ty="f32", seed=1), np.asarray(np.complex64(1j))
    check(text, *arrays, vectors=True)
    assert "nontemporal" in compile(text, cache=False).as_text("llvm-ir")


@pytest.mark.parametrize("cpu", ["znver4", "x86-64"])
def test_code_for_other_machines(cpu: str) -> None:
    assembly = compile(
        PRODUCTS.format(n=100, ty="f32"), cache=False, options=Options(codegen=CodegenOptions(cpu=cpu))
    ).as_text("asm")
    assert ("zmm" in assembly) == (cpu == "znver4")
