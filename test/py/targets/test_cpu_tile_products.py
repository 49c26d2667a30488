"""Products on matrix tiles, wherever the tests run: every order and edge, signs, epilogues, and what must not show."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets.cpu.products.matrix_tile import block, suited
from stablehlo_py.targets.cpus import known
from stablehlo_py.testing.guard import guarded_call

TILES = "sapphirerapids"
DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "i8": np.int8,
    "ui8": np.uint8,
    "f32": np.float32,
    "i32": np.int32,
    "ui32": np.uint32,
}
CPU = cpu_of(",".join(f"+{feature}" for feature in known(TILES)))
pytestmark = pytest.mark.usefixtures("cpu_with_tiles")


def tensor(shape: tuple[int, ...], element: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{element}>"


def text(
    a: tuple[int, ...], b: tuple[int, ...], dims: str, result: tuple[int, ...], elements: str, rest: str = ""
) -> str:
    """elements: of lhs, rhs and result; rest: ops behind the product %0, whose last is the result %1."""
    one, other, out = elements.split()
    types = tensor(a, one), tensor(b, other), tensor(result, out)
    return (
        f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
        f"  %0 = stablehlo.dot_general %a, %b, {dims} : ({types[0]}, {types[1]}) -> {types[2]}\n{rest}"
        f"  return {'%1' if rest else '%0'} : {types[2]}\n}}"
    )


def operand(shape: tuple[int, ...], element: str, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if element == "bf16":
        return generator.standard_normal(shape).astype(DTYPES[element])
    info = np.iinfo(DTYPES[element])
    return generator.integers(info.min, info.max, shape, endpoint=True).astype(DTYPES[element])


def check(got: np.ndarray, want: np.ndarray, out: str) -> None:
    if "i" in out:
        np.testing.assert_array_equal(got, want.astype(np.int64).astype(got.dtype))
    else:
        tolerance = (2e-2 if out == "bf16" else 1e-5) * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=tolerance)


def compiled(source: str, *, threads: int = 1) -> stablehlo_py.Executable:
    executable = stablehlo_py.compile(source, cache=False, options=stablehlo_py.Options(threads=threads))
    assert "llvm.x86.tdp" in executable.as_text("llvm-ir")
    return executable


ELEMENTS = ["bf16 bf16 f32", "bf16 bf16 bf16", "i8 i8 i32", "ui8 ui8 i32", "ui8 ui8 ui32", "i8 ui8 i32", "ui8 i8 i32"]
SHAPES = [
    (33, 47, 70),  # edges everywhere
    (16, 150, 64),  # one row of tiles, four side by side
    (150, 16, 96),  # one column of them
    (100, 3, 130),
    (7, 200, 140),
    (64, 64, 128),  # none cut
    (300, 100, 9),  # three steps and no more
    (50, 33, 4200),  # several blocks of k
]


ORDERS = list(itertools.product((False, True), repeat=2))


def product(m: int, n: int, k: int, elements: str, *, left: bool, right: bool) -> None:
    """left: lhs as (k, m); right: rhs as (n, k)."""
    one, other, out = elements.split()
    a, b = operand((k, m) if left else (m, k), one), operand((n, k) if right else (k, n), other, 1)
    dims = f"contracting_dims = [{0 if left else 1}] x [{1 if right else 0}]"
    executable = compiled(text(a.shape, b.shape, dims, (m, n), elements))
    x, y = (a.T if left else a).astype(np.float64), (b.T if right else b).astype(np.float64)
    check(executable(a, b)[0], x @ y, out)
    check(guarded_call(executable, [a, b])[0], x @ y, out)  # nothing beside the buffers is touched


@pytest.mark.parametrize("elements", ["bf16 bf16 f32", "i8 i8 i32"])
@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_every_order_and_edge(m: int, n: int, k: int, elements: str, left: bool, right: bool) -> None:
    product(m, n, k, elements, left=left, right=right)


@pytest.mark.parametrize("elements", ELEMENTS)
@pytest.mark.parametrize(("left", "right"), ORDERS)
def test_every_element(elements: str, left: bool, right: bool) -> None:
    product(33, 47, 71, elements, left=left, right=right)


@pytest.mark.parametrize("elements", ["bf16 bf16 f32", "i8 i8 i32"])
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (300, 500, 1100),  # panels are shared by threads; in bf16, in several rounds
        (70, 600, 300),  # panels are dealt out
        (600, 70, 300),  # rows are
    ],
)
def test_threads_change_no_bit(m: int, n: int, k: int, elements: str) -> None:
    one, other, out = elements.split()
    a, b = operand((m, k), one), operand((k, n), other, 1)
    source = text(a.shape, b.shape, "contracting_dims = [1] x [0]", (m, n), elements)
    alone = compiled(source)(a, b)[0]
    check(alone, a.astype(np.float64) @ b.astype(np.float64), out)
    for threads in (2, 3):
        assert compiled(source, threads=threads)(a, b)[0].tobytes() == alone.tobytes()


@pytest.mark.parametrize("elements", ["bf16 bf16 f32", "ui8 ui8 i32"])
def test_a_batch(elements: str) -> None:
    one, other, out = elements.split()
    a, b = operand((5, 40, 70), one), operand((5, 70, 45), other, 1)
    dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    source = text(a.shape, b.shape, dims, (5, 40, 45), elements)
    for threads in (1, 2):
        got = compiled(source, threads=threads)(a, b)[0]
        check(got, a.astype(np.float64) @ b.astype(np.float64), out)


@pytest.mark.parametrize(("m", "n", "k"), [(33, 47, 70), (64, 64, 64), (50, 33, 4200)])
def test_what_follows(m: int, n: int, k: int) -> None:
    """max(a b, 0), rounded to bf16, in the same kernel."""
    a, b = operand((m, k), "bf16"), operand((k, n), "bf16", 1)
    ty = tensor((m, n), "bf16")
    rest = f"  %z = stablehlo.constant dense<0.0> : {ty}\n  %1 = stablehlo.maximum %0, %z : {ty}\n"
    executable = compiled(text(a.shape, b.shape, "contracting_dims = [1] x [0]", (m, n), "bf16 bf16 bf16", rest))
    assert len(executable.program.kernels) == 1
    check(executable(a, b)[0], np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0), "bf16")


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize("k", [33, 70])
def test_nothing_stays_from_call_to_call(k: int, left: bool, right: bool) -> None:
    """What is packed behind the last step of k is zero, though the call before left NaN where it stands."""
    a, b = operand((k, 40) if left else (40, k), "bf16"), operand((50, k) if right else (k, 50), "bf16", 1)
    dims = f"contracting_dims = [{0 if left else 1}] x [{1 if right else 0}]"
    small = compiled(text(a.shape, b.shape, dims, (40, 50), "bf16 bf16 f32"))
    wide = 96  # whole tiles along k, in the same memory
    c, d = (np.full((wide, 64) if left else (64, wide), np.nan), np.full((64, wide) if right else (wide, 64), np.nan))
    large = compiled(text(c.shape, d.shape, dims, (64, 64), "bf16 bf16 f32"))
    want = small(a, b)[0]
    assert np.isfinite(want).all()
    assert np.isnan(large(c.astype(DTYPES["bf16"]), d.astype(DTYPES["bf16"]))[0]).all()
    for spoiled in (a, b):
        filled = spoiled.copy()
        filled[:] = np.nan
        small(*(filled if x is spoiled else x for x in (a, b)))
        np.testing.assert_array_equal(small(a, b)[0], want)


def test_infinities_and_nan_reach_their_row_alone() -> None:
    a, b = operand((40, 70), "bf16"), operand((70, 33), "bf16", 1)
    a[3, 5], a[7, 1], a[9] = np.inf, np.nan, 0
    got = compiled(text(a.shape, b.shape, "contracting_dims = [1] x [0]", (40, 33), "bf16 bf16 f32"))(a, b)[0]
    assert np.isinf(got[3]).all()
    assert np.isnan(got[7]).all()
    assert not got[9].any()
    assert np.isfinite(np.delete(got, (3, 7), axis=0)).all()


@pytest.mark.parametrize("k", [64, 70, 4200])
def test_sums_have_the_order_of_the_instruction_also_where_numbers_are_small(k: int) -> None:
    """Even k and odd ones apart, for each 32; scaled, so that a tile would lose products, the bits are the same."""
    a, b = operand((40, k), "bf16"), operand((k, 33), "bf16", 1)
    executable = compiled(text(a.shape, b.shape, "contracting_dims = [1] x [0]", (40, 33), "bf16 bf16 f32"))
    got = executable(a, b)[0]
    low = [(x.astype(np.float32) * np.float32(scale)).astype(x.dtype) for x, scale in ((a, 2.0**-60), (b, 2.0**-40))]
    np.testing.assert_array_equal(executable(*low)[0].astype(np.float64), got.astype(np.float64) * 2.0**-100)
    if k > 2048:
        return
    total = np.zeros((40, 33), np.float32)
    for first in range(0, k, 32):
        halves = []
        for parity in (0, 1):
            half = np.zeros((40, 33), np.float32)
            for at in range(first + parity, min(first + 32, k), 2):
                exact = a[:, at, None].astype(np.float64) * b[None, at].astype(np.float64)
                half = (half + exact).astype(np.float32)  # f64 holds each sum but for ties that no example here has
            halves.append(half)
        total += halves[0] + halves[1]
    np.testing.assert_array_equal(got, total)


def test_subnormal_numbers_are_kept() -> None:
    a, b = np.zeros((40, 70), np.float32), np.zeros((70, 40), np.float32)
    a[3, 11], b[11, :] = 2.0**-130, 2.0**100
    executable = compiled(text(a.shape, b.shape, "contracting_dims = [1] x [0]", (40, 40), "bf16 bf16 f32"))
    want = np.zeros((40, 40), np.float32)
    want[3] = 2.0**-30
    np.testing.assert_array_equal(executable(a.astype(DTYPES["bf16"]), b.astype(DTYPES["bf16"]))[0], want)


def test_bytes_wrap_as_integers_do() -> None:
    """2**17 products of 2**14 and more: beyond what i32 holds."""
    for elements, value in (("i8 i8 i32", -128), ("ui8 ui8 i32", 255)):
        one, other, _ = elements.split()
        k = 1 << 17
        a, b = np.full((4, k), value, DTYPES[one]), np.full((k, 16), value, DTYPES[other])
        got = compiled(text(a.shape, b.shape, "contracting_dims = [1] x [0]", (4, 16), elements))(a, b)[0]
        np.testing.assert_array_equal(got, np.full((4, 16), k * value * value).astype(np.int32))


def test_tiles_cover_what_there_is() -> None:
    assert [block(m, n) for m, n in ((1, 100), (16, 33), (17, 17), (100, 16), (33, 7), (1, 1))] == [
        (16, 4),
        (16, 3),
        (32, 2),
        (64, 1),
        (48, 1),
        (16, 1),
    ]


def test_tiles_where_they_pay() -> None:
    assert suited("i8", CPU, 64, 64, 64) and suited("bf16", CPU, 8, 1000, 100)
    assert suited("i8", CPU, 2, 1000, 1000) is None  # rows of a tile would stand empty
    assert suited("i8", CPU, 16, 16, 16) is None  # less work than to shape tiles
    assert suited("f16", CPU, 64, 64, 64) is None and suited("f32", CPU, 64, 64, 64) is None
    assert suited("bf16", cpu_of("+avx512f,+avx512vl,+avx512bw,+amx-tile,+amx-int8"), 64, 64, 64) is None
