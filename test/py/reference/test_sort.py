"""Sort: stability, comparators of several operands, NaN in total order, and any dimension."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from reference.judges import agrees_with_jax, numbers

from stablehlo_py.ops.evaluate.sort import merge_order


@given(st.lists(st.integers(0, 9), max_size=40))
def test_merge_order_is_the_stable_order(keys):
    row = np.array([keys], dtype=np.int64).reshape(1, len(keys))
    order = merge_order(1, len(keys), lambda r, a, b: row[r, a] < row[r, b])
    np.testing.assert_array_equal(order[0], np.argsort(row[0], kind="stable"))


@given(st.lists(st.integers(0, 9), max_size=20))
def test_a_comparator_without_order_still_permutes(keys):
    row = np.array([keys], dtype=np.int64).reshape(1, len(keys))
    order = merge_order(1, len(keys), lambda r, a, b: (row[r, a] * 7 + row[r, b] * 5) % 3 == 0)
    assert sorted(order[0].tolist()) == list(range(len(keys)))


@pytest.mark.parametrize(
    "shape,axis", [((), None), ((0,), 0), ((1,), 0), ((37,), 0), ((3, 17, 2), 1), ((2, 1, 3, 1, 5, 1), 4)]
)
def test_dimensions(shape, axis):
    if axis is not None:
        agrees_with_jax(lambda x: (jnp.sort(x, axis), jnp.argsort(x, axis)), numbers(shape))


def test_nan_and_zeros():
    x = np.array([np.nan, 1, -0.0, 0.0, -np.inf, np.inf, -np.nan, 0.0, -0.0, 1], np.float32)
    agrees_with_jax(lambda x: (jnp.argsort(x), jnp.sort(x)), x)


def test_several_keys():
    keys = [np.random.default_rng(i).integers(0, 3, (4, 29)) for i in range(3)]
    agrees_with_jax(lambda a, b, c: lax.sort((a, b, c), dimension=1, num_keys=2), *keys)


@pytest.mark.parametrize("dtype", ("float32", "int32", "uint8"))
def test_top_k(dtype):
    x = numbers((3, 23), dtype)
    agrees_with_jax(lambda x: lax.top_k(x, 5), x)
