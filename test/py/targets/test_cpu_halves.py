"""Vectors of bf16 that share words: every length, every value, past the caches and beside what cannot share."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from targets import vectorised

from stablehlo_py import Options, compile

BF16 = ml_dtypes.bfloat16
CHAIN = """
func.func @main(%x: tensor<{n}xbf16>, %y: tensor<{n}xbf16>) -> (tensor<{n}xbf16>, tensor<{n}xbf16>) {{
  %0 = stablehlo.add %x, %y : tensor<{n}xbf16>
  %1 = stablehlo.multiply %0, %x : tensor<{n}xbf16>
  return %0, %1 : tensor<{n}xbf16>, tensor<{n}xbf16>
}}
"""
# neither what is read as floats nor what counts its steps shares words
BESIDE = """
func.func @main(%x: tensor<{n}xbf16>, %y: tensor<{n}xf32>) -> (tensor<{n}xbf16>, tensor<{n}xf32>) {{
  %0 = stablehlo.iota dim = 0 : tensor<{n}xbf16>
  %1 = stablehlo.multiply %0, %x : tensor<{n}xbf16>
  %2 = stablehlo.convert %x : (tensor<{n}xbf16>) -> tensor<{n}xf32>
  %3 = stablehlo.multiply %2, %y : tensor<{n}xf32>
  return %1, %3 : tensor<{n}xbf16>, tensor<{n}xf32>
}}
"""
ROWS = """
func.func @main(%x: tensor<{rows}x{n}xbf16>) -> (tensor<{rows}xbf16>, tensor<{rows}x{n}xbf16>) {{
  %least = stablehlo.constant dense<0xFF80> : tensor<bf16>
  %0 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
    : (tensor<{rows}x{n}xbf16>, tensor<bf16>) -> tensor<{rows}xbf16>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<{rows}xbf16>) -> tensor<{rows}x{n}xbf16>
  %2 = stablehlo.subtract %x, %1 : tensor<{rows}x{n}xbf16>
  return %0, %2 : tensor<{rows}xbf16>, tensor<{rows}x{n}xbf16>
}}
"""


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(np.float32).astype(BF16)


def words(x: np.ndarray) -> np.ndarray:
    """The bits, every NaN the same."""
    return np.where(np.isnan(x), np.uint16(0x7FC0), x.view(np.uint16))


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("n", [1, 15, 16, 31, 32, 33, 61, 64, 96, 100, 1000, 4099])
def test_every_length(n: int) -> None:
    vectorised.check(CHAIN.format(n=n), numbers(n), numbers(n)[::-1].copy(), vectors=False)
    y = np.arange(n, dtype=np.float32)
    vectorised.check(BESIDE.format(n=n), numbers(n), y, vectors=False)


@pytest.mark.usefixtures("cpu")
def test_every_value() -> None:
    n = 1 << 16
    x = np.arange(n, dtype=np.uint32).astype(np.uint16).view(BF16)
    y = x[np.random.default_rng(1).permutation(n)]
    with np.errstate(all="ignore"):
        total = (x.astype(np.float32) + y.astype(np.float32)).astype(BF16)
        wanted = total, (total.astype(np.float32) * x.astype(np.float32)).astype(BF16)
    for result, right in zip(compile(CHAIN.format(n=n), cache=False)(x, y), wanted, strict=True):
        np.testing.assert_array_equal(words(result), words(right))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [6_000_000, 6_000_017])
def test_past_the_caches(n: int, threads: int) -> None:
    x = np.resize(numbers(4096), n)
    y = np.resize(numbers(4097), n)
    results = compile(CHAIN.format(n=n), cache=False, options=Options(threads=threads))(x, y)
    total = (x.astype(np.float32) + y.astype(np.float32)).astype(BF16)
    np.testing.assert_array_equal(words(results[0]), words(total))
    product = (total.astype(np.float32) * x.astype(np.float32)).astype(BF16)
    np.testing.assert_array_equal(words(results[1]), words(product))


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("n", [1, 33, 96, 130])
@pytest.mark.parametrize("rows", [3, 67])
def test_rows(rows: int, n: int) -> None:
    x = numbers(rows, n)
    x[0, -1], x[1], x[2, 0] = np.nan, -np.inf, np.inf
    vectorised.check(ROWS.format(rows=rows, n=n), x, vectors=False)
