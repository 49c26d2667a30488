"""Loops over vectors: every element type, every remainder, with and without masks, the same bits on any number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export
from ops.agree import numbers, with_jax

from stablehlo_py import Options, compile
from stablehlo_py.runtime.executable import Executable

LENGTHS = (1, 17, 65, 263)
DTYPES = [np.int8, np.int64, ml_dtypes.bfloat16, np.float32, np.float64]
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, -1e-40]


def whole(shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Small integers of any dtype: their sums are exact in any order."""
    return np.rint(numbers(shape, np.float32)).astype(np.int8).astype(dtype)


def compiled(function: Callable, *arguments: np.ndarray, threads: int | None = None) -> Executable:
    with jax.enable_x64(True):
        exported = export.export(jax.jit(function), platforms=["cpu"])(*arguments)
    made = compile(exported, cache=False, options=Options(threads=threads))
    assert isinstance(made, Executable)
    return made


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", DTYPES)
def test_elementwise_of_every_length(dtype: type) -> None:
    xs = [numbers((n,), dtype) for n in LENGTHS]
    with_jax(lambda *xs: [jnp.where(x > 1, x * 3 + x, x - 1) for x in xs], *xs)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_every_length(dtype: type) -> None:
    xs = [whole((5, n), dtype) for n in LENGTHS]
    with_jax(lambda *xs: [(jnp.max(x, 1), jnp.min(x, 1), jnp.any(x > 2, 1), jnp.all(x < 2, 1)) for x in xs], *xs)
    with_jax(lambda *xs: [(jnp.sum(x, 1), jnp.prod(jnp.where(x > 1, x, 1), 1)) for x in xs[:3]], *xs)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_read_at_two_places(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last cache does not hold: the steps that neither stream has are left for the end."""
    monkeypatch.setattr("stablehlo_py.targets.cpu.vectors.vector_plan.CACHE_BYTES", 1 << 12)
    xs = [whole((3, n), dtype) for n in (8192, 8193, 8192 + 79, 16383)]
    with_jax(lambda *xs: [(jnp.sum(x, 1), jnp.max(x, 1), jnp.sum(x)) for x in xs], *xs)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [7, 21])
def test_columns_of_every_length(dtype: type, count: int) -> None:
    """Rows are taken eight at once, those that are left one by one."""
    xs = [whole((count, n), dtype) for n in LENGTHS]
    with_jax(lambda *xs: [(jnp.max(x, 0), jnp.min(x, 0), jnp.any(x > 2, 0), jnp.sum(x, 0)) for x in xs], *xs)


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("shape", [(3, 40, 5, 33), (16, 9, 8, 64)])
def test_reductions_of_any_dimensions(shape: tuple[int, ...]) -> None:
    dims = [(0,), (1,), (0, 1), (0, 2), (1, 3), (0, 1, 2), (1, 2)]
    with_jax(lambda x: [(jnp.sum(x, d), jnp.max(x, d)) for d in dims], whole(shape))
    with_jax(lambda x: [jnp.argmax(x, d) for d in range(4)], numbers(shape))


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("axis", "count"), [(0, 83), (1, 83), (1, 403)])
def test_maxima_tell_zeros_apart_and_keep_nan(dtype: Any, axis: int, count: int) -> None:
    """Of a few rows by keys in the order of floats, of many elements in a row by the ends of their bits."""
    rng = np.random.default_rng(3)
    rows = [np.array(SPECIAL)[rng.choice(rng.choice(len(SPECIAL), 3), count)] for _ in range(150)]
    x = np.moveaxis(np.array(rows).astype(dtype), 1, axis).copy()
    for function, extreme, all_of in ((jnp.max, np.max, np.all), (jnp.min, np.min, np.any)):
        (result,) = compiled(lambda x, function=function: function(x, axis), x)(x)
        for row, found in zip(rows, result, strict=True):
            wanted = extreme(row.astype(dtype))
            np.testing.assert_equal(found + 0.0, wanted + 0.0)  # NumPy gives either zero
            if wanted == 0:
                assert np.signbit(found) == all_of(np.signbit(row[row == 0]))


PROGRAMS: dict[str, tuple[Callable, tuple[int, ...]]] = {
    "elementwise": (lambda x: jnp.tanh(x) * 2 + jnp.exp(-x), (1 << 20,)),
    "odd elementwise": (lambda x: jnp.sin(x) - x, (1_000_003,)),
    "rows": (lambda x: jax.nn.softmax(x - jnp.mean(x, -1, keepdims=True)), (1001, 1003)),
    "columns": (lambda x: jnp.sum(x, 0), (1000, 3001)),
    "transposition": (lambda x: x.T.copy(), (1001, 1003)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_bits_do_not_depend_on_the_number_of_threads(name: str) -> None:
    function, shape = PROGRAMS[name]
    x = numbers(shape)
    (one,), *others = (compiled(function, x, threads=threads)(x) for threads in (1, 2, 5))
    for (other,) in others:
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("shape", [(4096, 1024), (1 << 22,), (4096, 1040), (4095, 1030)])
def test_results_past_the_caches(shape: tuple[int, ...], offset: int) -> None:
    """Those that are aligned are written past the caches; others, and rows that are not aligned, as usual."""
    x = numbers(shape)
    function = (lambda x: x - jnp.mean(x, -1, keepdims=True)) if len(shape) > 1 else lambda x: x * 2 + 1
    executable = compiled(function, x, threads=2)
    (wanted,) = executable(x)
    np.testing.assert_allclose(wanted, jax.jit(function)(x), rtol=1e-5, atol=1e-5)
    memory = np.zeros(x.nbytes + 192, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    result = memory[start : start + x.nbytes].view(np.float32).reshape(shape)
    executable.executor.run([x], [result])
    assert result.tobytes() == wanted.tobytes()
    assert not memory[:start].any()
    assert not memory[start + x.nbytes :].any()


def test_no_step_sees_what_another_wrote() -> None:
    """Scans along a dimension, whose steps depend on each other, stay in order."""
    with_jax(lambda x: (jnp.cumsum(x, 0), jnp.cumsum(x, 1), jax.lax.cummax(x, 1)), whole((33, 70)))
    with_jax(lambda x, i: x.at[i].add(1.0), whole((100,)), np.arange(50, dtype=np.int32) // 3)


@pytest.mark.parametrize("shape", [(33, 70), (5, 1000), (3, 7, 24), (4, 1, 40), (2, 3), (1, 64), (9, 4, 17)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.complex64])
def test_a_row_from_the_row_before(shape: tuple[int, ...], dtype: type) -> None:
    """Scans over rows: vectors of a row, which read what was written a row before, or after where they are reversed."""
    x = whole(shape, dtype)
    with_jax(
        lambda x: (
            jnp.cumsum(x, 0),
            jnp.cumsum(
                jnp.cumsum(x * 2, 0) + x,
                -2,
            ),
            jax.lax.cumsum(x, 0, reverse=True),
        ),
        x,
    )
    if dtype is not np.complex64:
        with_jax(lambda x: (jax.lax.cummax(x, 0), jax.lax.cummin(x, len(shape) - 2, reverse=True)), x)


def test_sums_of_uniform_values() -> None:
    """A counter-based generator adds its keys and the number of the round; some of these sums have a second reader."""
    with_jax(lambda: jax.random.bits(jax.random.key(7), (1003,)))
    with_jax(
        lambda x, k: [(x + k) + 1, ((x + k) + 3 + k) ^ x, jnp.where(x > 0, x + k, (x + k) + 1)],
        whole((515,), np.int32),
        np.int32(2**31 - 1),
    )
