"""Gather, scatter and dynamic slices: layouts, clamping, what is left out, and the order of updates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers, one


@pytest.mark.parametrize("start", (-100, -1, 0, 2, 4, 100))
@pytest.mark.parametrize("dtype", ("int32", "int64", "uint8"))
def test_dynamic_slices_are_clamped(start, dtype):
    x, at = numbers((7, 5)), np.array(start % 256 if dtype == "uint8" else start, dtype)
    agrees_with_jax(lambda x, i: lax.dynamic_slice(x, (i, i), (3, 2)), x, at)
    agrees_with_jax(lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), x, numbers((3, 2), seed=1), at)


GATHERS = {
    "rows": (((9, 4), (5, 1)), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
    "windows": (((9, 6), (2, 3, 2)), lax.GatherDimensionNumbers((1, 3), (), (0, 1)), (2, 3)),
    "one dimension of three": (((4, 9, 3), (5, 1)), lax.GatherDimensionNumbers((0, 2), (1,), (1,)), (4, 1, 2)),
    "batching": (
        ((4, 9, 3), (4, 5, 1)),
        lax.GatherDimensionNumbers((2,), (1,), (1,), operand_batching_dims=(0,), start_indices_batching_dims=(0,)),
        (1, 1, 3),
    ),
    "one element": (((9,), (1,)), lax.GatherDimensionNumbers((), (0,), (0,)), (1,)),
    "nothing": (((9, 4), (0, 1)), lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4)),
}


@pytest.mark.parametrize("name", GATHERS)
def test_gather(name):
    (operand, indices), dims, sizes = GATHERS[name]
    at = np.random.default_rng(1).integers(-3, 12, indices).astype(np.int32)
    agrees_with_jax(lambda x, i: lax.gather(x, i, dims, sizes, mode="clip"), numbers(operand), at)
    agrees_with_jax(lambda x, i: lax.gather(x, i, dims, sizes, mode="fill"), numbers(operand), at)


SCATTERS = {
    "rows": (((9, 4), (5, 1), (5, 4)), lax.ScatterDimensionNumbers((1,), (0,), (0,))),
    "elements": (((9, 4), (6, 2), (6,)), lax.ScatterDimensionNumbers((), (0, 1), (0, 1))),
    "middle dimension": (((4, 9, 3), (5, 1), (4, 5, 3)), lax.ScatterDimensionNumbers((0, 2), (1,), (1,))),
    "batching": (
        ((4, 9, 3), (4, 5, 1), (4, 5, 3)),
        lax.ScatterDimensionNumbers((2,), (1,), (1,), operand_batching_dims=(0,), scatter_indices_batching_dims=(0,)),
    ),
    "nothing": (((9, 4), (0, 1), (0, 4)), lax.ScatterDimensionNumbers((1,), (0,), (0,))),
}


@pytest.mark.parametrize("name", SCATTERS)
@pytest.mark.parametrize("body", (lax.scatter_add, lax.scatter_mul, lax.scatter_max, lax.scatter))
def test_scatter(name, body):
    (operand, indices, updates), dims = SCATTERS[name]
    at = np.random.default_rng(1).integers(-3, 12, indices).astype(np.int32)
    x, u = numbers(operand, np.float64), numbers(updates, np.float64, seed=2)
    agrees_with_jax(lambda x, i, u: body(x, i, u, dims, mode="drop"), x, at, u, rtol=1e-13)


def test_updates_of_one_place_come_in_order():
    text = """
      %r = "stablehlo.scatter"(%a, %b, %c) ({
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %ten = stablehlo.constant dense<10> : tensor<i32>
          %m = stablehlo.multiply %x, %ten : tensor<i32>
          %s = stablehlo.add %m, %y : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
            scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
        : (tensor<3xi32>, tensor<5x1xi32>, tensor<5xi32>) -> tensor<3xi32>"""
    at, updates = np.array([[1], [2], [1], [7], [1]], np.int32), np.array([1, 2, 3, 4, 5], np.int32)
    got = one(
        text, "tensor<3xi32>, tensor<5x1xi32>, tensor<5xi32> -> tensor<3xi32>", np.zeros(3, np.int32), at, updates
    )
    assert got.tolist() == [0, 135, 2]


def test_gradient_of_an_embedding():
    table, at = numbers((11, 3), np.float64), np.array([3, 3, 0, 10, 3])
    agrees_with_jax(jax.grad(lambda t, i: jnp.sum(jnp.tanh(t[i]))), table, at, rtol=1e-13)


def test_numpy_indexing():
    x = numbers((5, 6, 7), np.float64)
    agrees_with_jax(lambda x: (x[:, [0, 3, 5]], x[[1, 2], :, [0, 6]], x.at[1:3, ::2].set(0), x[::-1, -1]), x)
