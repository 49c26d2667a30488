"""Loops over vectors compute what scalar loops do: bit for bit, sums aside; every remainder, every width."""

from __future__ import annotations

import numpy as np
import pytest
from targets import vectorised

from stablehlo_py import Options, compile

ELEMENTWISE = """
func.func @main(%x: tensor<3x{n}x{ty}>, %y: tensor<{n}x{ty}>, %m: tensor<3x{ty}>) -> tensor<3x{n}x{ty}> {{
  %y3 = stablehlo.broadcast_in_dim %y, dims = [1] : (tensor<{n}x{ty}>) -> tensor<3x{n}x{ty}>
  %m3 = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<3x{ty}>) -> tensor<3x{n}x{ty}>
  %0 = stablehlo.multiply %x, %y3 : tensor<3x{n}x{ty}>
  %1 = stablehlo.subtract %0, %m3 : tensor<3x{n}x{ty}>
  %2 = stablehlo.compare LT, %1, %x : (tensor<3x{n}x{ty}>, tensor<3x{n}x{ty}>) -> tensor<3x{n}xi1>
  %3 = stablehlo.maximum %1, %y3 : tensor<3x{n}x{ty}>
  %4 = stablehlo.select %2, %3, %x : tensor<3x{n}xi1>, tensor<3x{n}x{ty}>
  return %4 : tensor<3x{n}x{ty}>
}}
"""
ROWS = """
func.func @main(%x: tensor<5x{n}x{ty}>) -> tensor<5x{n}x{ty}> {{
  %start = stablehlo.constant dense<{start}> : tensor<{ty}>
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.{op} across dimensions = [1]
    : (tensor<5x{n}x{ty}>, tensor<{ty}>) -> tensor<5x{ty}>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<5x{ty}>) -> tensor<5x{n}x{ty}>
  %2 = stablehlo.subtract %x, %1 : tensor<5x{n}x{ty}>
  return %2 : tensor<5x{n}x{ty}>
}}
"""
POSITIONS = """
func.func @main(%x: tensor<4x{n}xf32>) -> tensor<4x{n}xf32> {{
  %zero = stablehlo.constant dense<-1.0> : tensor<4x{n}xf32>
  %0 = stablehlo.iota dim = 1 : tensor<4x{n}xi32>
  %1 = stablehlo.iota dim = 0 : tensor<4x{n}xi32>
  %2 = stablehlo.compare LE, %0, %1 : (tensor<4x{n}xi32>, tensor<4x{n}xi32>) -> tensor<4x{n}xi1>
  %3 = stablehlo.select %2, %x, %zero : tensor<4x{n}xi1>, tensor<4x{n}xf32>
  return %3 : tensor<4x{n}xf32>
}}
"""
LENGTHS = (16, 31, 64, 100, 193)
NUMBERS = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i8": np.int8}


def numbers(shape: tuple[int, ...], ty: str) -> np.ndarray:
    values = np.random.default_rng(len(shape)).standard_normal(shape) * 40
    values.flat[:: max(1, values.size // 3)] = 0.0
    if ty.startswith("f"):
        values.flat[1] = np.nan
    return values.astype(NUMBERS[ty])


def check(text: str, *arrays: np.ndarray, exact: bool = True) -> None:
    vectors = arrays[0].shape[1] * arrays[0].itemsize >= 64
    vectorised.check(text, *arrays, vectors=vectors, tolerance=None if exact else (2e-6, 1e-4))


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", NUMBERS)
def test_elementwise(ty: str) -> None:
    for n in LENGTHS:
        arrays = numbers((3, n), ty), numbers((n,), ty), numbers((3,), ty)
        check(ELEMENTWISE.format(n=n, ty=ty), *arrays)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize(
    ("op", "ty", "start"),
    [
        ("maximum", "f32", "0xFF800000"),
        ("minimum", "f64", "0x7FF0000000000000"),
        ("add", "f32", "0.0"),
        ("add", "i32", "0"),
        ("multiply", "i32", "1"),
        ("and", "i32", "-1"),
        ("xor", "i8", "0"),
    ],
)
def test_rows(op: str, ty: str, start: str) -> None:
    for n in LENGTHS:
        x = numbers((5, n), ty)
        check(ROWS.format(n=n, ty=ty, op=op, start=start), x, exact=(op, ty) != ("add", "f32"))


def test_positions() -> None:
    for n in LENGTHS:
        check(POSITIONS.format(n=n), numbers((4, n), "f32"))


def test_a_sum_of_negative_zeros() -> None:
    """The lanes start from what changes nothing: 0.0 + -0.0 would be 0.0."""
    x = np.full((5, 64), -0.0, np.float32)
    run = compile(ROWS.format(n=64, ty="f32", op="add", start="-0.0"), cache=False)
    assert np.signbit(run(x)[0]).sum() == 0  # -0.0 - -0.0
    total = """
    func.func @main(%x: tensor<5x64xf32>) -> tensor<5xf32> {
      %start = stablehlo.constant dense<-0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %start) applies stablehlo.add across dimensions = [1]
        : (tensor<5x64xf32>, tensor<f32>) -> tensor<5xf32>
      return %0 : tensor<5xf32>
    }"""
    assert np.signbit(compile(total, cache=False)(x)[0]).all()


def test_parts_compute_the_same_bits() -> None:
    """Where a launch is cut changes which steps fill no vector."""
    n = 3_000_001
    text = f"""
    func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{
      %0 = stablehlo.exponential %x : tensor<{n}xf32>
      %1 = stablehlo.divide %x, %0 : tensor<{n}xf32>
      return %1 : tensor<{n}xf32>
    }}"""
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    results = [compile(text, options=Options(threads=threads))(x)[0] for threads in (1, 2, 3)]
    for result in results[1:]:
        np.testing.assert_array_equal(result.view(np.uint32), results[0].view(np.uint32))
