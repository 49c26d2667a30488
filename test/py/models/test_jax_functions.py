"""Functions of jax.numpy, jax.scipy and jax.lax whose programs are larger than one op, against JAX."""

from __future__ import annotations

import numpy as np
import pytest
from models.agreement import check, normal

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


def integers(high: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, high, shape).astype(np.int32)


def test_order_statistics():
    """Many views of many kernels' results, read again in other kernels."""
    check(lambda x: (jnp.median(x, 0), jnp.quantile(x, 0.3, axis=1), jnp.percentile(x, 77)), normal(7, 8))


def test_searches():
    x = np.sort(normal(33))
    check(lambda x, v: (jnp.searchsorted(x, v), jnp.interp(v, x, x * x), jnp.histogram(v, bins=5)[0]), x, normal(4, 5))
    check(lambda x: jnp.unique(x, size=6, fill_value=-1), integers(5, 20))


def test_take_modes():
    def take(x, i):
        return (
            jnp.take(x, i, 1, mode="wrap"),
            jnp.take(x, i, 0, mode="clip"),
            jnp.take(x, i, 0, mode="fill"),
            x[i, :, i],
        )

    check(take, normal(5, 6, 5), np.array([-7, 0, 3, 9], np.int32))


def test_segments():
    def segments(x, i):
        return jax.ops.segment_sum(x, i, 4), jax.ops.segment_max(x, i, 4), jax.ops.segment_prod(x, i, 4)

    check(segments, normal(10, 2), integers(4, 10))


def test_pads_and_resizes():
    check(
        lambda x: (jnp.pad(x, 2, mode="reflect"), jnp.pad(x, 1, mode="edge"), jnp.pad(x, 3, mode="wrap")), normal(5, 4)
    )
    check(lambda x: jax.image.resize(x, (1, 9, 3, 2), "bilinear"), normal(1, 5, 5, 2))


def test_dense_linear_algebra():
    def solve(x):
        return jnp.linalg.cholesky(x @ x.T + 5 * jnp.eye(5)), jnp.linalg.solve(x, x[:, 0]), jnp.linalg.det(x)

    check(solve, normal(5, 5) + 3 * np.eye(5, dtype=np.float32))


def test_matrix_exponential():
    """Branches that return what they capture, in a loop."""
    check(jax.scipy.linalg.expm, normal(4, 4, scale=0.3))


def test_convolution_gradients():
    def loss(kernel, x):
        y = lax.conv_general_dilated(x, kernel, (2, 1), ((1, 2), (0, 1)), lhs_dilation=(1, 2), rhs_dilation=(2, 1))
        return (y**2).sum()

    check(jax.grad(loss, (0, 1)), normal(4, 3, 3, 3), normal(2, 3, 9, 8))


def test_pooling_gradients():
    def loss(x):
        largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        return (largest**2).sum() + (lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2).sum()

    check(jax.grad(loss), normal(1, 7, 7, 3))


def test_second_derivatives():
    check(jax.hessian(lambda x: jnp.sum(jnp.tanh(x) ** 2 * jnp.exp(-x @ x))), normal(5))


def test_associative_scan():
    check(lambda x: (lax.associative_scan(jnp.multiply, x), lax.cumlogsumexp(x)), normal(17))


def test_batched_loops():
    """Under vmap each element leaves the loop on its own."""
    check(jax.vmap(lambda x: lax.while_loop(lambda v: v < 20, lambda v: v * 1.5, jnp.abs(x))), normal(7))


def test_products_of_small_types():
    def product(a, b):
        return lax.dot_general(a, b, (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32)

    random = np.random.default_rng(0)
    check(product, *(random.integers(-128, 128, shape).astype(np.int8) for shape in ((9, 40), (40, 7))))


def test_no_elements():
    check(
        lambda x: (x[:0], jnp.concatenate([x[:0], x]), jnp.sum(x[:0]), x[:0] @ x.T, x[:, :0] @ x[:, :0].T), normal(4, 3)
    )
