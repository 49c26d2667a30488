"""Matrix products of the CPU target: every order of dimensions, edges of any size, every element type, against NumPy."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.products.tile_shape import tile_shape
from stablehlo_py.targets.machine_code import CodegenOptions

DTYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
}
# relative to the largest element of the result
TOLERANCE = {"f32": 5e-6, "f64": 1e-13, "bf16": 1e-2, "f16": 2e-3}


def program(a: tuple[int, ...], b: tuple[int, ...], dims: str, result: tuple[int, ...], element: str, out: str) -> str:
    def tensor(shape: tuple[int, ...], of: str) -> str:
        return f"tensor<{''.join(f'{n}x' for n in shape)}{of}>"

    types = tensor(a, element), tensor(b, element), tensor(result, out)
    return (
        f"func.func @main(%a: {types[0]}, %b: {types[1]}) -> {types[2]} {{\n"
        f"  %0 = stablehlo.dot_general %a, %b, {dims} : ({types[0]}, {types[1]}) -> {types[2]}\n"
        f"  return %0 : {types[2]}\n}}"
    )


def operands(element: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    dtype = DTYPES[element]
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        low, high = (info.min, info.max) if info.bits == 8 else (-1000, 1000)
        return [generator.integers(low, high, shape, endpoint=True).astype(dtype) for shape in shapes]
    return [generator.standard_normal(shape).astype(dtype) for shape in shapes]


def check(got: np.ndarray, want: np.ndarray, out: str) -> None:
    if out not in TOLERANCE:
        np.testing.assert_array_equal(got, want.astype(got.dtype))
        return
    scale = max(1.0, float(np.abs(want).max(initial=0)))
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=TOLERANCE[out] * scale)


def product(m: int, n: int, k: int, element: str, out: str, *, left: bool = False, right: bool = False) -> None:
    """left: lhs as (k, m); right: rhs as (n, k)."""
    a, b = operands(element, (k, m) if left else (m, k), (n, k) if right else (k, n))
    dims = f"contracting_dims = [{0 if left else 1}] x [{1 if right else 0}]"
    executable = stablehlo_py.compile(program(a.shape, b.shape, dims, (m, n), element, out), cache=False)
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    x, y = a.astype(wide), b.astype(wide)
    check(executable(a, b)[0], (x.T if left else x) @ (y.T if right else y), out)


ORDERS = list(itertools.product((False, True), repeat=2))


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(
    ("m", "n", "k"),
    [
        (1, 1, 1),
        (1, 130, 100),  # axpy form
        (5, 300, 33),
        (1, 8192, 70),  # the axpy form in parts
        (130, 1, 100),  # turned into a row
        (17, 33, 65),  # edges everywhere
        (70, 40, 1100),  # several blocks of k
        (7, 5, 1500),
        (9, 1030, 64),  # several chunks of columns
        (400, 24, 700),  # several blocks of rows
        (100, 90, 1),  # an outer product
        (13, 700, 40),  # few rows, whose panels are packed one at a time
        (300, 70, 600),  # rows are shared among threads
        (300, 2100, 1030),  # so are panels, in two rounds of columns and two of k
        (53, 17, 1031),  # primes
        (128, 48, 70),  # tiles of two heights on 16 registers, all of them inside
        (31, 64, 513),  # the same, and steps of k that are odd in number
        (7, 48, 300),
    ],
)
@pytest.mark.usefixtures("cpu")
def test_every_order_and_edge(m: int, n: int, k: int, left: bool, right: bool) -> None:
    product(m, n, k, "f32", "f32", left=left, right=right)


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(
    ("element", "out"),
    [("f64", "f64"), ("bf16", "bf16"), ("bf16", "f32"), ("f16", "f16"), ("i8", "i32"), ("ui8", "i32"), ("ui8", "ui32")],
)
@pytest.mark.parametrize(("m", "n", "k"), [(33, 47, 600), (16, 64, 64), (300, 33, 2051), (9, 10, 3)])
@pytest.mark.usefixtures("cpu_of_products")
def test_element_types(m: int, n: int, k: int, element: str, out: str, left: bool, right: bool) -> None:
    if out == "ui32":
        DTYPES["ui32"] = np.uint32
    product(m, n, k, element, out, left=left, right=right)


@pytest.mark.parametrize(("left", "right"), ORDERS)
@pytest.mark.parametrize(("one", "other"), [("i8", "ui8"), ("ui8", "i8")])
@pytest.mark.parametrize(("m", "n", "k"), [(33, 47, 600), (9, 64, 1101)])
@pytest.mark.usefixtures("cpu_of_products")
def test_bytes_of_two_kinds(m: int, n: int, k: int, one: str, other: str, left: bool, right: bool) -> None:
    (a,), (b,) = operands(one, (k, m) if left else (m, k)), operands(other, (n, k) if right else (k, n))
    dims = f"contracting_dims = [{0 if left else 1}] x [{1 if right else 0}]"
    text = program(a.shape, b.shape, dims, (m, n), one, "i32").replace(
        f"{'x'.join(map(str, b.shape))}x{one}", f"{'x'.join(map(str, b.shape))}x{other}"
    )
    executable = stablehlo_py.compile(text, cache=False)
    assert f'"{one},{other}"' in executable.as_text("linalg")  # marked for the emitter
    x, y = a.astype(np.int32), b.astype(np.int32)
    np.testing.assert_array_equal(executable(a, b)[0], (x.T if left else x) @ (y.T if right else y))


def result(a: np.ndarray, b: np.ndarray, element: str, out: str, *, threads: int = 1) -> np.ndarray:
    """a @ b as the CPU target computes it, for (m, k) and (k, n) or a batch of them."""
    dims = "contracting_dims = [1] x [0]"
    if a.ndim == 3:
        dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    text = program(a.shape, b.shape, dims, (*a.shape[:-1], b.shape[-1]), element, out)
    return stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=threads))(a, b)[0]


@pytest.mark.parametrize("element", ["f32", "f16", "bf16", "i8"])
@pytest.mark.parametrize(
    "shape", [(1, 512, 300, 260), (1, 150, 1100, 1500), (3, 200, 200, 300), (5, 400, 90, 700), (1, 300, 2100, 1030)]
)
def test_threads_change_no_bit(shape: tuple[int, int, int, int], element: str) -> None:
    batch, m, n, k = shape
    left, right = ((m, k), (k, n)) if batch == 1 else ((batch, m, k), (batch, k, n))
    a, b = operands(element, left, right)
    out = "i32" if element == "i8" else element
    first = result(a, b, element, out)
    for threads in (2, 3, 7):
        np.testing.assert_array_equal(result(a, b, element, out, threads=threads).view(np.uint8), first.view(np.uint8))


def test_tiles_of_few_registers_cover_the_rows() -> None:
    for columns in (1, 2, 9):
        for m in range(1, 200):
            rows, width = tile_shape(m, columns, 16, 4)
            tiles = -(-m // rows)
            assert rows * width <= 12
            assert width == min(columns, 2)
            # the first tiles leave one row each to the next
            assert tiles * rows - m < tiles


def test_tiles_of_many_registers_leave_room_for_operands() -> None:
    for columns in (1, 2, 3, 4, 5, 9, 64):
        for m in range(1, 200):
            for widest in (2, 4):
                rows, width = tile_shape(m, columns, 32, widest)
                assert rows * width + width < 32
                assert width <= min(columns, widest)
                assert rows <= m


def test_tiles_fit_what_they_divide() -> None:
    assert tile_shape(1024, 64, 32, 4) == (6, 4)
    assert tile_shape(128, 48, 32, 4) == (8, 3)
    # eight or sixteen panels are shared evenly, eleven are not
    assert tile_shape(128, 32, 32, 4, "n") == (13, 2)


# --- bf16: the instruction that takes subnormal numbers for zeros is used only where there are none


def bf16(x: np.ndarray) -> np.ndarray:
    return x.astype(ml_dtypes.bfloat16)


def test_bf16_has_the_bits_of_sums_in_f32() -> None:
    """The same mantissas at exponents that the instruction must not see give the same sums, scaled."""
    a, b = operands("bf16", (40, 900), (900, 50))
    small = np.float32(2.0**-60), np.float32(2.0**-40)
    got = result(a, b, "bf16", "f32")
    low = result(bf16(a.astype(np.float32) * small[0]), bf16(b.astype(np.float32) * small[1]), "bf16", "f32")
    np.testing.assert_array_equal(low.astype(np.float64), got.astype(np.float64) * 2.0**-100)


def test_subnormal_bf16_are_numbers() -> None:
    a, b = np.zeros((20, 70), np.float32), np.zeros((70, 40), np.float32)
    a[3, 11], b[11, :] = 2.0**-130, 2.0**100
    got = result(bf16(a), bf16(b), "bf16", "f32")
    want = np.zeros((20, 40), np.float32)
    want[3] = 2.0**-30
    np.testing.assert_array_equal(got, want)


def test_subnormal_sums_of_bf16_are_kept() -> None:
    a, b = np.full((20, 70), 2.0**-70), np.full((70, 40), 2.0**-66)
    got = result(bf16(a), bf16(b), "bf16", "f32")
    np.testing.assert_array_equal(got, np.full((20, 40), 70 * 2.0**-136, np.float32))


def test_bf16_zeros_infinities_and_nan() -> None:
    a, b = operands("bf16", (20, 40), (40, 33))
    a[3, 5], a[7, 1], a[9] = np.inf, np.nan, 0
    got = result(a, b, "bf16", "f32")
    assert np.isinf(got[3]).all()
    assert np.isnan(got[7]).all()
    np.testing.assert_array_equal(got[9], np.zeros(33, np.float32))


def test_bytes_at_their_extremes_are_exact() -> None:
    """600 products of 128 * 128: sums beyond 2**24, which f32 alone would round."""
    a, b = np.full((20, 1600), -128, np.int8), np.full((1600, 30), -128, np.int8)
    executable = stablehlo_py.compile(
        program(a.shape, b.shape, "contracting_dims = [1] x [0]", (20, 30), "i8", "i32"), cache=False
    )
    np.testing.assert_array_equal(executable(a, b)[0], np.full((20, 30), 1600 * 128 * 128, np.int32))


@pytest.mark.parametrize(
    ("cpu", "instruction"), [("x86-64", "mulps"), ("x86-64-v2", "pmaddwd"), ("x86-64-v3", "vpmaddwd")]
)
@pytest.mark.parametrize("element", ["i8", "ui8"])
@pytest.mark.skipif("+avx2" not in host()[1], reason="runs code for AVX2")
def test_bytes_in_pairs(cpu: str, instruction: str, element: str) -> None:
    """Two products of 16 bits at a time where there is an instruction for it, sums in f32 where not."""
    options = stablehlo_py.Options(codegen=CodegenOptions(cpu=cpu))
    for m, n, k in ((33, 47, 1101), (6, 16, 300), (40, 10, 2)):
        a, b = operands(element, (m, k), (k, n))
        text = program(a.shape, b.shape, "contracting_dims = [1] x [0]", (m, n), element, "i32")
        executable = stablehlo_py.compile(text, cache=False, options=options)
        np.testing.assert_array_equal(executable(a, b)[0], a.astype(np.int32) @ b.astype(np.int32))
        assert m * n * k < 4096 or instruction in executable.as_text("asm")


@pytest.mark.parametrize(
    ("a", "b", "dims", "equation"),
    [
        ((4, 20, 30), (4, 30, 25), "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "bmk,bkn->bmn"),
        ((20, 4, 30), (25, 4, 30), "batching_dims = [1] x [1], contracting_dims = [2] x [2]", "mbk,nbk->bmn"),
        ((30, 4, 20), (30, 25, 4), "batching_dims = [1] x [2], contracting_dims = [0] x [0]", "kbm,knb->bmn"),
        ((6, 8, 5, 7), (5, 7, 40), "contracting_dims = [2, 3] x [0, 1]", "mnkl,klp->mnp"),
        ((6, 8, 5, 7), (7, 5, 40), "contracting_dims = [2, 3] x [1, 0]", "mnkl,lkp->mnp"),
        ((5, 6, 7, 8), (5, 40, 7), "contracting_dims = [0, 2] x [0, 2]", "kmln,kpl->mnp"),
        ((100, 1, 1), (100, 1, 60), "batching_dims = [0] x [0], contracting_dims = [1] x [1]", "bmk,bkn->bmn"),
        ((100, 60, 1), (100, 1, 1), "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "bmk,bkn->bmn"),
        ((90, 1, 70), (90, 70, 1), "batching_dims = [0] x [0], contracting_dims = [2] x [1]", "bmk,bkn->bmn"),
        ((70, 90), (70, 90), "batching_dims = [1] x [1], contracting_dims = [0] x [0]", "kb,kb->b"),
        (
            (2, 3, 16, 8),
            (2, 3, 8, 16),
            "batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2]",
            "xymk,xykn->xymn",
        ),
    ],
)
def test_dimensions_anywhere(a: tuple[int, ...], b: tuple[int, ...], dims: str, equation: str) -> None:
    x, y = operands("f32", a, b)
    want = np.einsum(equation, x.astype(np.float64), y.astype(np.float64))
    executable = stablehlo_py.compile(program(a, b, dims, want.shape, "f32", "f32"), cache=False)
    check(executable(x, y)[0], want, "f32")


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("n", [3, 4, 5, 1030, 1031])
def test_dots_of_any_count_are_shared(cpu: str, m: int, n: int) -> None:
    x, y = operands("f32", (m, 2010), (n, 2010))
    text = program((m, 2010), (n, 2010), "contracting_dims = [1] x [1]", (m, n), "f32", "f32")
    executable = stablehlo_py.compile(text, cache=False)
    (launch,) = executable.program.commands
    assert (launch.end > 1) == (n > 4)
    check(executable(x, y)[0], x.astype(np.float64) @ y.T.astype(np.float64), "f32")


ORDERS_OF_BATCH = [  # of attention first: positions before heads, then behind them, then keys turned
    ("bqhd", "bkhd", "bhqk"),
    ("bhqk", "bkhd", "bhqd"),
    ("bkhd", "bhqk", "bhdq"),
    ("hqbd", "kbhd", "bhqk"),
    ("qhbd", "bdhk", "bhqk"),
    ("xqybzd", "zkbyxd", "bxyzqk"),
    ("hbq", "bhqk", "bhk"),
]


@pytest.mark.parametrize("element", ["f32", "bf16", "i8", "f64"])
@pytest.mark.parametrize(("left", "right", "result"), ORDERS_OF_BATCH)
def test_a_batch_whose_dimensions_lie_apart_is_read_as_it_is_and_shared(
    cpu_of_products: str, left: str, right: str, result: str, element: str
) -> None:
    sizes = {"b": 2, "h": 3, "x": 2, "y": 3, "z": 2, "q": 37, "k": 70, "d": 33}
    out = "i32" if element == "i8" else element
    x, y = operands(element, *(tuple(sizes[d] for d in text) for text in (left, right)))
    want = np.einsum(f"{left},{right}->{result}", x.astype(np.float64), y.astype(np.float64))
    batch = [d for d in result if d in left and d in right]
    summed = [d for d in left if d in right and d not in result]
    dims = ", ".join(
        f"{name} = {[left.index(d) for d in found]} x {[right.index(d) for d in found]}"
        for name, found in (("batching_dims", batch), ("contracting_dims", summed))
    )
    executable = stablehlo_py.compile(program(x.shape, y.shape, dims, want.shape, element, out), cache=False)
    (launch,) = executable.program.commands
    assert launch.end > 1
    check(executable(x, y)[0], want, out)


@pytest.mark.parametrize(("element", "out"), [("f32", "f32"), ("bf16", "f32"), ("i8", "i32")])
def test_transposed_result(element: str, out: str) -> None:
    """transpose(x @ y) is computed as a product of y and x."""
    a, b = operands(element, (3, 30, 70), (3, 30, 45))
    dims = "batching_dims = [0] x [0], contracting_dims = [1] x [1]"
    text = program(a.shape, b.shape, dims, (3, 70, 45), element, out).replace(
        ") -> tensor<3x70x45", ") -> tensor<3x45x70", 1
    )
    last = f"  return %0 : tensor<3x70x45x{out}>"
    moved = f"  %1 = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<3x70x45x{out}>) -> tensor<3x45x70x{out}>\n"
    executable = stablehlo_py.compile(text.replace(last, f"{moved}  return %1 : tensor<3x45x70x{out}>"), cache=False)
    assert len(executable.program.commands) == 1
    wide = np.int64 if element == "i8" else np.float64
    check(executable(a, b)[0], np.einsum("bkm,bkn->bnm", a.astype(wide), b.astype(wide)), out)


def test_no_subnormal_is_lost() -> None:
    tiny = np.float32(1e-40)
    a, b = np.full((16, 64), tiny), np.ones((64, 32), np.float32)
    executable = stablehlo_py.compile(
        program(a.shape, b.shape, "contracting_dims = [1] x [0]", (16, 32), "f32", "f32"), cache=False
    )
    np.testing.assert_array_equal(executable(a, b)[0], np.full((16, 32), np.float32(64) * tiny))


def test_infinities_and_nan_reach_their_row_alone() -> None:
    a, b = operands("f32", (20, 40), (40, 33))
    a[3, 5], a[7, 1] = np.inf, np.nan
    executable = stablehlo_py.compile(
        program(a.shape, b.shape, "contracting_dims = [1] x [0]", (20, 33), "f32", "f32"), cache=False
    )
    got = executable(a, b)[0]
    assert np.isinf(got[3]).all()
    assert np.isnan(got[7]).all()
    rest = [i for i in range(20) if i not in (3, 7)]
    assert np.isfinite(got[rest]).all()


@pytest.mark.parametrize("element", ["f32", "f64", "i32", "bf16", "i8"])
@pytest.mark.parametrize(
    ("batch", "m", "n", "k"),
    [(1, 13, 17, 1), (1, 14, 33, 5), (1, 128, 130, 7), (1, 31, 400, 23), (3, 20, 50, 40), (1, 64, 99, 2049)],
)
def test_panels_packed_beside_tiles(batch: int, m: int, n: int, k: int, element: str) -> None:
    """Few rows on 16 registers: fewer steps than tiles, more, several blocks; the same bits however panels are dealt out."""
    a, b = operands(element, (batch, m, k), (batch, k, n))
    out = {"bf16": "f32", "i8": "i32"}.get(element, element)
    dims = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    text = program(a.shape, b.shape, dims, (batch, m, n), element, out)
    wide = np.int64 if a.dtype.kind in "iu" else np.float64
    results = []
    for threads in (1, 2, 3):
        codegen = CodegenOptions(cpu="x86-64-v3")
        options = stablehlo_py.Options(threads=threads, codegen=codegen)
        results.append(stablehlo_py.compile(text, cache=False, options=options)(a, b)[0])
    check(results[0], a.astype(wide) @ b.astype(wide), out)
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
