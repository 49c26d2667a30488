"""Transpositions large enough to be tiled: every permutation, elements of every width."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from ops.agree import numbers, with_jax


def test_every_permutation_of_four_dimensions() -> None:
    orders = list(itertools.permutations(range(4)))
    with_jax(lambda x: [jnp.transpose(x, order) for order in orders], numbers((5, 18, 7, 35)))


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.bfloat16, np.float64, np.complex128, np.bool_])
def test_elements_of_every_width(dtype: object) -> None:
    with_jax(lambda x: (x.T, jnp.transpose(x.reshape(7, 11, 67), (2, 1, 0))), numbers((77, 67), dtype))
