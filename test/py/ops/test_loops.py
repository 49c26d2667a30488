"""Loops whose bodies use what does not change in them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from ops.agree import numbers, with_jax


def test_products_that_do_not_change() -> None:
    def steps(x: jnp.ndarray, w: jnp.ndarray, n: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        def body(i: jnp.ndarray, state: tuple[jnp.ndarray, ...]) -> tuple[jnp.ndarray, ...]:
            y, w = state
            return jnp.tanh(y @ (w.T @ w + 1) + w.sum(0)), w

        y, w = lax.fori_loop(0, n, body, (x, w))
        return y, w, y @ w

    for n in (0, 1, 3):
        with_jax(steps, numbers((2, 5)), numbers((5, 5)), np.int32(n), rtol=1e-5)


def test_loops_in_loops() -> None:
    def steps(x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        def inner(y: jnp.ndarray, z: jnp.ndarray) -> jnp.ndarray:
            return lax.fori_loop(0, 3, lambda _, y: jnp.sin(y @ w.T) + (z @ w).sum(), y)

        return lax.scan(lambda y, z: (inner(y, z), y), x, numbers((4, 5)))[0]

    with_jax(steps, numbers((2, 5)), numbers((5, 5)) * np.float32(0.3), rtol=1e-5)


def test_a_carried_value_that_changes_places() -> None:
    def steps(a: jnp.ndarray, b: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return lax.fori_loop(0, 5, lambda _, ab: (ab[1], ab[0]), (a, b))

    with_jax(steps, numbers((3,)), numbers((3,), seed=1))


def test_gradient_of_a_scan() -> None:
    def loss(w: jnp.ndarray, xs: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(lax.scan(lambda h, x: (jnp.tanh(h @ w + x), h), jnp.zeros(5), xs)[1])

    with_jax(jax.grad(loss), numbers((5, 5)), numbers((7, 5)), rtol=1e-5)
