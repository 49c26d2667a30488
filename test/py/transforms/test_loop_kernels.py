"""Loops with small steps, which are kernels as a whole: values, types, and what else may stand in a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import export, lax

import stablehlo_py

STEPS = 23  # more than are unrolled
KERNEL = "loop_0("


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def check(function: Callable, *arguments: Any, kernel: bool = True, exact: bool = False) -> str:  # Any: arrays
    """Compare with XLA; the listing of the Program. kernel: whether there is to be a loop that is one."""
    arguments = tuple(np.asarray(a) for a in arguments)
    module = export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module_serialized
    executable = stablehlo_py.compile(module, cache=False)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for _ in range(2):  # the second call finds what the first one left in the arena
        for one, other in zip(executable(*arguments), wanted, strict=True):
            one, other = (np.asarray(x) for x in (one, other))
            assert one.dtype == other.dtype
            if exact or one.dtype.kind in "biu":
                np.testing.assert_array_equal(one, other)
            else:
                wide = np.complex128 if one.dtype.kind == "c" else np.float64
                rtol = 1e-2 if one.dtype.itemsize == 2 else 1e-5
                np.testing.assert_allclose(one.astype(wide), other.astype(wide), rtol=rtol, atol=1e-5)
    listing = executable.as_text("program")
    assert (KERNEL in listing) == kernel
    return listing


def fori(body: Callable, *, steps: int = STEPS) -> Callable:
    return lambda *carried: lax.fori_loop(0, steps, lambda i, c: body(i, *c), carried)


@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "int8", "uint8", "int32", "uint32", "complex64", ml_dtypes.bfloat16]
)
def test_element_types(dtype: Any) -> None:
    x = np.asarray(3, dtype)
    check(fori(lambda i, c, d: (c * d + i.astype(c.dtype), d - c)), x, x + x)


def test_a_loop_whose_steps_are_known_is_one_launch() -> None:
    listing = check(lambda x: lax.fori_loop(0, 1000, lambda i, c: c * 0.5 + i, x), np.float32(1))
    assert "while" not in listing


@pytest.mark.parametrize("start", [1, 2, 27, 97])
def test_a_loop_of_unknown_length_can_be_stopped(start: int) -> None:
    """Collatz: a while around the kernel asks after each launch."""

    def function(n: Any) -> Any:  # tracers
        even = lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1)  # noqa: E731
        return lax.while_loop(lambda c: c[0] != 1, even, (n, jnp.int32(0)))

    assert "while" in check(function, np.int32(start))


def test_a_long_loop_goes_on_where_it_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    from stablehlo_py.transforms.kernels import outline_loops

    monkeypatch.setattr(outline_loops, "AT_ONCE", 64)  # a few steps
    listing = check(
        lambda x, y: lax.fori_loop(0, 1001, lambda i, c: (c[1], c[0] * 0.9 + i), (x, y)), np.float32(1), np.float32(2)
    )
    assert "while" in listing


@pytest.mark.parametrize("limit", [-1, 0, 1, 5])
def test_few_steps_or_none(limit: int) -> None:
    check(lambda n, x: lax.fori_loop(0, n, lambda i, c: c[::-1] + i, x), np.int32(limit), numbers(3))


def test_special_values() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3e38], np.float32)
    check(fori(lambda i, c: (jnp.where(c > 1, c, jnp.maximum(c, -c) * 0.5),)), x, exact=True)
    check(lambda x: lax.while_loop(lambda c: ~(c[0] > 5), lambda c: (c[0] + 1, c[1] * c[0]), (x[3], x)), x, exact=True)


def test_carried_values_change_places() -> None:
    check(fori(lambda i, a, b, c: (b, c + a, a)), np.float32(1), np.float32(2), np.float32(3))
    check(fori(lambda i, a, b: (b.T, a + 1)), numbers(2, 2), numbers(2, 2, seed=1))


def test_moves() -> None:
    def step(i: Any, x: Any, y: Any) -> Any:  # tracers
        turned = jnp.flip(x.T, 0)[:, ::2]
        wide = jnp.pad(turned, ((1, 0), (0, 1)), constant_values=0.5)
        low = lax.pad(wide, jnp.float32(2), [(-1, -1, 0), (0, -1, 1)])
        joined = jnp.concatenate([low.reshape(-1)[:3], y], 0)
        return x + jnp.broadcast_to(joined[1:4, None], (3, 2)).T.reshape(2, 3) * 0.1, joined[-3:] * 0.5

    check(fori(step), numbers(2, 3), numbers(3, seed=1))


def test_reductions() -> None:
    def step(i: Any, x: Any) -> Any:  # tracers
        rows, most, where = x.sum(1), x.max(0), jnp.argmax(x, 1)
        return (x * 0.7 - rows[:, None] * 0.1 + most * 0.01 + where[:, None].astype(x.dtype) * 0.125,)

    check(fori(step), numbers(3, 4))
    check(fori(lambda i, x: (x * (1 + jnp.sum(x) * 0.01),)), numbers(5).astype(ml_dtypes.bfloat16))
    check(fori(lambda i, x, n: (jnp.roll(x, 1) + n, n + x.prod())), np.arange(4, dtype=np.int32), np.int32(3))


@pytest.mark.parametrize("shapes", [((3, 3), (3,)), ((2, 3), (3, 2)), ((2, 2, 2), (2, 2, 2)), ((11, 11), (11,))])
def test_products(shapes: tuple) -> None:
    w, x = numbers(*shapes[0]) * 0.3, numbers(*shapes[1], seed=1)
    if x.ndim == 1:
        check(lambda w, x: lax.fori_loop(0, STEPS, lambda i, c: w @ c + 0.1, x), w, x)
    else:
        check(lambda w, x: lax.fori_loop(0, STEPS, lambda i, c: (c @ (w @ c)) * 0.5 + 0.1, x), w, x)


def test_places_of_large_arrays() -> None:
    """A scan: rows are read and written where they lie."""

    def step(carry: Any, x: Any) -> Any:  # tracers
        carry = carry * 0.9 + x[:3] * x[1]
        return carry, (carry[0], jnp.stack([carry, carry * 2]))

    check(lambda c, xs: lax.scan(step, c, xs), numbers(3), numbers(101, 5))
    check(lambda c, xs: lax.scan(step, c, xs, reverse=True), numbers(3), numbers(101, 5))


def test_what_a_step_writes_the_next_one_reads() -> None:
    """A table that is filled from its own earlier places; places out of range move inside."""

    def step(i: Any, table: Any) -> Any:  # tracers
        last = lax.dynamic_slice(table, (i - 1,), (1,)) + lax.dynamic_slice(table, (i - 2,), (1,))
        return (lax.dynamic_update_slice(table, last, (i,)),)

    check(fori(step, steps=130), np.ones(100, np.uint32))


def test_a_place_that_is_read_after_it_changed_is_no_small_loop() -> None:
    def step(i: Any, table: Any, total: Any) -> Any:  # tracers
        new = lax.dynamic_update_slice(table, total[None], (i,))
        return new, total + lax.dynamic_slice(new, (i + 1,), (1,))[0] + lax.dynamic_slice(table, (i,), (1,))[0]

    check(fori(step), numbers(100), np.float32(1), kernel=False)


@pytest.mark.parametrize("index", [-100, -1, 0, 2, 4, 100])
def test_places_of_small_arrays(index: int) -> None:
    def step(i: Any, x: Any, k: Any) -> Any:  # tracers
        part = lax.dynamic_slice(x, (k, i % 3), (2, 1))
        return lax.dynamic_update_slice(x, part * 0.5 + 1, (i - k, k)), k

    check(fori(step), numbers(3, 4), np.int32(index))
    check(fori(lambda i, x, k: (x.at[k + i % 2].set(x[k]), k)), numbers(3), np.uint8(index % 256), kernel=False)


def test_branches_and_loops_inside() -> None:
    def step(i: Any, x: Any, n: Any) -> Any:  # tracers
        x = lax.cond(i % 3 == 0, lambda x: x[::-1], lambda x: x * 0.5, x)
        n = lax.switch(i % 4 - 1, [lambda n: n + 1, lambda n: n * 3, lambda n: -n], n)
        return lax.fori_loop(0, 20, lambda j, x: x + 0.01 * j, x), n

    check(fori(step), numbers(3), np.int32(5))


def test_a_loop_inside_that_might_not_end_stays_outside() -> None:
    """It is a kernel itself, which the other loop calls."""

    def step(i: Any, x: Any) -> Any:  # tracers
        return (lax.while_loop(lambda y: y > 1, lambda y: y * 0.5, x + i),)

    assert check(fori(step), np.float32(1e6)).count("while") == 2


def test_large_steps_are_no_kernel() -> None:
    check(fori(lambda i, x: (x * 0.5 + 1,)), numbers(1000), kernel=False)
    check(fori(lambda i, x: (jnp.tanh(jnp.sin(x)),)), numbers(16), kernel=False)  # quicker on vectors


def test_what_is_read_from_around_and_carried_too() -> None:
    check(lambda x: lax.fori_loop(0, STEPS, lambda i, c: (c[0] * 0.5 + x, x * c[1][::-1]), (x, x)), numbers(3))
    table = numbers(40)
    check(
        lambda t: lax.fori_loop(
            0, 40, lambda i, c: lax.dynamic_update_slice(c, lax.dynamic_slice(t, (39 - i,), (1,)), (i,)), t
        ),
        table,
    )


UNARY: tuple[Callable, ...] = (jnp.sin, jnp.tanh, jnp.abs, jnp.negative, lambda x: x * 0.5, lambda x: jnp.flip(x, -1))
BINARY: tuple[Callable, ...] = (jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, lambda a, b: jnp.where(a > b, a, -b))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(UNARY) - 1), st.integers(0, len(BINARY) - 1), *[st.integers(0, 2)] * 3), max_size=5
    ),
    st.integers(0, 40),
    st.sampled_from([(1,), (2,), (3,), (2, 2), (5,)]),
    st.permutations([0, 1, 2]),
)
def test_random_steps(ops: list, steps: int, shape: tuple[int, ...], order: list[int]) -> None:
    def step(i: Any, *carried: Any) -> Any:  # tracers
        values = list(carried)
        for unary, binary, a, b, target in ops:
            values[target] = jnp.clip(BINARY[binary](UNARY[unary](values[a]), values[b]), -4, 4)
        return tuple(values[k] for k in order)

    arguments = [numbers(*shape, seed=s) for s in range(3)]
    module = export.export(jax.jit(fori(step, steps=steps)), platforms=["cpu"])(*arguments).mlir_module_serialized
    found = stablehlo_py.compile(module, cache=False)(*arguments)
    for one, other in zip(found, jax.jit(fori(step, steps=steps))(*arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3)
