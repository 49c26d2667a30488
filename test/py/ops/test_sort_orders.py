"""Sorts by the orders that comparators are recognised to ask for: every element type, length and number of keys.

What is expected is NumPy's: a stable lexicographic sort of keys in which NaN is last and -0 and 0 are equal, or of the
bits in total order.
"""

from __future__ import annotations

import functools

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stablehlo_py
from stablehlo_py import Options

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
SMALL = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E3M4": ml_dtypes.float8_e3m4}
INTEGERS = {f"{u}i{bits}": np.dtype(f"{u}int{bits}") for bits in (8, 16, 32, 64) for u in ("", "u")}
TYPES = {**FLOATS, **SMALL, **INTEGERS, "i1": np.bool_}

# what is done to each side before it is compared; {} is the argument
CANONICAL = """
      %zero{n} = stablehlo.constant dense<0.0> : tensor<{t}>
      %nan{n} = stablehlo.constant dense<{nan}> : tensor<{t}>
      %is0{n} = stablehlo.compare EQ, {x}, %zero{n}, FLOAT : (tensor<{t}>, tensor<{t}>) -> tensor<i1>
      %one{n} = stablehlo.select %is0{n}, %zero{n}, {x} : tensor<i1>, tensor<{t}>
      %isnan{n} = stablehlo.compare NE, {x}, {x}, FLOAT : (tensor<{t}>, tensor<{t}>) -> tensor<i1>
      %key{n} = stablehlo.select %isnan{n}, %nan{n}, %one{n} : tensor<i1>, tensor<{t}>"""
NAN = {"f64": "0x7FF8000000000000", "f32": "0x7FC00000", "f16": "0x7E00", "bf16": "0x7FC0"}


def _compare(direction: str, t: str, a: str, b: str, kind: str) -> str:
    return f"stablehlo.compare {direction}, {a}, {b}, {kind} : (tensor<{t}>, tensor<{t}>) -> tensor<i1>"


def program(
    shape: tuple[int, ...], dimension: int, keys: list[tuple[str, str, str]], payloads: list[str], iota: bool
) -> str:
    """keys: (type, LT or GT, FLOAT, TOTALORDER, CANONICAL, or for integers their kind); payload types go along."""
    size = "x".join(map(str, shape))
    types = [t for t, _, _ in keys] + payloads
    names = [f"%x{i}" for i in range(len(types))]
    all_types = [f"tensor<{size}x{t}>" for t in types]
    lines, last = [], ""
    for i, (t, direction, kind) in reversed(list(enumerate(keys))):
        a, b = f"%a{i}", f"%b{i}"
        if kind == "CANONICAL":
            for side, x in (("a", a), ("b", b)):
                lines.append(CANONICAL.format(n=f"{side}{i}", t=t, x=x, nan=NAN[t]))
            a, b, kind = f"%keya{i}", f"%keyb{i}", "TOTALORDER"
        lines.append(f"      %lt{i} = {_compare(direction, t, a, b, kind)}")
        if last:
            lines.append(f"      %eq{i} = {_compare('EQ', t, a, b, kind)}")
            lines.append(f"      %tie{i} = stablehlo.and %eq{i}, {last} : tensor<i1>")
            lines.append(f"      %before{i} = stablehlo.or %lt{i}, %tie{i} : tensor<i1>")
            last = f"%before{i}"
        else:
            last = f"%lt{i}"
    made = ""
    if iota:
        made = f"%places = stablehlo.iota dim = {dimension} : tensor<{size}xi32>"
        names.append("%places")
        types.append("i32")
        all_types.append(f"tensor<{size}xi32>")
    arguments = ", ".join(f"%a{i}: tensor<{t}>, %b{i}: tensor<{t}>" for i, t in enumerate(types))
    body = "\n".join(lines)
    inputs = ", ".join(f"{n}: {t}" for n, t in zip(names, all_types, strict=True) if n != "%places")
    results = ", ".join(all_types)
    given = ", ".join(f"%s#{i}" for i in range(len(types))) if len(types) > 1 else "%s"
    return f"""
func.func @main({inputs}) -> ({results}) {{
    {made}
    %s{f":{len(types)}" if len(types) > 1 else ""} = "stablehlo.sort"({", ".join(names)}) ({{
    ^bb0({arguments}):
{body}
      stablehlo.return {last} : tensor<i1>
    }}) {{dimension = {dimension} : i64, is_stable = true}} : ({results}) -> ({results})
    return {given} : {results}
}}"""


def ordered(x: np.ndarray, direction: str, kind: str) -> np.ndarray:
    """A key whose ascending order is the one wanted, by ranks of whole columns."""
    if x.dtype.kind in "iub" and x.dtype.name in np.sctypeDict:
        key = x.astype(object).astype(np.int64) if x.dtype != np.uint64 else x
        return (~key if direction == "GT" else key) if x.dtype != np.bool_ else key * (-1 if direction == "GT" else 1)
    wide = x.astype(np.float64)
    if kind == "TOTALORDER":
        bits = wide.view(np.int64)
        key = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
        return ~key if direction == "GT" else key
    order = np.where(wide == 0, 0.0, wide)
    if direction == "GT":
        order = np.where(np.isnan(order), -np.inf if kind == "CANONICAL" else np.inf, -order)
        if kind == "CANONICAL":
            # the canonical NaN is above infinity, so first
            bits = np.where(np.isnan(wide), np.nan, np.where(wide == 0, 0.0, wide)).view(np.int64)
            return ~np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
        return np.where(np.isnan(wide), np.finfo(np.float64).max, np.clip(order, -1e308, 1e308))
    return order  # numpy sorts NaN last


def expected(arrays: list[np.ndarray], keys: list[tuple[str, str, str]], dimension: int) -> list[np.ndarray]:
    lines = [np.moveaxis(x, dimension, -1) for x in arrays]
    rows = [line.reshape(-1, line.shape[-1]) for line in lines]
    columns = [ordered(row, direction, kind) for row, (_, direction, kind) in zip(rows, keys, strict=False)]
    order = np.stack([np.lexsort([c[r] for c in reversed(columns)]) for r in range(len(rows[0]))])
    return [
        np.moveaxis(np.take_along_axis(row, order, 1).reshape(line.shape), -1, dimension)
        for row, line in zip(rows, lines, strict=True)
    ]


def numbers(dtype: object, shape: tuple[int, ...], rng: np.random.Generator, count: int) -> np.ndarray:
    """Few values, many of them equal; floats with every special one, NaNs of both signs among them."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu" and dtype.name in np.sctypeDict:
        info = np.iinfo(dtype)
        pool = np.concatenate(
            [np.array([info.min, info.max, 0, 1], dtype), rng.integers(info.min, info.max, count, dtype, True)]
        )
        return rng.choice(pool, shape)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    with np.errstate(all="ignore"):
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0]).astype(dtype)
        pool = np.concatenate([special, (rng.standard_normal(count) * 3).astype(dtype)])
    return rng.choice(pool, shape)


@functools.cache
def _compiled(text: str, threads: int) -> stablehlo_py.Executable:
    return stablehlo_py.compile(text, cache=False, options=Options(threads=threads))


def _check(shape: tuple[int, ...], dimension: int, keys: list, payloads: list[str], iota: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    types = [t for t, _, _ in keys] + payloads
    arrays = [numbers(TYPES[t], shape, rng, int(rng.integers(1, 300))) for t in types]
    every = list(arrays)
    if iota:
        places = np.arange(shape[dimension], dtype=np.int32)
        every.append(np.moveaxis(np.broadcast_to(places, np.moveaxis(arrays[0], dimension, -1).shape), -1, dimension))
    wanted = expected(every, keys, dimension)
    text = program(shape, dimension, keys, payloads, iota)
    once = _compiled(text, 1)(*arrays)
    twice = _compiled(text, 2)(*arrays)
    for one, two, want in zip(once, twice, wanted, strict=True):
        assert one.tobytes() == two.tobytes() == np.ascontiguousarray(want).tobytes()


def kinds(t: str) -> list[str]:
    if t == "i1" or t.startswith("ui"):
        return ["UNSIGNED"]
    if t in INTEGERS:
        return ["SIGNED"]
    return ["TOTALORDER", "FLOAT", "CANONICAL"] if t in NAN else ["TOTALORDER", "FLOAT"]


@pytest.mark.parametrize("t", TYPES)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_every_type(t: str, direction: str) -> None:
    for kind in kinds(t):
        for n in (5, 300):
            _check((n,), 0, [(t, direction, kind)], [], n > 5, n)


KEYS = st.sampled_from([(t, d, k) for t in TYPES for d in ("LT", "GT") for k in kinds(t)])


@settings(max_examples=30, deadline=None)
@given(
    shape=st.lists(st.integers(1, 40), min_size=1, max_size=3).filter(lambda s: max(s) > 1),
    keys=st.lists(KEYS, min_size=1, max_size=3),
    payloads=st.lists(st.sampled_from(["f32", "i8", "f64", "bf16"]), max_size=2),
    iota=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    data=st.data(),
)
def test_any_order(
    shape: list[int], keys: list, payloads: list[str], iota: bool, seed: int, data: st.DataObject
) -> None:
    dimension = data.draw(st.integers(0, len(shape) - 1))
    if shape[dimension] == 1:
        dimension = shape.index(max(shape))
    _check(tuple(shape), dimension, keys, payloads, iota, seed)


@pytest.mark.parametrize("length", [2, 7, 16, 17, 64, 100, 257, 1024])
def test_many_slices_side_by_side(length: int) -> None:
    """Slices fewer and more than the lanes of a vector, rows and columns, at every kind of length."""
    for count in (6, 21):
        _check((count, length), 1, [("f32", "LT", "CANONICAL")], [], True, length)
        _check((length, count), 0, [("i16", "GT", "SIGNED")], [], False, length)
