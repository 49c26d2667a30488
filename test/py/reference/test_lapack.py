"""Factorisations that JAX leaves to LAPACK, called by name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers


@pytest.mark.parametrize("dtype", ("float32", "complex128"))
@pytest.mark.parametrize("n", (1, 5))
def test_solves(dtype, n):
    a, b = numbers((2, n, n), dtype) + 4 * np.eye(n, dtype=dtype), numbers((2, n, 3), dtype, seed=1)
    rtol = 1e-5 if dtype == "float32" else 1e-12
    agrees_with_jax(lambda a: lax.linalg.cholesky(a @ jnp.conj(a.mT)), a, rtol=rtol)
    agrees_with_jax(jnp.linalg.solve, a, b, rtol=rtol)
    agrees_with_jax(lambda a: (jnp.linalg.det(a), jnp.linalg.inv(a)), a, rtol=rtol)


@pytest.mark.parametrize("left", (True, False))
@pytest.mark.parametrize("lower", (True, False))
def test_triangular_solve(left, lower):
    a, b = numbers((4, 4), np.complex128) + 3 * np.eye(4), numbers((4, 4), np.complex128, seed=1)

    def solve(a, b):
        options = {"left_side": left, "lower": lower}
        return (
            lax.linalg.triangular_solve(a, b, **options),
            lax.linalg.triangular_solve(a, b, transpose_a=True, conjugate_a=True, **options),
            lax.linalg.triangular_solve(a, b, unit_diagonal=True, **options),
        )

    agrees_with_jax(solve, a, b, rtol=1e-12)


@pytest.mark.parametrize("shape", ((5, 3), (3, 5), (4, 4)))
def test_products_of_factors(shape):
    def back(a):
        q, r = jnp.linalg.qr(a)
        u, s, vh = jnp.linalg.svd(a, full_matrices=False)
        w, v = jnp.linalg.eigh(a @ a.T)
        return q @ r, s, (u * s) @ vh, w, (v * w) @ v.T

    agrees_with_jax(back, numbers(shape, np.float64), rtol=1e-12)
