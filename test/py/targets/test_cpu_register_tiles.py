"""Register tiles of contractions: sizes around the tile, kinds of elements, layouts, convolutions."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax

SIZES = list(itertools.product((2, 5, 6, 7, 13, 20), (1, 9, 64), (4, 8, 17, 50)))


@pytest.mark.parametrize("part", range(4))
def test_sizes_around_the_tile(part: int) -> None:
    sizes = [s for s in SIZES[part::4] if s[0] * s[1] * s[2] >= 100]
    scale = 8  # a batch, so that the smallest are worth a tile too
    operands = [a for m, k, n in sizes for a in (numbers((scale, m, k)), numbers((scale, k, n), seed=1))]

    def products(*xs: jnp.ndarray) -> list[jnp.ndarray]:
        return [x @ y for x, y in zip(xs[::2], xs[1::2], strict=True)]

    with_jax(products, *operands, rtol=1e-5)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (ml_dtypes.bfloat16, 2e-2), (np.float16, 2e-3)])
def test_kinds_of_elements(dtype: object, rtol: float) -> None:
    with_jax(lambda x, y: x @ y, numbers((21, 40), dtype), numbers((40, 35), dtype, seed=1), rtol=rtol)


def test_layouts() -> None:
    def products(x: jnp.ndarray, y: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return x @ y, x.T @ x, y @ y.T, jnp.einsum("ij,kj->ki", y, y), jnp.einsum("abc,cd->bad", x.reshape(4, 5, 40), y)

    with_jax(products, numbers((20, 40)), numbers((40, 35), seed=1), rtol=1e-5)


def test_convolutions() -> None:
    def convolutions(x: jnp.ndarray, w: jnp.ndarray, grouped: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        layout = ("NHWC", "HWIO", "NHWC")
        return (
            lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout),
            lax.conv_general_dilated(x, w, (2, 1), "VALID", rhs_dilation=(1, 2), dimension_numbers=layout),
            lax.conv_general_dilated(x, grouped, (1, 2), "SAME", dimension_numbers=layout, feature_group_count=2),
        )

    with_jax(convolutions, numbers((2, 9, 11, 6)), numbers((3, 3, 6, 20)), numbers((3, 3, 3, 20)), rtol=1e-5)
