"""Ops that only move elements, as kernels of transfers and lanes, bit by bit against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.core.types import element_type
from stablehlo_py.machine.tpu import chip as machine
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret
from stablehlo_py.simulator import timed
from stablehlo_py.targets.tpu.planning import box as boxes

from .kernels import compile_text


def tensor(shape: tuple[int, ...], element: str) -> str:
    return "tensor<" + "".join(f"{d}x" for d in shape) + element + ">"


def check(text: str, *arrays: np.ndarray, kernels: int = 1, **options) -> None:
    """All of it runs on the chip, in so many kernels, and gives the interpreter's bits."""
    program = compile_text(text, **options)
    assert len(program.kernels) == kernels
    report = program.report()
    assert (report.host, report.notes) == ({}, ())
    with new_context(), ir.Location.unknown():
        expected = interpret(ir.Module.parse(text), *arrays)
    for ours, theirs in zip(program(*arrays), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def unary(op: str, source: tuple[int, ...], target: tuple[int, ...], element: str) -> str:
    """@main of one op on %x; %z is the number 7."""
    number = "7" if element.startswith("i") else "7.0"
    a, b, z = tensor(source, element), tensor(target, element), tensor((), element)
    signature = f"({a}, {z}) -> {b}" if op.startswith("pad") else f"({a}) -> {b}"
    return f"""func.func @main(%x: {a}) -> {b} {{
      %z = stablehlo.constant dense<{number}> : {z}
      %r = stablehlo.{op} : {signature}
      return %r : {b} }}"""


def numbers(shape: tuple[int, ...], element: str, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-100, 100, shape).astype(element_type(element).dtype)


OPS = [
    ("transpose %x, dims = [1, 0]", (300, 500), (500, 300)),
    ("transpose %x, dims = [1, 0]", (1, 500), (500, 1)),
    ("transpose %x, dims = [1, 0, 2]", (5, 7, 256), (7, 5, 256)),
    ("transpose %x, dims = [0, 2, 1]", (5, 70, 256), (5, 256, 70)),
    ("transpose %x, dims = [2, 1, 0]", (5, 70, 133), (133, 70, 5)),
    ("transpose %x, dims = [3, 1, 0, 2]", (3, 5, 7, 30), (30, 5, 3, 7)),
    ("reshape %x", (70, 384), (70, 3, 128)),
    ("reshape %x", (70, 192), (70, 3, 64)),
    ("reshape %x", (70, 3, 64), (70, 192)),
    ("reshape %x", (6, 35), (210,)),
    ("reshape %x", (3, 7, 50), (21, 50)),
    ("slice %x [3:60:2, 5:100]", (70, 192), (29, 95)),
    ("slice %x [3:60, 5:100:3]", (70, 192), (57, 32)),
    ("slice %x [3:60, 128:256]", (70, 384), (57, 128)),
    ("slice %x [7:8, 0:192]", (70, 192), (1, 192)),
    ("slice %x [5:190]", (192,), (185,)),
    ("reverse %x, dims = [0, 1]", (70, 192), (70, 192)),
    ("pad %x, %z, low = [1, 2], high = [3, 4], interior = [0, 1]", (70, 192), (74, 389)),
    ("pad %x, %z, low = [-1, 2], high = [3, -4], interior = [2, 0]", (70, 192), (210, 190)),
    ("pad %x, %z, low = [0, 2], high = [0, 0], interior = [0, 0]", (70, 192), (70, 194)),
    ("pad %x, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0]", (2, 9, 9, 5), (2, 11, 11, 5)),
    ("broadcast_in_dim %x, dims = [0]", (70,), (70, 192)),
    ("broadcast_in_dim %x, dims = [1]", (192,), (70, 192)),
    ("broadcast_in_dim %x, dims = [0, 2]", (5, 192), (5, 20, 192)),
]


@pytest.mark.parametrize(("chip", "element"), [("v5e", "f32"), ("v4-megacore", "bf16"), ("v5p", "i8")])
@pytest.mark.parametrize(("op", "source", "target"), OPS)
def test_one_op(op, source, target, chip, element):
    moved = not (op.startswith("transpose") and 1 in source)
    check(unary(op, source, target, element), numbers(source, element), chip=chip, kernels=int(moved))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize(("chip", "element"), [("v5e", "f32"), ("v4-megacore", "bf16")])
def test_concatenate(dim, chip, element):
    a, b = ((40, 192), (3, 192)) if dim == 0 else ((40, 192), (40, 5))
    out = (43, 192) if dim == 0 else (40, 197)
    text = f"""func.func @main(%x: {tensor(a, element)}, %y: {tensor(b, element)}) -> {tensor(out, element)} {{
      %r = stablehlo.concatenate %x, %y, dim = {dim}
        : ({tensor(a, element)}, {tensor(b, element)}) -> {tensor(out, element)}
      return %r : {tensor(out, element)} }}"""
    check(text, numbers(a, element), numbers(b, element, 1), chip=chip)


@pytest.mark.parametrize("start", [(3, 2), (100, -7)])
@pytest.mark.parametrize(("chip", "element"), [("v5e", "f32"), ("v4-megacore", "bf16"), ("v6e", "i8")])
def test_dynamic_slice_and_update(start, chip, element):
    x, u = (50, 9, 70), (4, 5, 70)
    scalars = "tensor<i32>, tensor<i32>, tensor<i32>"
    text = f"""func.func @main(%x: {tensor(x, element)}, %u: {tensor(u, element)}, %a: tensor<i32>, %b: tensor<i32>)
        -> ({tensor(u, element)}, {tensor(x, element)}) {{
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r = stablehlo.dynamic_slice %x, %a, %b, %z, sizes = [4, 5, 70]
        : ({tensor(x, element)}, {scalars}) -> {tensor(u, element)}
      %s = stablehlo.dynamic_update_slice %x, %u, %a, %b, %z
        : ({tensor(x, element)}, {tensor(u, element)}, {scalars}) -> {tensor(x, element)}
      return %r, %s : {tensor(u, element)}, {tensor(x, element)} }}"""
    arrays = (numbers(x, element), numbers(u, element, 1), *(np.array(s, np.int32) for s in start))
    check(text, *arrays, chip=chip, kernels=2)


def gather_text(table: tuple[int, ...], indices: tuple[int, ...], element: str, slices: str, more: str = "") -> str:
    """Entries of the first dimension of a table, by indices of any shape."""
    out = (*indices, *table[1:])
    last = len(indices)
    offsets = ", ".join(str(d) for d in range(last, len(out)))
    return f"""func.func @main(%x: {tensor(table, element)}, %i: {tensor(indices, "i32")}) -> {tensor(out, element)} {{
      %r = "stablehlo.gather"(%x, %i) {{dimension_numbers = #stablehlo.gather<offset_dims = [{offsets}],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {last}>,
        slice_sizes = array<i64: {slices}>}} : ({tensor(table, element)}, {tensor(indices, "i32")}) -> {tensor(out, element)}
      return %r : {tensor(out, element)} }}"""


@pytest.mark.parametrize(("chip", "element"), [("v5e", "f32"), ("v4-megacore", "bf16"), ("v6e", "i8")])
@pytest.mark.parametrize(("table", "indices", "slices"), [((50, 70), (35,), "1, 70"), ((50, 9, 70), (11,), "1, 9, 70")])
def test_gather(table, indices, slices, chip, element):
    i = np.random.default_rng(5).integers(-5, 60, indices).astype(np.int32)  # some of them outside: they are clamped
    check(gather_text(table, indices, element, slices), numbers(table, element), i, chip=chip)


def test_a_chain_is_one_kernel():
    """The heads of one of three projections, out of rows that hold all of them, rounded to bf16."""
    text = """func.func @main(%x: tensor<32x192xf32>) -> tensor<4x32x16xbf16> {
      %a = stablehlo.reshape %x : (tensor<32x192xf32>) -> tensor<32x3x4x16xf32>
      %b = stablehlo.transpose %a, dims = [1, 2, 0, 3] : (tensor<32x3x4x16xf32>) -> tensor<3x4x32x16xf32>
      %c = stablehlo.slice %b [1:2, 0:4, 0:32, 0:16] : (tensor<3x4x32x16xf32>) -> tensor<1x4x32x16xf32>
      %d = stablehlo.reshape %c : (tensor<1x4x32x16xf32>) -> tensor<4x32x16xf32>
      %r = stablehlo.convert %d : (tensor<4x32x16xf32>) -> tensor<4x32x16xbf16>
      return %r : tensor<4x32x16xbf16> }"""
    check(text, np.random.default_rng(6).standard_normal((32, 192)).astype(np.float32))


def test_what_stays_on_the_host_is_said():
    text = unary("reshape %x", (6, 35), (14, 15), "f32")
    report = compile_text(text).report()
    assert report.host == {"stablehlo.reshape": 1}
    assert "sizes do not fit together" in report.notes[0]
    report = compile_text(unary("transpose %x, dims = [1, 0]", (3, 5), (5, 3), "f64")).report()
    assert "no registers of f64" in report.notes[0]


def test_rows_are_cheaper_than_lanes():
    """Rows of whole words move as fast as memory goes; a transpose pads more, and single rows of bf16 share their words."""

    def cycles(op: str, source: tuple[int, ...], target: tuple[int, ...]) -> float:
        (kernel,) = compile_text(unary(op, source, target, "bf16")).report().kernels
        return kernel.cycles

    rows = cycles("slice %x [0:64, 0:64, 0:256]", (65, 64, 256), (64, 64, 256))
    lanes = cycles("transpose %x, dims = [0, 2, 1]", (64, 64, 256), (64, 256, 64))
    single = cycles("transpose %x, dims = [2, 1, 0]", (64, 64, 256), (256, 64, 64))
    assert rows < lanes < single


def test_cut_short_is_like_the_whole():
    program = compile_text(unary("transpose %x, dims = [1, 0]", (4096, 3000), (3000, 4096), "f32"))
    (kernel,) = program.kernels
    short, exact = (timed.time_program(kernel, machine("v5e"), exact=e).cycles for e in (False, True))
    assert short == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("seed", range(30))
def test_boxes_say_what_numpy_does(seed):
    """Random chains of reshapes, transposes, slices and reverses: the box takes the elements that NumPy takes."""
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 4, 6], 4))
    source = np.arange(np.prod(shape)).reshape(shape)
    value, box = source, boxes.whole(shape)
    for _ in range(4):
        kind = int(rng.integers(0, 4))
        if kind == 0:
            order = [int(d) for d in rng.permutation(value.ndim)]
            value, new = value.transpose(order), boxes.transposed(box, order)
        elif kind == 1:
            flat = [*value.shape[:-2], value.shape[-1] * value.shape[-2]] if value.ndim > 2 else [*value.shape, 1]
            value, new = value.reshape(flat), boxes.reshaped(box, flat)
        elif kind == 2:
            starts = [int(rng.integers(0, n)) for n in value.shape]
            sizes = [int(rng.integers(1, n - s + 1)) for n, s in zip(value.shape, starts, strict=True)]
            cut = tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))
            value, new = value[cut], boxes.sliced(box, starts, sizes, [1] * len(sizes))
        else:
            value = np.flip(value)
            new = boxes.sliced(box, [n - 1 for n in value.shape], value.shape, [-1] * value.ndim)
        if new is None:
            return  # what is no box is not moved
        box = new
    assert box.shape == value.shape
    found = np.full(value.shape, -1)
    small = boxes.merged(box)
    for index in np.ndindex(*(f.size for f in small.factors)):
        a, b = list(small.source_first), list(small.target_first)
        for i, f in zip(index, small.factors, strict=True):
            a[f.source] += f.source_step * i
            b[f.target] += f.target_step * i
        found[tuple(b)] = source[tuple(a)]
    np.testing.assert_array_equal(found, value)


def test_a_kernel_whose_place_is_read_stays_in_fast_memory():
    """Between two kernels that share it among cores: the row's number comes from memory, not from a loop or a core."""
    text = """func.func @main(%x: tensor<64x256xf32>, %u: tensor<1x256xf32>, %i: tensor<i32>) -> tensor<64x256xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %y = stablehlo.add %x, %x : tensor<64x256xf32>
      %s = stablehlo.dynamic_update_slice %y, %u, %i, %zero
        : (tensor<64x256xf32>, tensor<1x256xf32>, tensor<i32>, tensor<i32>) -> tensor<64x256xf32>
      %r = stablehlo.add %s, %s : tensor<64x256xf32>
      return %r : tensor<64x256xf32>
    }"""
    x, u = (np.random.default_rng(3).standard_normal(s).astype(np.float32) for s in ((64, 256), (1, 256)))
    for place in (5, 99):
        check(text, x, u, np.int32(place), kernels=3)


def test_notes_name_the_line_once():
    text = """func.func @main(%x: tensor<4xui64>) -> (tensor<3x4xui64>, tensor<3x4xui64>) {
      %a = call @f(%x) : (tensor<4xui64>) -> tensor<3x4xui64>
      %y = stablehlo.add %x, %x : tensor<4xui64>
      %b = call @f(%y) : (tensor<4xui64>) -> tensor<3x4xui64>
      return %a, %b : tensor<3x4xui64>, tensor<3x4xui64>
    }
    func.func private @f(%x: tensor<4xui64>) -> tensor<3x4xui64> {
      %a = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<4xui64>) -> tensor<3x4xui64>
      return %a : tensor<3x4xui64>
    }"""
    assert compile_text(text).report().notes == (
        "stablehlo.broadcast_in_dim at <text>:8:12 runs on the host: the chip has no registers of ui64",
    )
