"""The last loop of a row, run within the next row: every remainder, thread count and operand that it may depend on."""

from __future__ import annotations

import numpy as np
import pytest
from targets import vectorised

from stablehlo_py import compile

SOFTMAX = (
    "func.func @main(%x: tensor<{rows}x{n}x{ty}>) -> tensor<{rows}x{n}x{ty}> {{"
    + vectorised.NUMERATORS
    + """
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<{rows}x{ty}>) -> tensor<{rows}x{n}x{ty}>
  %6 = stablehlo.divide %3, %5 : tensor<{rows}x{n}x{ty}>
  return %6 : tensor<{rows}x{n}x{ty}>
}}"""
)
# the last loop reads what the result may stand in the memory of
CENTRED = """
func.func @main(%x: tensor<96x{n}xf32>, %y: tensor<96x{n}xf32>) -> tensor<96x{n}xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.multiply %y, %y : tensor<96x{n}xf32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<96x{n}xf32>, tensor<f32>) -> tensor<96xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<96xf32>) -> tensor<96x{n}xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<96x{n}xf32>
  %3 = stablehlo.multiply %2, %2 : tensor<96x{n}xf32>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<96x{n}xf32>, tensor<f32>) -> tensor<96xf32>
  %5 = stablehlo.broadcast_in_dim %4, dims = [0] : (tensor<96xf32>) -> tensor<96x{n}xf32>
  %6 = stablehlo.multiply %z, %5 : tensor<96x{n}xf32>
  return %6 : tensor<96x{n}xf32>
}}
"""


def numbers(rows: int, n: int, ty: str = "f32") -> np.ndarray:
    return (np.random.default_rng(n).standard_normal((rows, n)) * 5).astype({"f32": np.float32, "f64": np.float64}[ty])


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", ["f32", "f64"])
@pytest.mark.parametrize("n", [8, 61, 128])
@pytest.mark.parametrize("rows", [63, 64, 67])
def test_softmax(rows: int, n: int, ty: str) -> None:
    x = numbers(rows, n, ty)
    x[1], x[2], x[3, 1], x[4, 0] = np.nan, -np.inf, np.inf, -np.inf
    text = SOFTMAX.format(
        rows=rows, n=n, ty=ty, op="maximum", start="0xFF800000" if ty == "f32" else "0xFFF0000000000000"
    )
    vectorised.check(text, x, vectors=False, tolerance=(3e-6, 1e-30))


@pytest.mark.parametrize("n", [16, 61, 1024])
def test_rows_of_an_operand(n: int) -> None:
    x, y = numbers(96, n), numbers(96, n + 1)[:, 1:].copy()
    vectorised.check(CENTRED.format(n=n), x, y, vectors=False, tolerance=(3e-5, 1e-3))


def test_past_the_caches() -> None:
    """A result too large for the caches, wherever it stands."""
    rows, n = 4096, 1024
    x = numbers(rows, n)
    compiled = compile(SOFTMAX.format(rows=rows, n=n, ty="f32", op="maximum", start="0xFF800000"), cache=False)
    wanted = np.exp(x - x.max(1, keepdims=True), dtype=np.float64)
    wanted /= wanted.sum(1, keepdims=True)
    np.testing.assert_allclose(compiled(x)[0], wanted, rtol=1e-5)
