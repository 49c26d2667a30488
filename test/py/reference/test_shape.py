"""Ops that only move elements: pads, slices, broadcasts, reshapes and their forms with sizes known at run time."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from reference.judges import agrees_with_jax, numbers, one


def pad_by_places(x: np.ndarray, value: float, low: int, high: int, interior: int) -> np.ndarray:
    """One dimension, element by element, as the specification says it."""
    result = np.full(max(low + len(x) + max(len(x) - 1, 0) * interior + high, 0), value, x.dtype)
    for i, element in enumerate(x):
        if 0 <= low + i * (interior + 1) < len(result):
            result[low + i * (interior + 1)] = element
    return result


@given(st.integers(0, 6), st.integers(-5, 5), st.integers(-5, 5), st.integers(0, 3))
def test_pad(length, low, high, interior):
    size = low + length + max(length - 1, 0) * interior + high
    if size < 0:
        return
    x = np.arange(1, length + 1, dtype=np.int32)
    text = (
        f"%r = stablehlo.pad %a, %b, low = [{low}], high = [{high}], interior = [{interior}] "
        f": (tensor<{length}xi32>, tensor<i32>) -> tensor<{size}xi32>"
    )
    got = one(text, f"tensor<{length}xi32>, tensor<i32> -> tensor<{size}xi32>", x, np.int32(-7))
    np.testing.assert_array_equal(got, pad_by_places(x, -7, low, high, interior))


def test_moves_of_rank_six():
    x = numbers((1, 2, 1, 3, 1, 2))
    agrees_with_jax(
        lambda x: (
            x.transpose(5, 3, 1, 0, 2, 4),
            x.reshape(4, 3),
            jnp.flip(x, (1, 3)),
            lax.broadcast_in_dim(x, (1, 2, 4, 3, 5, 2), range(6)),
            x[:, :, :, ::2],
            jnp.concatenate([x, x], 3),
        ),
        x,
    )


@pytest.mark.parametrize("dtype", ("int8", "uint64", "float16", "complex64"))
def test_iota(dtype):
    agrees_with_jax(lambda: (lax.broadcasted_iota(dtype, (3, 0, 2), 0), lax.broadcasted_iota(dtype, (3, 4), 1)))


def test_sizes_known_at_run_time():
    x = np.arange(6, dtype=np.float32)
    shape = np.array([2, 3])
    two = "tensor<6xf32>, tensor<2xi64> -> tensor<?x?xf32>"
    got = one(
        "%r = stablehlo.dynamic_reshape %a, %b : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>", two, x, shape
    )
    np.testing.assert_array_equal(got, x.reshape(2, 3))
    spread = (
        "%r = stablehlo.dynamic_broadcast_in_dim %a, %b, dims = [1] : (tensor<6xf32>, tensor<2xi64>) -> tensor<?x?xf32>"
    )
    np.testing.assert_array_equal(one(spread, two, x, np.array([3, 6])), np.broadcast_to(x, (3, 6)))
    counted = one(
        "%r = stablehlo.dynamic_iota %a, dim = 1 : (tensor<2xi64>) -> tensor<?x?xi32>",
        "tensor<2xi64> -> tensor<?x?xi32>",
        shape,
    )
    assert counted.tolist() == [[0, 1, 2], [0, 1, 2]]
    one_each = "tensor<1xi64>, tensor<1xi64>, tensor<1xi64>"
    cut = f"%r = stablehlo.real_dynamic_slice %a, %b, %c, %d : (tensor<6xf32>, {one_each}) -> tensor<?xf32>"
    bounds = [np.array([n]) for n in (1, 6, 2)]
    assert one(cut, f"tensor<6xf32>, {one_each} -> tensor<?xf32>", x, *bounds).tolist() == [1, 3, 5]
    padded = (
        f"%r = stablehlo.dynamic_pad %a, %b, %c, %d, %e : (tensor<6xf32>, tensor<f32>, {one_each}) -> tensor<?xf32>"
    )
    edges = [np.array([n]) for n in (-1, 2, 1)]
    got = one(padded, f"tensor<6xf32>, tensor<f32>, {one_each} -> tensor<?xf32>", x, np.float32(9), *edges)
    np.testing.assert_array_equal(got, pad_by_places(x, 9, -1, 2, 1))
