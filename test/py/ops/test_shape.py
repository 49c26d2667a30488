"""Ops that only move elements, on every kind of element."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference

DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.bool_, np.uint8, np.int64, np.complex64]
DTYPES += [ml_dtypes.float8_e4m3fn, ml_dtypes.int4]


def name(dtype: object) -> str:
    return np.dtype(dtype).name


@pytest.mark.parametrize("dtype", DTYPES, ids=name)
def test_moves_keep_every_bit(dtype: object) -> None:
    def moves(x: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return (
            jnp.transpose(x, (2, 0, 1)),
            lax.reshape(x, (2, 10, 1, 3, 2)),
            lax.slice(x, (1, 0, 2), (4, 5, 6), (2, 3, 1)),
            lax.pad(x, x[0, 0, 0], [(1, 2, 1), (-1, -2, 0), (0, -3, 2)]),
            lax.concatenate([x, x[:, :0], x[:, :2]], 1),
            lax.rev(x, (0, 2)),
        )

    with_jax(moves, numbers((4, 5, 6), dtype))


def test_broadcast_of_dimensions_of_size_one() -> None:
    def broadcasts(x: jnp.ndarray, s: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return (
            lax.broadcast_in_dim(x, (2, 4, 3, 7), (1, 3)),
            lax.broadcast_in_dim(s, (3, 0, 2), ()),
            lax.broadcast_in_dim(s, (3, 5), ()),
            lax.broadcast_in_dim(s, (), ()),
        )

    with_jax(broadcasts, numbers((4, 1)), numbers(()))


def test_broadcast_that_permutes() -> None:
    """broadcast_dimensions need not grow: here it is a transposition too."""
    text = """
    func.func @main(%x: tensor<2x3xf32>) -> (tensor<3x4x2xf32>, tensor<3x2xf32>) {
      %0 = stablehlo.broadcast_in_dim %x, dims = [2, 0] : (tensor<2x3xf32>) -> tensor<3x4x2xf32>
      %1 = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
      return %0, %1 : tensor<3x4x2xf32>, tensor<3x2xf32>
    }"""
    x = numbers((2, 3))
    got = with_reference(text, x)
    np.testing.assert_array_equal(got[1], x.T)


def test_rank_0_rank_6_and_no_elements() -> None:
    def moves(x: jnp.ndarray, one: jnp.ndarray, none: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return (
            jnp.transpose(x, (5, 1, 3, 0, 4, 2)),
            lax.reshape(x, (6, 4, 1, 5)),
            lax.reshape(one, ()),
            lax.reshape(lax.reshape(one, ()), (1, 1, 1, 1, 1, 1)),
            jnp.transpose(none, (1, 0)),
            lax.reshape(none, (7, 0, 2)),
            lax.pad(none, jnp.float32(3), [(1, 1, 0), (0, 0, 1)]),
            lax.pad(x[0, :, 0, 0, 0], jnp.float32(3), [(0, 0, 3), (-1, -1, 2)]),
            lax.pad(x[0, 0, 0, 0, :, 0], jnp.float32(3), [(-3, 7, 0)]),
            lax.rev(none, (0, 1)),
        )

    with_jax(moves, numbers((1, 2, 3, 1, 5, 4)), numbers((1, 1)), numbers((0, 3)))


PADS = [(low, high, gap) for low in (-3, -1, 0, 2) for high in (-4, -2, 0, 1) for gap in (0, 1, 2)]


def test_every_padding_of_a_row() -> None:
    length = 4
    fits = [p for p in PADS if p[0] + p[1] + length + (length - 1) * p[2] >= 0]

    def pads(x: jnp.ndarray) -> list[jnp.ndarray]:
        return [lax.pad(x, jnp.float32(9), [p]) for p in fits]

    with_jax(pads, np.arange(1, length + 1, dtype=np.float32))


def test_get_dimension_size() -> None:
    text = """
    func.func @main(%x: tensor<2x0x5xf32>) -> (tensor<i32>, tensor<i32>) {
      %0 = stablehlo.get_dimension_size %x, dim = 2 : (tensor<2x0x5xf32>) -> tensor<i32>
      %1 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x0x5xf32>) -> tensor<i32>
      return %0, %1 : tensor<i32>, tensor<i32>
    }"""
    got = with_reference(text, numbers((2, 0, 5)))
    assert [int(size) for size in got] == [5, 0]
