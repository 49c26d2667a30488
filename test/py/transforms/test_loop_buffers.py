"""Where the values of a loop live: what is carried, updated in place, and read and written where it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import stablehlo_py

STEPS = 24  # more than are unrolled


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def compiled(function: Callable, *arguments: np.ndarray) -> stablehlo_py.Executable:
    module = export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module_serialized
    return stablehlo_py.compile(module, cache=False)


def check(function: Callable, *arguments: np.ndarray) -> str:
    """Compare with XLA, on one thread and on three; the listing of the Program."""
    module = export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module_serialized
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    listing = ""
    for threads in (1, 3):
        executable = stablehlo_py.compile(module, cache=False, options=stablehlo_py.Options(threads=threads))
        for _ in range(2):  # the second call finds what the first one left in the arena
            found = executable(*arguments)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        listing = executable.as_text("program")
    return listing


def body_of(listing: str) -> list[str]:
    """The commands of the first loop's body."""
    lines = listing[listing.index("      do\n") :].splitlines()[1:]
    return lines[: next(i for i, line in enumerate(lines) if line.strip().endswith(" end"))]


def test_what_was_updated_in_place_is_read_before_the_next_step() -> None:
    """The updated value stands in the carried buffer when the next one is made of it."""

    def step(i: Any, c: Any) -> Any:  # tracers
        return jnp.flip(c.at[i % 4].set(i.astype(c.dtype)), 0)

    check(lambda x: lax.fori_loop(0, STEPS, step, x), numbers(4, 4))


def test_what_is_carried_changes_where_it_is() -> None:
    """Momentum, elementwise: no copies in a step. 1037 elements: not a whole number of vectors."""

    def step(i: Any, state: Any) -> Any:  # tracers
        p, m, g = state
        m = 0.9 * m + 0.1 * g
        return p - 0.01 * m / (1 + jnp.sqrt(jnp.abs(m * p))), m, g

    listing = check(lambda *state: lax.fori_loop(0, STEPS, step, state), *(numbers(1037, seed=s) for s in range(3)))
    assert not any("copy" in line for line in body_of(listing))


@pytest.mark.parametrize("shape", [(5, 7), (64, 64), (3, 1000)])
def test_of_two_results_one_takes_the_memory(shape: tuple[int, ...]) -> None:
    def step(i: Any, state: Any) -> Any:  # tracers
        x, total = state
        a, b = jnp.sin(x), jnp.cos(x)  # one kernel reads x and makes both
        return a + b[::-1] * 0.5, total + b

    check(lambda x: lax.fori_loop(0, STEPS, step, (x, x)), numbers(*shape))


def test_what_others_still_read_stays() -> None:
    """The new value stands in the old one's memory only where each element is read at its own place, and last."""

    def turned(i: Any, x: Any) -> Any:  # tracers
        return x.T * 0.5 + x

    def shifted(i: Any, x: Any) -> Any:
        return x * 0.5 + jnp.concatenate([x[1:], x[:1]])

    def row(i: Any, x: Any) -> Any:
        return x * 0.5 + x[3]

    def read_later(i: Any, x: Any) -> Any:
        y = jnp.tanh(x)
        return jnp.tanh(y @ x) + y

    def swapped(i: Any, x: Any) -> Any:
        a, b = x[:20], x[20:]
        return jnp.concatenate([b * 0.5, a])

    for step in (turned, shifted, row, read_later, swapped):
        check(lambda x, step=step: lax.fori_loop(0, STEPS, step, x), numbers(40, 40))
    pair = lambda i, s: (s[1] * 0.5, s[0] + 1, s[0] * s[1])  # noqa: E731
    check(lambda x, y: lax.fori_loop(0, STEPS, pair, (x, y, x)), numbers(40, 40), numbers(40, 40, seed=1))


def test_loops_in_loops_and_branches() -> None:
    def inner(i: Any, x: Any) -> Any:  # tracers
        return lax.cond(x[0] > 0, lambda x: x * 0.5 - 1, lambda x: jnp.sin(x) + x[::-1] * 0.1, x)

    def outer(x: Any, y: Any) -> Any:
        x = lax.fori_loop(0, STEPS, inner, x + y)
        return x, (x * 2, x)

    check(lambda x, ys: lax.scan(outer, x, ys), numbers(33), numbers(STEPS, 33, seed=1))
