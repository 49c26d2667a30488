"""reduce_window and select_and_scatter: windows of any kind, cumulative ones among them."""

from __future__ import annotations

import random

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference

import stablehlo_py


def random_window(rng: random.Random, rank: int) -> dict:
    return {
        "window_dimensions": [rng.choice([1, 2, 3]) for _ in range(rank)],
        "window_strides": [rng.choice([1, 2]) for _ in range(rank)],
        "padding": [(rng.choice([-1, 0, 1, 2]), rng.choice([-1, 0, 2])) for _ in range(rank)],
        "base_dilation": [rng.choice([1, 1, 2]) for _ in range(rank)],
        "window_dilation": [rng.choice([1, 1, 2]) for _ in range(rank)],
    }


@pytest.mark.parametrize("seed", range(3))
def test_any_window(seed: int) -> None:
    rng = random.Random(seed)
    options = [random_window(rng, rank) for rank in (0, 1, 2, 2, 3)]
    shapes = [(), (7,), (6, 5), (5, 6), (4, 5, 3)]

    def windows(*xs: jnp.ndarray) -> list[jnp.ndarray]:
        sums = [lax.reduce_window(x, np.float32(0), lax.add, **o) for x, o in zip(xs, options, strict=True)]
        largest = [lax.reduce_window(x, -np.float32(np.inf), lax.max, **o) for x, o in zip(xs, options, strict=True)]
        return sums + largest

    operands = [numbers(shape) for shape in shapes]
    text = jax.jit(windows).lower(*operands).as_text()
    with_reference(text, *operands, rtol=1e-6)


def test_pooling_and_its_gradient() -> None:
    def pooled(x: jnp.ndarray) -> jnp.ndarray:
        largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
        mean = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID")
        return jnp.sum(largest**2) + jnp.sum(mean**2)

    with_jax(jax.grad(pooled), numbers((2, 7, 6, 3)), rtol=1e-5)


def test_select_takes_the_first_of_equal_ones() -> None:
    def gradient(x: jnp.ndarray, dy: jnp.ndarray) -> jnp.ndarray:
        pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3, 2), (2, 1), ((1, 1), (0, 1)))  # noqa: E731
        return jax.vjp(pool, x)[1](dy)[0]

    with_jax(gradient, np.round(numbers((7, 5))), numbers((4, 5), seed=1), rtol=1e-6)


def cumulative(element: str, op: str, init: str, padding: str, window: str = "5, 1") -> str:
    return f"""
    func.func @main(%x: tensor<5x4x{element}>) -> tensor<5x4x{element}> {{
      %init = stablehlo.constant dense<{init}> : tensor<{element}>
      %0 = "stablehlo.reduce_window"(%x, %init) ({{
        ^bb0(%a: tensor<{element}>, %b: tensor<{element}>):
          %1 = stablehlo.{op} %a, %b : tensor<{element}>
          stablehlo.return %1 : tensor<{element}>
      }}) {{window_dimensions = array<i64: {window}>, padding = dense<{padding}> : tensor<2x2xi64>}}
        : (tensor<5x4x{element}>, tensor<{element}>) -> tensor<5x4x{element}>
      return %0 : tensor<5x4x{element}>
    }}"""


FORWARD, BACKWARD, ALONG_LAST = "[[4, 0], [0, 0]]", "[[0, 4], [0, 0]]", "[[0, 0], [3, 0]]"
CUMULATIVE = [
    ("i32", "add", "0", BACKWARD),
    ("ui8", "maximum", "0", BACKWARD),
    ("f32", "minimum", "0x7F800000", FORWARD),
    ("i8", "add", "1", FORWARD),  # not an identity: each window counts it as often as its padding is long
]


@pytest.mark.parametrize(("element", "op", "init", "padding"), CUMULATIVE)
def test_cumulative_windows(element: str, op: str, init: str, padding: str) -> None:
    from stablehlo_py.core.types import element_type

    with_reference(cumulative(element, op, init, padding), numbers((5, 4), element_type(element).dtype))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize(("padding", "window", "axis"), [(FORWARD, "5, 1", 0), (ALONG_LAST, "1, 4", 1)])
def test_cumulative_sums_go_up_one_by_one(dtype: type, padding: str, window: str, axis: int) -> None:
    element = "f32" if dtype is np.float32 else "bf16"
    x = numbers((5, 4), dtype)
    total = np.moveaxis(x.copy(), axis, 0)
    for i in range(1, len(total)):
        total[i] += total[i - 1]
    (got,) = stablehlo_py.compile(cumulative(element, "add", "0.0", padding, window))(x)
    np.testing.assert_array_equal(got.astype(np.float32), np.moveaxis(total, 0, axis).astype(np.float32))


def test_cumulative_sums_from_the_end() -> None:
    with_reference(cumulative("f32", "add", "0.0", BACKWARD), numbers((5, 4)), rtol=1e-6)


def test_two_operands() -> None:
    """The largest of each window and where it is."""
    text = """
    func.func @main(%x: tensor<6x5xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>) {
      %i = stablehlo.iota dim = 1 : tensor<6x5xi32>
      %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0:2 = "stablehlo.reduce_window"(%x, %i, %low, %zero) ({
        ^bb0(%a: tensor<f32>, %p: tensor<i32>, %b: tensor<f32>, %q: tensor<i32>):
          %keep = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          %value = stablehlo.select %keep, %a, %b : tensor<i1>, tensor<f32>
          %place = stablehlo.select %keep, %p, %q : tensor<i1>, tensor<i32>
          stablehlo.return %value, %place : tensor<f32>, tensor<i32>
      }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 2, 1>}
        : (tensor<6x5xf32>, tensor<6x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
      return %0#0, %0#1 : tensor<3x4xf32>, tensor<3x4xi32>
    }"""
    with_reference(text, numbers((6, 5)))
