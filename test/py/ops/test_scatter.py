"""scatter: updates inside, outside and on the edge, repeated ones, bodies of any kind."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from ops.agree import numbers, with_jax, with_reference

import stablehlo_py


def scatter(dims: str, updates: str, *, element: str = "f32", indices: str = "5x2xi32", body: str = "add") -> str:
    return f"""
    func.func @main(%x: tensor<5x4x3x{element}>, %i: tensor<{indices}>, %u: tensor<{updates}x{element}>)
        -> tensor<5x4x3x{element}> {{
      %0 = "stablehlo.scatter"(%x, %i, %u) ({{
        ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
          %1 = stablehlo.{body} %a, %b : tensor<{element}>
          stablehlo.return %1 : tensor<{element}>
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<{dims}>}}
        : (tensor<5x4x3x{element}>, tensor<{indices}>, tensor<{updates}x{element}>) -> tensor<5x4x3x{element}>
      return %0 : tensor<5x4x3x{element}>
    }}"""


INDICES = np.array([[0, 0], [1, 2], [1, 2], [-1, 3], [4, 3]], np.int32)
ROWS = "update_window_dims = [1], inserted_window_dims = [0, 1], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"
WINDOWS = "update_window_dims = [0, 2, 3], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1"


def test_rows_outside_are_dropped() -> None:
    with_reference(scatter(ROWS, "5x3"), numbers((5, 4, 3)), INDICES, numbers((5, 3), seed=1))


def test_windows_lose_only_what_is_outside() -> None:
    """Each element of an update is dropped by itself: the windows at [-1, 3] and [4, 3] reach over the edges."""
    with_reference(scatter(WINDOWS, "2x5x2x3"), numbers((5, 4, 3)), INDICES, numbers((2, 5, 2, 3), seed=1))


def test_indices_far_outside() -> None:
    indices = np.array([[2**63 - 1, 0], [-(2**63), 1], [0, 2**62], [1, 1], [-(2**62), -(2**62)]], np.int64)
    text = scatter(WINDOWS, "2x5x2x3", indices="5x2xi64")
    with_reference(text, numbers((5, 4, 3)), indices, numbers((2, 5, 2, 3), seed=1))


def test_batching_dimensions() -> None:
    dims = (
        "update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], "
        "scatter_indices_batching_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 2"
    )
    indices = np.random.default_rng(0).integers(-1, 5, (2, 5, 1)).astype(np.int32)
    text = scatter(dims, "2x5x3", indices="2x5x1xi32")
    with_reference(text, numbers((5, 4, 3)), indices, numbers((2, 5, 3), seed=1), rtol=1e-6)


@pytest.mark.parametrize("element", ["bf16", "i8", "ui64", "complex<f32>", "f64"])
@pytest.mark.parametrize("body", ["add", "multiply"])
def test_kinds_of_elements(element: str, body: str) -> None:
    from stablehlo_py.core.types import element_type

    dtype = element_type(element).dtype
    text = scatter(ROWS, "5x3", element=element, body=body)
    rtol = {"bf16": 2e-2, "complex<f32>": 1e-6}.get(element, 0.0)
    with_reference(text, numbers((5, 4, 3), dtype), INDICES, numbers((5, 3), dtype, seed=1), rtol=rtol)


def test_the_last_update_stays() -> None:
    text = scatter(ROWS, "5x3").replace("%1 = stablehlo.add %a, %b : tensor<f32>", "").replace("return %1", "return %b")
    updates = numbers((5, 3), seed=1)
    (got,) = with_reference(text, numbers((5, 4, 3)), INDICES, updates)
    np.testing.assert_array_equal(got[1, 2], updates[2])


def test_two_inputs_that_are_one_value() -> None:
    text = """
    func.func @main(%x: tensor<4xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0:2 = "stablehlo.scatter"(%x, %x, %i, %u, %u) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
          %sum = stablehlo.add %a, %c : tensor<f32>
          %max = stablehlo.maximum %b, %d : tensor<f32>
          stablehlo.return %sum, %max : tensor<f32>, tensor<f32>
      }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
          index_vector_dim = 1>}
        : (tensor<4xf32>, tensor<4xf32>, tensor<3x1xi32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4xf32>, tensor<4xf32>)
      return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
    }"""
    with_reference(text, numbers((4,)), np.array([[1], [1], [3]], np.int32), numbers((3,), seed=1))


def test_gradient_of_an_embedding() -> None:
    def loss(table: jnp.ndarray, tokens: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(table[tokens] ** 2)

    tokens = np.array([[1, 2, 1], [0, 5, 1]], np.int32)
    with_jax(jax.grad(loss), numbers((6, 4)), tokens, rtol=1e-6)


def test_updates_of_jax() -> None:
    def write(x: jnp.ndarray, i: jnp.ndarray, u: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return x.at[i].set(u), x.at[i, 1].add(1), x.at[i].max(u), x.at[i[:0]].set(u[:0]), x.at[:, 2].mul(3)

    indices = np.array([0, 4, 2], np.int32)
    with_jax(write, numbers((5, 4)), indices, numbers((3, 4), seed=1))
    with_jax(write, numbers((5, 4), ml_dtypes.bfloat16), indices, numbers((3, 4), ml_dtypes.bfloat16, seed=1))


@pytest.mark.parametrize(("window", "width"), [((512,), 512), ((6, 64), 64), ((1000,), 1000), ((300,), 512)])
def test_threads_share_a_dimension_of_the_windows(window: tuple[int, ...], width: int) -> None:
    """Many updates of few rows, some outside: each sum in the order of the updates, whatever the number of threads."""
    count, rows = 700, 5
    operand = (rows, *window[:-1], width)
    rng = np.random.default_rng(0)
    x = rng.standard_normal(operand).astype(np.float32)
    indices = rng.integers(-1, rows + 1, (count, 1)).astype(np.int32)
    updates = rng.standard_normal((count, *window)).astype(np.float32)
    sizes = {"x": operand, "i": (count, 1), "u": (count, *window)}
    x_type, u_type = (f"tensor<{'x'.join(map(str, sizes[n]))}xf32>" for n in "xu")
    dims = list(range(1, len(window) + 1))
    text = f"""
func.func @main(%x: {x_type}, %i: tensor<{count}x1xi32>, %u: {u_type}) -> {x_type} {{
  %0 = "stablehlo.scatter"(%x, %i, %u) ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
  }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {dims}, inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}}
    : ({x_type}, tensor<{count}x1xi32>, {u_type}) -> {x_type}
  return %0 : {x_type}
}}"""
    wanted = x.copy()
    for i, update in zip(indices[:, 0], updates, strict=True):
        if 0 <= i < rows:
            wanted[i][..., : window[-1]] += update
    for threads in (1, 2, 3):
        (got,) = stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=threads))(
            x, indices, updates
        )
        np.testing.assert_array_equal(got, wanted)
