"""Random graphs with symbolic dimensions: sizes that the types leave open and each call decides."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.records import record
from stablehlo_py.testing.graph import COMPLEX, FLOATS, INTEGERS, Argument, Graph, Value, array
from stablehlo_py.testing.ops_elementwise import BINARY, UNARY

_MOST_ELEMENTS = 2000
_SIZES = (0, 1, 2, 3, 5, 6, 7, 8, 13)


@record
class Open(Value):
    """A value whose `shape` is that of the call; the type shows ? for the dimensions that are open."""

    open: tuple[bool, ...] = ()

    @property
    def type(self) -> str:
        dims = "".join("?x" if o else f"{s}x" for s, o in zip(self.shape, self.open, strict=True))
        return f"tensor<{dims}{self.element}>"


class Dynamic:
    """A graph of open values over `g`, which numbers them and keeps the lines."""

    def __init__(self, g: Graph, turn: int) -> None:
        self.g, self.random = g, g.random
        self.values: list[Open] = []
        drawn = [g.random.randrange(len(_SIZES)) for _ in range(3)]
        self.sizes = [_SIZES[(number + turn * (k + 1)) % len(_SIZES)] for k, number in enumerate(drawn)]

    def argument(self, dims: Sequence[tuple[int, bool]], element: str, style: str = "any") -> Open:
        value = Open(self.g.name(), tuple(s for s, _ in dims), element, tuple(o for _, o in dims))
        self.g.arguments.append(Argument(value, style, self.random.randrange(1 << 30)))
        self.values.append(value)
        return value

    def element(self) -> str:
        pool = self.random.choices((("f32", "i32"), FLOATS, INTEGERS, COMPLEX), (8, 3, 3, 1))[0]
        return self.random.choice(pool)

    def dims(self, least: int = 1, most: int = 3) -> list[tuple[int, bool]]:
        made = []
        for _ in range(self.random.randint(least, most)):
            is_open = self.random.random() < 0.6
            made.append((self.random.choice(self.sizes) if is_open else self.random.choice((1, 2, 3, 4)), is_open))
        return made

    def pick(self, least: int = 0, most: int = 4) -> Open:
        fitting = [v for v in self.values if least <= len(v.shape) <= most and v.size <= 600]
        if fitting and self.random.random() < 0.8:
            return self.random.choice(fitting[-4:])
        return self.argument(self.dims(max(least, 1)), self.element())

    def like(self, x: Open, element: str = "") -> Open:
        element = element or x.element
        fitting = [v for v in self.values if (v.shape, v.open, v.element) == (x.shape, x.open, element)]
        if fitting and self.random.random() < 0.7:
            return self.random.choice(fitting)
        return self.argument(list(zip(x.shape, x.open, strict=True)), element)

    def emit(
        self,
        op: str,
        operands: Sequence[Value],
        shape: Sequence[int],
        is_open: Sequence[bool],
        element: str,
        attributes: str = "",
        region: str = "",
    ) -> Open:
        made = Open(self.g.name(), tuple(shape), element, tuple(is_open))
        given, types = ", ".join(v.name for v in operands), ", ".join(v.type for v in operands)
        body = f" ({region})" if region else ""
        attributes = f" {{{attributes}}}" if attributes else ""
        self.g.lines.append(f'{made.name} = "{op}"({given}){body}{attributes} : ({types}) -> {made.type}')
        return made

    def keep(self, value: Open) -> Open:
        self.values.append(value)
        return value

    def constant(self, numbers: Sequence[int]) -> Value:
        """A vector of i32."""
        inside = ", ".join(map(str, numbers))
        return self.emit(
            "stablehlo.constant",
            [],
            [len(numbers)],
            [False],
            "i32",
            f"value = dense<[{inside}]> : tensor<{len(numbers)}xi32>",
        )

    def sizes_of(self, dims: Sequence[tuple[int, Open | None, int]]) -> Value:
        """A vector of sizes, each (size, of, d): a number, or that of dimension d of a value."""
        ones = []
        for size, of, d in dims:
            if of is None:
                ones.append(self.constant([size]))
                continue
            one = self.emit("stablehlo.get_dimension_size", [of], [], [], "i32", f"dimension = {d} : i64")
            ones.append(self.emit("stablehlo.reshape", [one], [1], [False], "i32"))
        if len(ones) == 1:
            return ones[0]
        return self.emit("stablehlo.concatenate", ones, [len(ones)], [False], "i32", "dimension = 0 : i64")


def _elementwise(d: Dynamic) -> Open:
    x = d.pick()
    if d.random.random() < 0.5:
        name = d.random.choice(
            [n for n, fits in UNARY.items() if fits(x.info) and not (n == "abs" and x.info.is_complex)]
        )
        return d.emit(f"stablehlo.{name}", [x], x.shape, x.open, x.element)
    names = [n for n, fits in BINARY.items() if fits(x.info) and not (n == "atan2" and x.info.is_complex)]
    return d.emit(f"stablehlo.{d.random.choice(names)}", [x, d.like(x)], x.shape, x.open, x.element)


def _select(d: Dynamic) -> Open:
    x = d.pick()
    y = d.like(x)
    compared = d.emit(
        "stablehlo.compare", [x, y], x.shape, x.open, "i1", "comparison_direction = #stablehlo<comparison_direction EQ>"
    )
    return d.emit("stablehlo.select", [compared, x, d.like(x)], x.shape, x.open, x.element)


def _convert(d: Dynamic) -> Open:
    x = d.pick()
    pool = [n for n in (*FLOATS, *INTEGERS) if not x.info.is_complex] or list(COMPLEX)
    return d.emit("stablehlo.convert", [x], x.shape, x.open, d.random.choice(pool))


def _transpose(d: Dynamic) -> Open:
    x = d.pick()
    order = d.random.sample(range(len(x.shape)), len(x.shape))
    shape, is_open = [x.shape[k] for k in order], [x.open[k] for k in order]
    return d.emit("stablehlo.transpose", [x], shape, is_open, x.element, f"permutation = {array(order)}")


def _reduce(d: Dynamic) -> Open:
    x = d.pick(1)
    if x.info.is_complex or x.info.is_bool:
        x = d.argument(list(zip(x.shape, x.open, strict=True)), "f32")
    dims = [k for k in range(len(x.shape)) if d.random.random() < 0.5]
    name = d.random.choice(("maximum", "minimum") if x.info.is_float else ("add", "maximum", "minimum", "multiply"))
    init = d.argument([], x.element)
    kept = [k for k in range(len(x.shape)) if k not in dims]
    shape, is_open = [x.shape[k] for k in kept], [x.open[k] for k in kept]
    region = d.g.body(f"stablehlo.{name}", x.element)
    return d.emit("stablehlo.reduce", [x, init], shape, is_open, x.element, f"dimensions = {array(dims)}", region)


def _concatenate(d: Dynamic) -> Open:
    x = d.pick(1)
    k = d.random.randrange(len(x.shape))
    other = list(zip(x.shape, x.open, strict=True))
    other[k] = d.random.choice(((d.sizes[0], True), (2, False)))
    y = d.argument(other, x.element)
    shape = [*x.shape[:k], x.shape[k] + y.shape[k], *x.shape[k + 1 :]]
    is_open = [*x.open[:k], x.open[k] or y.open[k], *x.open[k + 1 :]]
    return d.emit("stablehlo.concatenate", [x, y], shape, is_open, x.element, f"dimension = {k} : i64")


def _dot(d: Dynamic) -> Open:
    rows, inner, columns = (d.dims(1, 1)[0] for _ in range(3))
    element = d.random.choice(("f32", "f64", "i32", "bf16"))
    style = "mild" if element != "i32" else "any"
    x, y = d.argument([rows, inner], element, style), d.argument([inner, columns], element, style)
    numbers = (
        "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    )
    shape, is_open = (rows[0], columns[0]), (rows[1], columns[1])
    return d.emit("stablehlo.dot_general", [x, y], shape, is_open, element, numbers)


def _broadcast(d: Dynamic) -> Open:
    """To the shape of another value with dimensions in front."""
    x = d.pick(0, 3)
    front = d.random.choice((1, 2, 3))
    wanted = d.sizes_of([(front, None, 0), *((s, x, k) for k, s in enumerate(x.shape))])
    dims = f"broadcast_dimensions = {array(range(1, len(x.shape) + 1))}"
    shape, is_open = (front, *x.shape), (d.random.random() < 0.5, *x.open)
    return d.emit("stablehlo.dynamic_broadcast_in_dim", [x, wanted], shape, is_open, x.element, dims)


def _reshape(d: Dynamic) -> Open:
    """Two dimensions joined, their product computed in the program."""
    x = d.pick(2)
    sizes = [d.emit("stablehlo.get_dimension_size", [x], [], [], "i32", f"dimension = {k} : i64") for k in (0, 1)]
    product = d.emit("stablehlo.multiply", sizes, [], [], "i32")
    joined = d.emit("stablehlo.reshape", [product], [1], [False], "i32")
    rest = [(s, x, k) for k, s in enumerate(x.shape)][2:]
    wanted: Value = joined
    if rest:
        others = d.sizes_of(rest)
        wanted = d.emit(
            "stablehlo.concatenate", [joined, others], [1 + len(rest)], [False], "i32", "dimension = 0 : i64"
        )
    shape, is_open = (x.shape[0] * x.shape[1], *x.shape[2:]), (True, *x.open[2:])
    return d.emit("stablehlo.dynamic_reshape", [x, wanted], shape, is_open, x.element)


def _iota(d: Dynamic) -> Open:
    x = d.pick(1)
    element = x.element if not x.info.is_bool else "i32"
    wanted = d.sizes_of([(s, x, k) for k, s in enumerate(x.shape)])
    dim = f"iota_dimension = {d.random.randrange(len(x.shape))} : i64"
    return d.emit("stablehlo.dynamic_iota", [wanted], x.shape, x.open, element, dim)


def _slice(d: Dynamic) -> Open:
    """From a start to the end of each dimension, by strides."""
    x = d.pick(1)
    starts = [min(s, d.random.choice((0, 0, 1))) for s in x.shape]
    strides = [d.random.choice((1, 1, 2)) for _ in x.shape]
    limits = d.sizes_of([(s, x, k) for k, s in enumerate(x.shape)])
    shape = [-(-(s - a) // k) for s, a, k in zip(x.shape, starts, strides, strict=True)]
    operands = [x, d.constant(starts), limits, d.constant(strides)]
    return d.emit("stablehlo.real_dynamic_slice", operands, shape, [True] * len(shape), x.element)


def _pad(d: Dynamic) -> Open:
    x = d.pick(1)
    low, high, inner = ([d.random.choice((0, 1, 2)) for _ in x.shape] for _ in range(3))
    value = d.argument([], x.element)
    shape = [s + lo + hi + max(0, s - 1) * i for s, lo, hi, i in zip(x.shape, low, high, inner, strict=True)]
    operands = [x, value, *(d.constant(numbers) for numbers in (low, high, inner))]
    return d.emit("stablehlo.dynamic_pad", operands, shape, [True] * len(shape), x.element)


def _gather(d: Dynamic) -> Open:
    """Pieces that begin anywhere along the first dimension, of the other ones all or what a number says."""
    x = d.pick(1)
    if not x.shape[0]:
        return _size(d)
    count = d.dims(1, 1)[0]
    indices = d.argument([count], d.random.choice(("i32", "i64", "ui8")), "index")
    pieces = [(s, x, k) if d.random.random() < 0.6 else (min(s, 2), None, 0) for k, s in enumerate(x.shape)][1:]
    sizes = d.sizes_of([(1, None, 0), *pieces])
    offset = list(range(1, len(x.shape)))
    numbers = f"offset_dims = {offset}, collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    shape, is_open = (count[0], *(s for s, _, _ in pieces)), (count[1], *(of is not None for _, of, _ in pieces))
    attributes = f"dimension_numbers = #stablehlo.gather<{numbers}>, indices_are_sorted = false"
    return d.emit("stablehlo.dynamic_gather", [x, indices, sizes], shape, is_open, x.element, attributes)


def _convolution(d: Dynamic) -> Open:
    """Along one dimension, padded by a vector of numbers, over an image whose batch and length may be open."""
    batch, length, features, out = (d.dims(1, 1)[0] for _ in range(4))
    taps, low, high = d.random.choice((1, 2, 3)), *(d.random.choice((0, 1, 2)) for _ in range(2))
    element = d.random.choice(("f32", "f64", "i32"))
    style = "mild" if element != "i32" else "any"
    x, w = (
        d.argument([batch, length, features], element, style),
        d.argument([(taps, False), features, out], element, style),
    )
    stride, spread, holes = (d.random.choice((1, 1, 2)) for _ in range(3))
    image = max(0, (length[0] - 1) * spread + 1 if length[0] else 0) + low + high
    places = max(0, image - (taps - 1) * holes - 1 + stride) // stride if image >= (taps - 1) * holes + 1 else 0
    flat = d.constant([low, high])
    padding = d.emit("stablehlo.reshape", [flat], [1, 2], [False, False], "i32")
    attributes = (
        "dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, batch_group_count = 1 : i64, "
        f"feature_group_count = 1 : i64, window_strides = array<i64: {stride}>, "
        f"lhs_dilation = array<i64: {spread}>, rhs_dilation = array<i64: {holes}>"
    )
    shape, is_open = (batch[0], places, out[0]), (batch[1], True, out[1])
    return d.emit("stablehlo.dynamic_conv", [x, w, padding], shape, is_open, element, attributes)


def _size(d: Dynamic) -> Open:
    x = d.pick(1)
    k = d.random.randrange(len(x.shape))
    return d.emit("stablehlo.get_dimension_size", [x], [], [], "i32", f"dimension = {k} : i64")


_OPS = (
    *((_elementwise, 8), (_select, 2), (_convert, 2), (_transpose, 2), (_reduce, 4), (_concatenate, 2), (_dot, 2)),
    *((_broadcast, 3), (_reshape, 2), (_iota, 2), (_slice, 2), (_pad, 2), (_size, 1)),
    *((_gather, 2), (_convolution, 2)),
)


def fill(g: Graph, turn: int = 0) -> list[Open]:
    """A few ops; what they made. turn: where the sizes of the call are counted on to."""
    d = Dynamic(g, turn)
    d.argument([(g.random.choice(d.sizes), True), *d.dims(0, 2)], d.element())  # so that something is open
    made: list[Open] = []
    for _ in range(g.random.choice((1, 2, 3, 4, 5, 6, 8))):
        op = g.random.choices([o for o, _ in _OPS], [w for _, w in _OPS])[0]
        value = op(d)
        if math.prod(value.shape) <= _MOST_ELEMENTS and len(value.shape) <= 5:
            made.append(d.keep(value))
    return made or d.values[:1]
