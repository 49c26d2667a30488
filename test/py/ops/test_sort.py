"""sort and top_k: any comparator, several operands, stable, every length."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ml_dtypes.bfloat16, np.int8, np.uint64, np.bool_])
def test_every_dimension(dtype: object) -> None:
    def sorts(x: jnp.ndarray) -> list[jnp.ndarray]:
        return [jnp.sort(x, d) for d in range(3)]

    with_jax(sorts, numbers((3, 5, 7), dtype))


def test_every_length() -> None:
    """0, 1, powers of two and their neighbours."""
    lengths = [0, 1, 2, 3, 4, 5, 8, 9, 31, 64, 100]

    def sorts(*xs: jnp.ndarray) -> list[jnp.ndarray]:
        return [jnp.sort(x) for x in xs]

    with_jax(sorts, *[numbers((n,), seed=n) for n in lengths])


def test_equal_keys_keep_their_order() -> None:
    """Two operands of one type, sorted down by the first."""
    text = """
    func.func @main(%k: tensor<50xf32>, %v: tensor<50xf32>) -> (tensor<50xf32>, tensor<50xf32>) {
      %0:2 = "stablehlo.sort"(%k, %v) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
          %before = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %before : tensor<i1>
      }) {dimension = 0 : i64, is_stable = true}
        : (tensor<50xf32>, tensor<50xf32>) -> (tensor<50xf32>, tensor<50xf32>)
      return %0#0, %0#1 : tensor<50xf32>, tensor<50xf32>
    }"""
    keys, values = np.random.default_rng(0).integers(0, 4, 50).astype(np.float32), np.arange(50, dtype=np.float32)
    got = with_reference(text, keys, values)
    order = np.argsort(-keys, kind="stable")
    np.testing.assert_array_equal(got[1], values[order])


def test_two_keys_and_a_payload() -> None:
    def sorts(a: jnp.ndarray, b: jnp.ndarray, c: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return lax.sort((a, b, c), num_keys=2)

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, (4, 33)).astype(np.int32), rng.integers(0, 3, (4, 33)).astype(np.float32)
    with_jax(sorts, a, b, numbers((4, 33)))


def test_nan_comes_last_and_zeros_are_equal() -> None:
    x = np.array([np.nan, 1, -np.inf, 0.0, -0.0, np.inf, -np.nan, -1], np.float32)
    with_jax(lambda x: (jnp.sort(x), jnp.argsort(x)), x)


@pytest.mark.parametrize(("shape", "k"), [((40,), 5), ((3, 40), 1), ((2, 3, 7), 7), ((2, 100), 80), ((4, 3), 0)])
def test_top_k(shape: tuple[int, ...], k: int) -> None:
    with_jax(lambda x: lax.top_k(x, k), np.round(numbers(shape) * 2))


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, ml_dtypes.bfloat16, np.float64])
def test_top_k_of_kinds_of_elements(dtype: object) -> None:
    with_jax(lambda x: lax.top_k(x, 4), numbers((3, 20), dtype))
