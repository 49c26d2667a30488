"""convolution: random layouts, strides, dilations, paddings, groups and kinds of elements."""

from __future__ import annotations

import random
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference


@dataclass(frozen=True)
class Case:
    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    options: dict  # the keyword arguments of conv_general_dilated

    def __call__(self, x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        return lax.conv_general_dilated(x, w, **self.options)


def random_case(rng: random.Random) -> Case:
    spatial = rng.choice([0, 1, 2, 2, 3])
    feature_groups = rng.choice([1, 1, 2, 3])
    batch_groups = 1 if feature_groups > 1 else rng.choice([1, 1, 2])
    batch, features = rng.choice([1, 2]) * batch_groups, rng.choice([1, 2, 3])
    outputs = rng.choice([1, 2, 4]) * max(feature_groups, batch_groups)
    sizes = [rng.choice([3, 5, 6]) for _ in range(spatial)]
    window = [rng.choice([1, 2, 3]) for _ in range(spatial)]
    layouts = [rng.sample(range(spatial + 2), spatial + 2) for _ in range(3)]

    def laid_out(layout: list[int], dims: list[int]) -> tuple[int, ...]:
        shape = [0] * len(dims)
        for place, size in zip(layout, dims, strict=True):
            shape[place] = size
        return tuple(shape)

    return Case(
        laid_out(layouts[0], [batch, features * feature_groups, *sizes]),
        laid_out(layouts[1], [outputs, features, *window]),
        {
            "window_strides": [rng.choice([1, 2]) for _ in range(spatial)],
            "padding": [(rng.choice([-1, 0, 1, 2]), rng.choice([-1, 0, 1, 2])) for _ in range(spatial)],
            "lhs_dilation": [rng.choice([1, 1, 2]) for _ in range(spatial)],
            "rhs_dilation": [rng.choice([1, 1, 2]) for _ in range(spatial)],
            "dimension_numbers": lax.ConvDimensionNumbers(*map(tuple, layouts)),
            "feature_group_count": feature_groups,
            "batch_group_count": batch_groups,
        },
    )


@pytest.mark.parametrize("seed", range(4))
def test_any_arrangement(seed: int) -> None:
    """Against the reference interpreter: XLA reads garbage for some grouped convolutions with negative padding."""
    rng = random.Random(seed)
    cases = [random_case(rng) for _ in range(6)]
    operands = [numbers(shape, seed=n) for case in cases for n, shape in enumerate((case.lhs, case.rhs))]

    def convolutions(*xs: jnp.ndarray) -> list[jnp.ndarray]:
        return [case(x, w) for case, x, w in zip(cases, xs[::2], xs[1::2], strict=True)]

    text = jax.jit(convolutions).lower(*operands).as_text()
    with_reference(text, *operands, rtol=1e-5)


def test_gradients_of_a_convolution() -> None:
    """The gradients use reversed windows, both dilations and swapped layouts."""

    def loss(x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        y = lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jnp.sum(y * y)

    with_jax(jax.grad(loss, (0, 1)), numbers((2, 7, 6, 3)), numbers((3, 2, 3, 4)), rtol=1e-5)


def test_depthwise() -> None:
    def depthwise(x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=8)

    with_jax(depthwise, numbers((1, 5, 6, 8)), numbers((3, 3, 1, 8)), rtol=1e-5)


@pytest.mark.parametrize(("element", "rtol"), [("i32", 0.0), ("bf16", 2e-2), ("complex<f32>", 1e-5), ("f64", 1e-12)])
def test_window_reversal_on_kinds_of_elements(element: str, rtol: float) -> None:
    from stablehlo_py.core.types import element_type

    text = """
    func.func @main(%x: tensor<1x6x2xT>, %w: tensor<3x2x2xT>) -> tensor<1x4x2xT> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
        window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [1]}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x6x2xT>, tensor<3x2x2xT>) -> tensor<1x4x2xT>
      return %0 : tensor<1x4x2xT>
    }""".replace("xT>", f"x{element}>")
    dtype = element_type(element).dtype
    with_reference(text, numbers((1, 6, 2), dtype), numbers((3, 2, 2), dtype, seed=1), rtol=rtol)


def test_no_elements() -> None:
    def convolutions(x: jnp.ndarray, none: jnp.ndarray, w: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        layout = ("NWC", "WIO", "NWC")
        return (
            lax.conv_general_dilated(none, w, (1,), [(0, 0)], dimension_numbers=layout),
            lax.conv_general_dilated(x, w[:, :0], (1,), [(0, 0)], dimension_numbers=layout),
        )

    with_jax(convolutions, numbers((2, 5, 0)), numbers((0, 5, 3)), np.ones((2, 3, 4), np.float32))


@pytest.mark.parametrize("element", ["bf16", "f16"])
@pytest.mark.parametrize("per_group", [2, 4, 16])
def test_three_groups_of_small_floats(element: str, per_group: int) -> None:
    """Few places and few results in a group: lanes that run over the groups."""
    outside = 3 * per_group
    text = f"""
    func.func @main(%a: tensor<6x2x2x{element}>, %b: tensor<2x2x{outside}x{element}>) -> tensor<2x1x{outside}xf32> {{
      %0 = stablehlo.convolution(%a, %b) dim_numbers = [f, 0, b]x[0, i, o]->[b, 0, f],
        window = {{}} {{batch_group_count = 1 : i64, feature_group_count = 3 : i64}}
        : (tensor<6x2x2x{element}>, tensor<2x2x{outside}x{element}>) -> tensor<2x1x{outside}xf32>
      return %0 : tensor<2x1x{outside}xf32>
    }}"""
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16}[element]
    arrays = [numbers(shape).astype(dtype) for shape in ((6, 2, 2), (2, 2, outside))]
    with_reference(text, *arrays, rtol=1e-4)
