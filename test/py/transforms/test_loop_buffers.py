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


def test_a_slice_of_what_does_not_change_is_not_copied() -> None:
    """A step reads its row where it lies and writes its result where it belongs."""
    listing = check(lambda x: lax.map(lambda row: jnp.sin(row) * 2, x), numbers(STEPS, 37))
    body = body_of(listing)
    assert sum("= view of" in line for line in body) == 2
    assert not any("dynamic" in line or "copy" in line for line in body)


@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(reverse: bool) -> None:
    """What a step makes is carried and put into the result."""

    def step(h: Any, x: Any) -> Any:  # tracers
        h = jnp.tanh(x @ h * 0.2)
        return h, (h, h * 2)

    xs = numbers(STEPS, 5, 5)
    listing = check(lambda xs, h: lax.scan(step, h, xs, reverse=reverse), xs, numbers(5, 5))
    assert any("= view of a0" in line for line in body_of(listing))


def test_slices_of_what_is_updated() -> None:
    """Read before, after and by the update itself; of the row that is written, of the one before, of both."""
    xs = numbers(STEPS + 2, 65)

    def before(i: Any, x: Any) -> Any:  # tracers
        return x.at[i].set(jnp.sin(x[i]))

    def after(i: Any, x: Any) -> Any:
        row = x[i + 1]
        x = x.at[i + 1].set(jnp.sin(row))
        return x.at[i].set(row + x[i + 1])

    def shift(i: Any, x: Any) -> Any:
        return x.at[i].set(x[i + 1])

    def overlapping(i: Any, x: Any) -> Any:
        return lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i, 0), (2, 65)), (i + 1, 0))

    def both(i: Any, x: Any) -> Any:
        a, b = x[i], x[i + 1]
        x = x.at[i].set(b)
        return x.at[i + 1].set(a * 0.5)

    def whole(i: Any, x: Any) -> Any:
        row = x[i]
        return x * 0.9 + row * 0.1 + x[i]

    def kept(i: Any, x: Any) -> Any:
        row = x[i]
        x = x[::-1] * 0.5
        return x.at[i].add(row)

    for step in (before, after, shift, overlapping, both, whole, kept):
        check(lambda x, step=step: lax.fori_loop(0, STEPS, step, x), xs)


def test_slices_of_slices_and_without_loops() -> None:
    def f(x: Any, i: Any, j: Any) -> Any:  # tracers
        plane = lax.dynamic_index_in_dim(x, i, 0, keepdims=False)
        row = lax.dynamic_index_in_dim(plane, j, 0, keepdims=False)
        part = lax.dynamic_slice(row, (j,), (64,))
        return plane @ plane.T, jnp.sort(row), jnp.cumsum(part), x[1:3].reshape(2, -1) @ x[2].reshape(-1)

    x = numbers(4, 8, 96)
    for i, j in ((0, 0), (3, 7), (-1, -2), (99, 99), (-99, 40)):
        check(f, x, np.int32(i), np.int32(j))
    check(f, x, np.uint8(3), np.int16(5))


def test_views_in_loops_in_loops() -> None:
    """The outer loop's row is read by all steps of the inner one, which changes what it carries."""

    def outer(c: Any, x: Any) -> Any:  # tracers
        def inner(i: Any, y: Any) -> Any:
            return y.at[i % 8].set(y[(i + 1) % 8] * 0.5 + x[i % 8])

        y = lax.fori_loop(0, STEPS, inner, c)
        return y + x, y[:3]

    check(lambda c, xs: lax.scan(outer, c, xs), numbers(8, 33), numbers(STEPS, 8, 33, seed=1))


def test_views_in_branches() -> None:
    def step(c: Any, i: Any) -> Any:  # tracers
        c = lax.switch(i % 3, [lambda c: c.at[i].set(c[i + 1]), lambda c: c * 0.5 + c[i], lambda c: c], c)
        return c, lax.cond(i % 2 == 0, lambda c: c[i] * 2, lambda c: c[0], c)

    check(lambda c: lax.scan(step, c, jnp.arange(STEPS)), numbers(STEPS + 1, 65))


def test_caches_of_keys_are_updated_in_place() -> None:
    """A cache that is written and then read whole: neither copied nor kept twice."""

    def step(i: Any, state: Any) -> Any:  # tracers
        x, cache = state
        cache = lax.dynamic_update_slice(cache, x[None] * 0.5, (i, 0))
        return jnp.tanh(jax.nn.softmax(cache @ x) @ cache), cache

    listing = check(lambda x, c: lax.fori_loop(0, STEPS, step, (x, c)), numbers(40), numbers(STEPS, 40, seed=1))
    assert not any(f"copy {STEPS * 160} bytes" in line for line in body_of(listing))


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.complex64, np.bool_, np.uint16])
def test_rows_of_any_type(dtype: Any) -> None:  # a numpy type
    xs = (numbers(STEPS, 7) * 4).astype(dtype)
    check(lambda xs: lax.map(lambda x: jnp.where(x == 0, x, x[::-1]), xs), xs)


def test_what_is_written_whole_starts_as_any_memory() -> None:
    def doubled(x: Any, rows: Any) -> Any:  # tracers
        def step(i: Any, out: Any) -> Any:
            return lax.dynamic_update_slice(out, rows[i][None] * 2, (i, 0))

        return lax.fori_loop(0, STEPS, step, x)

    listing = check(doubled, numbers(STEPS, 9), numbers(STEPS, 9, seed=1))
    assert "r0 = fill 0 bytes" in listing


def test_what_is_not_written_whole_keeps_its_start() -> None:
    def every_other(x: Any, rows: Any) -> Any:  # tracers
        def step(i: Any, out: Any) -> Any:
            return lax.dynamic_update_slice(out, rows[i][None] * 2, (2 * i, 0))

        return lax.fori_loop(0, STEPS // 2, step, x)

    def clamped(x: Any, rows: Any) -> Any:  # the last rows all fall on one
        def step(i: Any, out: Any) -> Any:
            return lax.dynamic_update_slice(out, rows[i : i + 1] if isinstance(i, int) else rows[i][None], (i + 5, 0))

        return lax.fori_loop(0, STEPS, step, x)

    for function in (every_other, clamped):
        assert "fill 0 bytes" not in check(function, numbers(STEPS, 9), numbers(STEPS, 9, seed=1))


def test_blocks_of_rows_and_inner_loops() -> None:
    def blocks(x: Any) -> Any:  # tracers
        def step(i: Any, out: Any) -> Any:
            return lax.dynamic_update_slice(out, lax.dynamic_slice(x, (2 * i, 0), (3, 9)) * 2, (2 * i, 0))

        return lax.fori_loop(0, STEPS // 2, step, jnp.ones_like(x))

    check(blocks, numbers(STEPS, 9))
    inner = lambda x: lax.map(lambda v: jnp.sin(v) * 2, x)  # noqa: E731
    check(lambda x: lax.map(inner, x), numbers(STEPS, STEPS, 9))
    check(lambda x, c: lax.scan(lambda c, x: (c + inner(x), inner(c)), c, x), numbers(STEPS, STEPS), numbers(STEPS))


def test_rolled_arrays_are_joined_from_where_they_lie() -> None:
    def step(i: Any, x: Any) -> Any:  # tracers
        return x + 0.1 * (jnp.roll(x, 1, 0) + jnp.roll(x, -1, 0) + jnp.roll(x, 70, 1) - 3 * x)

    listing = check(lambda x: lax.fori_loop(0, STEPS, step, x), numbers(30, 200))
    assert not any("slice" in line for line in body_of(listing))
    kept = lambda x: (jnp.concatenate([x[3:], jnp.sin(x)[:2], x[:5] * 2, jnp.ones((1, 200))]), jnp.sin(x))  # noqa: E731
    check(kept, numbers(30, 200))
    check(lambda x: jnp.concatenate([x[:, ::2], x[::-1, 100:], x.T[:30, :30]], 1), numbers(30, 200))
