"""reduce: any dimensions, bodies of several ops and operands, kinds of elements."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference

from stablehlo_py import compile


def test_any_dimensions() -> None:
    dims = [d for count in range(5) for d in itertools.combinations(range(4), count)]

    def sums(x: jnp.ndarray) -> list[jnp.ndarray]:
        return [lax.reduce(x, jnp.float32(0), lax.add, d) for d in dims]

    with_jax(sums, numbers((3, 4, 1, 5)), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.int8, np.uint16, np.int64, np.bool_, np.float16, np.complex64])
def test_reducers(dtype: object) -> None:
    def reductions(x: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        if x.dtype == jnp.bool_:
            return jnp.all(x, 0), jnp.any(x, 1)
        if jnp.issubdtype(x.dtype, jnp.complexfloating):
            return jnp.sum(x, 0), jnp.prod(x, 1)
        return jnp.sum(x, 0), jnp.max(x, 1), jnp.min(x), jnp.prod(x, (0, 1))

    exact = np.dtype(dtype).kind in "iub"
    with_jax(reductions, numbers((4, 7), dtype), rtol=0.0 if exact else 2e-3 if dtype == np.float16 else 1e-6)


def test_argmax_and_nan() -> None:
    x = numbers((5, 9))
    x[1, 3] = x[1, 7] = 9.0
    x[2, 5] = np.nan

    def places(x: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return jnp.argmax(x, 1), jnp.argmin(x, 0), jnp.argmax(x), jnp.max(x, 1)

    with_jax(places, x)


def test_nothing_to_reduce() -> None:
    def reductions(x: jnp.ndarray, none: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return jnp.sum(none, 1), jnp.sum(none, 0), jnp.prod(none), lax.reduce(x, jnp.float32(2), lax.mul, (0,))

    with_jax(reductions, numbers((3, 1)), numbers((3, 0)))


def test_two_operands_of_one_type() -> None:
    """A sum and a maximum at once; both accumulators start from the same value."""
    text = """
    func.func @main(%x: tensor<3x7xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0:2 = stablehlo.reduce(%x init: %zero), (%x init: %zero) across dimensions = [1]
          : (tensor<3x7xf32>, tensor<3x7xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
        reducer(%a: tensor<f32>, %b: tensor<f32>) (%c: tensor<f32>, %d: tensor<f32>) {
          %sum = stablehlo.add %a, %b : tensor<f32>
          %max = stablehlo.maximum %c, %d : tensor<f32>
          stablehlo.return %sum, %max : tensor<f32>, tensor<f32>
        }
      return %0#0, %0#1 : tensor<3xf32>, tensor<3xf32>
    }"""
    x = numbers((3, 7))
    got = with_reference(text, x, rtol=1e-6)
    np.testing.assert_array_equal(got[1], np.maximum(x.max(1), 0))


def test_small_floats_are_accumulated_in_f32() -> None:
    import stablehlo_py

    text = """
    func.func @main(%x: tensor<1000xbf16>) -> tensor<bf16> {
      %zero = stablehlo.constant dense<0.0> : tensor<bf16>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<1000xbf16>, tensor<bf16>) -> tensor<bf16>
      return %0 : tensor<bf16>
    }"""
    (got,) = stablehlo_py.compile(text)(np.ones(1000, ml_dtypes.bfloat16))
    assert got == 1000  # in bf16 the sum would stop at 256


def test_starts_from_another_reduction() -> None:
    """Both may share a kernel; the second one's loop then comes after the first one's."""
    text = """
    func.func @main(%x: tensor<3x5xf32>) -> (tensor<f32>, tensor<3xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0, 1]
        : (tensor<3x5xf32>, tensor<f32>) -> tensor<f32>
      %1 = stablehlo.negate %0 : tensor<f32>
      %2 = stablehlo.reduce(%x init: %1) applies stablehlo.maximum across dimensions = [0, 1]
        : (tensor<3x5xf32>, tensor<f32>) -> tensor<f32>
      %3 = stablehlo.reduce(%x init: %2) applies stablehlo.maximum across dimensions = [1]
        : (tensor<3x5xf32>, tensor<f32>) -> tensor<3xf32>
      return %2, %3 : tensor<f32>, tensor<3xf32>
    }"""
    x = -np.arange(1, 16, dtype=np.float32).reshape(3, 5)
    total, rows = (np.asarray(r) for r in compile(text, cache=False)(x))
    assert total == 120
    np.testing.assert_array_equal(rows, [120] * 3)
