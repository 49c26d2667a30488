"""Folding and simplifying change no value: small programs before and after, on NaN, infinities, zeros and extremes."""

from __future__ import annotations

import re

import numpy as np
import pytest

from stablehlo_py.core.types import tensor_type
from stablehlo_py.mlir import PassManager, ir, new_context
from stablehlo_py.reference.interpreter import interpret
from stablehlo_py.transforms.simplify.hlo_fold import HloFold
from stablehlo_py.transforms.simplify.hlo_simplify import HloSimplify

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -3e-39, 3.4e38, -3.4e38, 0.5, 2.5, 16777217.0]

# what the program is: arguments, lines and results with T, S .. for types; and the op that must be gone, or stay
ROWS: list[tuple[str, str, str, str]] = []


def _row(gone: str, arguments: str, results: str, body: str) -> None:
    ROWS.append((gone, arguments, results, body))


def _binary(gone: str, name: str, ty: str, number: str, *, swapped: bool = False) -> None:
    operands = "%c, %x" if swapped else "%x, %c"
    _row(
        gone,
        f"%x: {ty}",
        ty,
        f"%c = stablehlo.constant dense<{number}> : {ty}\n%r = stablehlo.{name} {operands} : {ty}",
    )


F, S, U, B = "tensor<14xf32>", "tensor<14xi8>", "tensor<14xui8>", "tensor<14xi1>"
INF = {"f32": ("0x7F800000", "0xFF800000"), "f64": ("0x7FF0000000000000", "0xFFF0000000000000")}
for ty in (F, "tensor<14xf64>", "tensor<14xbf16>"):
    _binary("-add", "add", ty, "-0.0")
    _binary("add", "add", ty, "0.0")
    _binary("-subtract", "subtract", ty, "0.0")
    _binary("subtract", "subtract", ty, "-0.0")
    _binary("-multiply", "multiply", ty, "1.0", swapped=True)
    _binary("multiply", "multiply", ty, "0.0")
    _binary("-multiply", "multiply", ty, "-1.0")
    _binary("-divide", "divide", ty, "1.0")
    _binary("-divide", "divide", ty, "0.125")
    _binary("divide", "divide", ty, "0.3")
    _binary("divide", "divide", ty, "1.0e-39")
    _binary("-power", "power", ty, "1.0")
    _binary("-power", "power", ty, "2.0")
    _binary("power", "power", ty, "3.0")
for ty in (F, "tensor<14xf64>"):
    high, low = INF["f32" if ty == F else "f64"]
    _binary("-maximum", "maximum", ty, low)
    _binary("maximum", "maximum", ty, high)
    _binary("-minimum", "minimum", ty, high)
    limits = f"%a = stablehlo.constant dense<{low}> : {ty}\n%b = stablehlo.constant dense<{high}> : {ty}\n"
    _row("-clamp", f"%x: {ty}", ty, f"{limits}%r = stablehlo.clamp %a, %x, %b : {ty}")
for ty, least, most in ((S, -128, 127), (U, 0, 255), ("tensor<14xi64>", -(2**63), 2**63 - 1)):
    for name, number in (("add", 0), ("subtract", 0), ("multiply", 1), ("multiply", 0), ("divide", 1), ("or", 0)):
        _binary(f"-{name}", name, ty, str(number))
    for name, number in (("xor", 0), ("and", 0), ("shift_left", 0), ("shift_right_logical", 0)):
        _binary(f"-{name}", name, ty, str(number))
    ones = most if ty == U else -1
    for name, number in (("and", ones), ("or", ones), ("maximum", least), ("minimum", most)):
        _binary(f"-{name}", name, ty, str(number))
    _binary("maximum", "maximum", ty, str(least + 1))
    for name in ("subtract", "xor", "and", "or", "maximum", "minimum"):
        _row(f"-{name}", f"%x: {ty}", ty, f"%r = stablehlo.{name} %x, %x : {ty}")
_binary("-multiply", "multiply", S, "-1")
for name, ty in (("negate", F), ("negate", S), ("not", S), ("not", B)):
    _row(f"-{name}", f"%x: {ty}", ty, f"%0 = stablehlo.{name} %x : {ty}\n%r = stablehlo.{name} %0 : {ty}")
for ty in (F, S):
    negated = f"%0 = stablehlo.negate %y : {ty}\n"
    _row("-negate", f"%x: {ty}, %y: {ty}", ty, negated + f"%r = stablehlo.add %x, %0 : {ty}")
    _row("-negate", f"%x: {ty}, %y: {ty}", ty, negated + f"%r = stablehlo.add %0, %x : {ty}")
    _row("-negate", f"%x: {ty}, %y: {ty}", ty, negated + f"%r = stablehlo.subtract %x, %0 : {ty}")
    _row("-negate", f"%x: {ty}", ty, f"%0 = stablehlo.negate %x : {ty}\n%r = stablehlo.abs %0 : {ty}")
both = f"%0 = stablehlo.negate %x : {F}\n%1 = stablehlo.negate %y : {F}\n"
_row("-negate", f"%x: {F}, %y: {F}", F, both + f"%r = stablehlo.multiply %0, %1 : {F}")
_row("-negate", f"%x: {F}, %y: {F}", F, both + f"%r = stablehlo.divide %0, %1 : {F}")
_row("subtract", f"%x: {F}", F, f"%r = stablehlo.subtract %x, %x : {F}")
_row("-maximum", f"%x: {F}", F, f"%r = stablehlo.maximum %x, %x : {F}")
for name in ("abs", "floor", "ceil", "sign", "round_nearest_even"):
    _row("", f"%x: {F}", F, f"%0 = stablehlo.{name} %x : {F}\n%r = stablehlo.{name} %0 : {F}")
C = "tensor<14xcomplex<f32>>"
_row("-complex", f"%x: {F}, %y: {F}", F, f"%0 = stablehlo.complex %x, %y : {C}\n%r = stablehlo.real %0 : ({C}) -> {F}")
_row("-complex", f"%x: {F}, %y: {F}", F, f"%0 = stablehlo.complex %x, %y : {C}\n%r = stablehlo.imag %0 : ({C}) -> {F}")

# select, compare
for flag, gone in (("true", "-select"), ("false", "-select")):
    known = f"%p = stablehlo.constant dense<{flag}> : {B}\n"
    _row(gone, f"%x: {F}, %y: {F}", F, known + f"%r = stablehlo.select %p, %x, %y : {B}, {F}")
_row("-select", f"%p: {B}, %x: {F}", F, f"%r = stablehlo.select %p, %x, %x : {B}, {F}")
_row(
    "-not",
    f"%p: {B}, %x: {F}, %y: {F}",
    F,
    f"%0 = stablehlo.not %p : {B}\n%r = stablehlo.select %0, %x, %y : {B}, {F}",
)
_row(
    "",
    f"%p: {B}, %x: {F}, %y: {F}",
    F,
    f"%0 = stablehlo.select %p, %x, %y : {B}, {F}\n%r = stablehlo.select %p, %y, %0 : {B}, {F}",
)
for ty, gone in ((S, "-compare"), (F, "compare")):
    for direction in ("EQ", "NE", "LT", "GE"):
        _row(gone, f"%x: {ty}", B, f"%r = stablehlo.compare {direction}, %x, %x : ({ty}, {ty}) -> {B}")
zero = f"%c = stablehlo.constant dense<0> : {U}\n"
_row("-compare", f"%x: {U}", B, zero + f"%r = stablehlo.compare LT, %x, %c : ({U}, {U}) -> {B}")
_row("compare", f"%x: {U}", B, zero + f"%r = stablehlo.compare GT, %x, %c : ({U}, {U}) -> {B}")
made = f"%0 = stablehlo.convert %p : ({B}) -> {U}\n"
_row("-compare", f"%p: {B}", B, zero + made + f"%r = stablehlo.compare NE, %0, %c : ({U}, {U}) -> {B}")

# conversions
for a, b, c, gone in (
    ("i8", "i32", "f32", True),
    ("i8", "f32", "i8", True),
    ("bf16", "f32", "bf16", True),
    ("f32", "bf16", "f32", False),
    ("i32", "i8", "i32", False),
    ("ui8", "i16", "i32", True),
    ("i8", "ui16", "i32", False),
    ("i1", "i32", "f32", True),
    ("i32", "f32", "f64", False),
    ("f16", "f64", "f32", True),
):
    first, second, third = (f"tensor<14x{t}>" for t in (a, b, c))
    lines = f"%0 = stablehlo.convert %x : ({first}) -> {second}\n%r = stablehlo.convert %0 : ({second}) -> {third}"
    _row("-" + second if gone else second, f"%x: {first}", third, lines)

# moves
M, N = "tensor<3x1x4xf32>", "tensor<4x3xf32>"
MOVES = [
    (
        "",
        M,
        N,
        f"%0 = stablehlo.reshape %x : ({M}) -> tensor<12xf32>\n%r = stablehlo.reshape %0 : (tensor<12xf32>) -> {N}",
    ),
    (
        "-transpose",
        M,
        M,
        f"%0 = stablehlo.transpose %x, dims = [2, 0, 1] : ({M}) -> tensor<4x3x1xf32>\n"
        f"%r = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<4x3x1xf32>) -> {M}",
    ),
    (
        "-transpose",
        M,
        "tensor<1x3x4xf32>",
        f"%r = stablehlo.transpose %x, dims = [1, 0, 2] : ({M}) -> tensor<1x3x4xf32>",
    ),
    (
        "-transpose",
        N,
        "tensor<4x3x2xf32>",
        f"%0 = stablehlo.broadcast_in_dim %x, dims = [1, 2] : ({N}) -> tensor<2x4x3xf32>\n"
        "%r = stablehlo.transpose %0, dims = [1, 2, 0] : (tensor<2x4x3xf32>) -> tensor<4x3x2xf32>",
    ),
    (
        "-reshape",
        "tensor<3xf32>",
        N,
        "%0 = stablehlo.reshape %x : (tensor<3xf32>) -> tensor<1x3xf32>\n"
        f"%r = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x3xf32>) -> {N}",
    ),
    (
        "-broadcast_in_dim",
        N,
        "tensor<4x1x3x1xf32>",
        f"%r = stablehlo.broadcast_in_dim %x, dims = [0, 2] : ({N}) -> tensor<4x1x3x1xf32>",
    ),
    (
        "broadcast_in_dim",
        "tensor<3x3xf32>",
        "tensor<3x3xf32>",
        "%r = stablehlo.broadcast_in_dim %x, dims = [1, 0] : (tensor<3x3xf32>) -> tensor<3x3xf32>",
    ),
    (
        "",
        "tensor<3xf32>",
        "tensor<2x4x3xf32>",
        f"%0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> {N}\n"
        f"%r = stablehlo.broadcast_in_dim %0, dims = [1, 2] : ({N}) -> tensor<2x4x3xf32>",
    ),
    (
        "",
        "tensor<20xf32>",
        "tensor<3xf32>",
        "%0 = stablehlo.slice %x [3:20:2] : (tensor<20xf32>) -> tensor<9xf32>\n"
        "%r = stablehlo.slice %0 [1:8:3] : (tensor<9xf32>) -> tensor<3xf32>",
    ),
    (
        "-concatenate",
        N,
        "tensor<2x3xf32>",
        f"%0 = stablehlo.concatenate %x, %x, %x, dim = 0 : ({N}, {N}, {N}) -> tensor<12x3xf32>\n"
        "%r = stablehlo.slice %0 [5:8:2, 0:3] : (tensor<12x3xf32>) -> tensor<2x3xf32>",
    ),
    (
        "concatenate",
        N,
        "tensor<2x3xf32>",
        f"%0 = stablehlo.concatenate %x, %x, dim = 0 : ({N}, {N}) -> tensor<8x3xf32>\n"
        "%r = stablehlo.slice %0 [3:5, 0:3] : (tensor<8x3xf32>) -> tensor<2x3xf32>",
    ),
    (
        "-pad",
        N,
        "tensor<3x2xf32>",
        "%c = stablehlo.constant dense<2.0> : tensor<f32>\n"
        f"%0 = stablehlo.pad %x, %c, low = [2, 1], high = [1, 1], interior = [0, 0] : ({N}, tensor<f32>) -> tensor<7x5xf32>\n"
        "%r = stablehlo.slice %0 [3:6, 1:4:2] : (tensor<7x5xf32>) -> tensor<3x2xf32>",
    ),
    (
        "pad",
        N,
        "tensor<3x3xf32>",
        "%c = stablehlo.constant dense<2.0> : tensor<f32>\n"
        f"%0 = stablehlo.pad %x, %c, low = [2, 1], high = [1, 1], interior = [0, 0] : ({N}, tensor<f32>) -> tensor<7x5xf32>\n"
        "%r = stablehlo.slice %0 [1:4, 1:4] : (tensor<7x5xf32>) -> tensor<3x3xf32>",
    ),
    (
        "-pad",
        N,
        "tensor<2x3xf32>",
        "%c = stablehlo.constant dense<2.0> : tensor<f32>\n"
        f"%r = stablehlo.pad %x, %c, low = [-1, 0], high = [-1, 0], interior = [0, 0] : ({N}, tensor<f32>) -> tensor<2x3xf32>",
    ),
    (
        "",
        "tensor<2xf32>",
        "tensor<8xf32>",
        "%c = stablehlo.constant dense<2.0> : tensor<f32>\n"
        "%0 = stablehlo.pad %x, %c, low = [1], high = [0], interior = [0] : (tensor<2xf32>, tensor<f32>) -> tensor<3xf32>\n"
        "%r = stablehlo.pad %0, %c, low = [2], high = [3], interior = [0] : (tensor<3xf32>, tensor<f32>) -> tensor<8xf32>",
    ),
    (
        "-slice",
        N,
        N,
        f"%0 = stablehlo.slice %x [0:2, 0:3] : ({N}) -> tensor<2x3xf32>\n"
        f"%1 = stablehlo.slice %x [2:4, 0:3] : ({N}) -> tensor<2x3xf32>\n"
        f"%r = stablehlo.concatenate %0, %1, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> {N}",
    ),
    (
        "-reverse",
        N,
        N,
        f"%0 = stablehlo.reverse %x, dims = [0, 1] : {N}\n%r = stablehlo.reverse %0, dims = [0, 1] : {N}",
    ),
    ("", N, N, f"%0 = stablehlo.reverse %x, dims = [0, 1] : {N}\n%r = stablehlo.reverse %0, dims = [0] : {N}"),
    ("-reverse", M, M, f"%r = stablehlo.reverse %x, dims = [1] : {M}"),
    (
        "-tensor<4x3xf32>",
        "tensor<3xf32>",
        "tensor<2x2xf32>",
        f"%0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> {N}\n"
        f"%r = stablehlo.slice %0 [1:4:2, 1:3] : ({N}) -> tensor<2x2xf32>",
    ),
    (
        "-transpose",
        N,
        N,
        "%0 = stablehlo.iota dim = 0 : tensor<3x4xf32>\n"
        f"%1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x4xf32>) -> {N}\n%r = stablehlo.add %1, %x : {N}",
    ),
]
# indices
IX = "%a = stablehlo.constant dense<2> : tensor<i32>\n%b = stablehlo.constant dense<-5> : tensor<i32>\n"
MOVES += [
    (
        "-dynamic_slice",
        N,
        "tensor<3x2xf32>",
        IX
        + f"%r = stablehlo.dynamic_slice %x, %a, %b, sizes = [3, 2] : ({N}, tensor<i32>, tensor<i32>) -> tensor<3x2xf32>",
    ),
    (
        "-gather",
        N,
        "tensor<3xf32>",
        "%i = stablehlo.constant dense<[7]> : tensor<1xi32>\n"
        '%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], '
        "collapsed_slice_dims = [0], start_index_map = [0]>, slice_sizes = array<i64: 1, 3>}> "
        f": ({N}, tensor<1xi32>) -> tensor<3xf32>",
    ),
    (
        "-dynamic_update_slice",
        N,
        N,
        IX + f"%0 = stablehlo.negate %x : {N}\n"
        f"%r = stablehlo.dynamic_update_slice %x, %0, %a, %b : ({N}, {N}, tensor<i32>, tensor<i32>) -> {N}",
    ),
    (
        "-reduce",
        M,
        "tensor<3x4xf32>",
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        "%r = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1]"
        f" : ({M}, tensor<f32>) -> tensor<3x4xf32>",
    ),
    (
        "reduce",
        M,
        "tensor<4xf32>",
        "%c = stablehlo.constant dense<0.0> : tensor<f32>\n%r = stablehlo.reduce(%x init: %c) "
        f"applies stablehlo.maximum across dimensions = [0, 1] : ({M}, tensor<f32>) -> tensor<4xf32>",
    ),
    (
        "-reduce",
        "tensor<3xf32>",
        "tensor<3xf32>",
        f"%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
        f"%0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> {N}\n"
        "%r = stablehlo.reduce(%0 init: %c) applies stablehlo.minimum across dimensions = [0]"
        f" : ({N}, tensor<f32>) -> tensor<3xf32>",
    ),
]
for move in MOVES:
    _row(move[0], f"%x: {move[1]}", move[2], move[3])
_row(
    "batching_dims",
    "%x: tensor<1x2x3xi32>, %y: tensor<1x3x4xi32>",
    "tensor<1x2x4xi32>",
    "%r = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1]"
    " : (tensor<1x2x3xi32>, tensor<1x3x4xi32>) -> tensor<1x2x4xi32>",
)
ROWS[-1] = ("-" + ROWS[-1][0], *ROWS[-1][1:])
_row(
    "-convolution",
    "%x: tensor<2x5x4x3xi32>, %y: tensor<1x1x3x6xi32>",
    "tensor<2x5x4x6xi32>",
    "%r = stablehlo.convolution(%x, %y) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}"
    " {feature_group_count = 1 : i64, batch_group_count = 1 : i64}"
    " : (tensor<2x5x4x3xi32>, tensor<1x1x3x6xi32>) -> tensor<2x5x4x6xi32>",
)
_row(
    "convolution",
    "%x: tensor<2x3x5x4xi32>, %y: tensor<6x3x1x1xi32>",
    "tensor<2x6x5x4xi32>",
    "%r = stablehlo.convolution(%x, %y) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}"
    " {feature_group_count = 1 : i64, batch_group_count = 1 : i64}"
    " : (tensor<2x3x5x4xi32>, tensor<6x3x1x1xi32>) -> tensor<2x6x5x4xi32>",
)


def _while(bound: int) -> str:
    return f"""
  %i0 = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<{bound}> : tensor<i32>
  %w:4 = stablehlo.while(%i = %i0, %v = %x, %d = %x, %e = %x) : tensor<i32>, {F}, {F}, {F}
    cond {{
      %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %n = stablehlo.add %i, %one : tensor<i32>
      %vv = stablehlo.add %v, %v : {F}
      %dd = stablehlo.multiply %d, %e : {F}
      %ee = stablehlo.divide %e, %v : {F}
      stablehlo.return %n, %vv, %dd, %ee : tensor<i32>, {F}, {F}, {F}
    }}
  %r = stablehlo.abs %w#1 : {F}"""


for bound, gone in ((0, "-while"), (1, "-while"), (3, "-while"), (30, "-multiply"), (-4, "-while")):
    _row(gone, f"%x: {F}", F, _while(bound))
for flag in ("true", "false"):
    _row(
        "-stablehlo.if",
        f"%x: {F}",
        F,
        f"%p = stablehlo.constant dense<{flag}> : tensor<i1>\n"
        f'%r = "stablehlo.if"(%p) ({{\n%0 = stablehlo.negate %x : {F}\nstablehlo.return %0 : {F}\n}}, '
        f"{{\nstablehlo.return %x : {F}\n}}) : (tensor<i1>) -> {F}",
    )


def _input(text: str, rng: np.random.Generator) -> np.ndarray:
    ty = tensor_type(ir.Type.parse(text))
    element = ty.element
    if element.is_bool:
        return rng.integers(0, 2, ty.shape).astype(bool)
    if element.is_float:
        special = rng.permutation(SPECIAL)
        with np.errstate(all="ignore"):
            return np.resize(special, ty.shape).astype(element.dtype)
    info = np.iinfo(element.dtype)
    edges = np.array([0, 1, info.min, info.max, 3], element.dtype)
    return np.resize(rng.permutation(edges), ty.shape)


def _bits(array: np.ndarray) -> list[object]:
    """The elements with the sign of zeros, all NaNs alike."""
    if array.dtype.kind in "fV":
        wide = array.astype(np.float64)
        return [("nan",) if x != x else (x, bool(np.signbit(x))) for x in wide.reshape(-1).tolist()]
    return array.reshape(-1).tolist()


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return new_context()


@pytest.mark.parametrize("row", ROWS, ids=[f"{i}{row[0]}" for i, row in enumerate(ROWS)])
def test_same_bits(context: ir.Context, row: tuple[str, str, str, str]) -> None:
    wanted, arguments, result, body = row
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nreturn %r : {result}\n}}"
    rng = np.random.default_rng(len(body))
    with context, ir.Location.unknown():
        before, after = ir.Module.parse(text), ir.Module.parse(text)
        for step in (HloFold(), HloSimplify(), HloFold()):
            step.run(after.operation)
        PassManager.parse("builtin.module(cse,trivial-dce)").run(after.operation)
        assert after.operation.verify()
        shown = str(after)
        if wanted:
            word = wanted.removeprefix("-")
            there = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", shown) is not None
            assert there is not wanted.startswith("-"), shown
        for _ in range(3):
            arrays = [_input(t, rng) for t in re.findall(r"%\w+: (tensor<(?:[^<>]|<[^<>]*>)*>)", arguments)]
            expected, found = interpret(before, *arrays), interpret(after, *arrays)
            for x, y in zip(expected, found, strict=True):
                assert x.dtype == y.dtype and x.shape == y.shape
                assert _bits(x) == _bits(y), shown
