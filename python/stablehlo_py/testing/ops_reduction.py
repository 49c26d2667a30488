"""Random reductions: reduce, reduce_window, select_and_scatter, sort, top_k, and the batch norms.

What is summed is made calm first: a sum that overflows in one order and not in another says nothing.
"""

from __future__ import annotations

import math

from stablehlo_py.core.types import ElementType
from stablehlo_py.testing.graph import Graph, Value, array, matrix, tensor
from stablehlo_py.testing.ops_elementwise import known_signs


def is_scalar_number(e: ElementType) -> bool:
    return e.is_integer or e.is_float


def calm(g: Graph, x: Value, bound: int = 4) -> Value:
    """x with floats between -bound and bound; NaN stays."""
    if x.info.is_complex:
        return g.argument(x.shape, x.element, "mild")
    if not x.info.is_float or g.chance(0.05):
        return x
    low = "0" if x.element == "f8E8M0FNU" else str(-bound)
    low_value, high_value = g.constant((), x.element, low), g.constant((), x.element, str(bound))
    return g.emit("stablehlo.clamp", [low_value, x, high_value], (x.shape, x.element))


def _combiner(g: Graph, x: Value) -> tuple[Value, str, str]:
    """The operand to use, the op of the body, and the literal of its neutral element or another start."""
    if x.info.is_bool:
        name, start = g.random.choice((("and", "1"), ("or", "0"), ("maximum", "0"), ("minimum", "1"), ("xor", "0")))
        return x, name, start
    if x.info.is_complex:
        name, start = g.random.choice((("add", "0"), ("multiply", "1")))
        return calm(g, x), name, start
    name, start = g.random.choice((("add", "0"), ("add", "0"), ("maximum", "0"), ("minimum", "0"), ("multiply", "1")))
    return (calm(g, x, 2 if name == "multiply" else 4) if name in ("add", "multiply") else x), name, start


def reduce(g: Graph) -> Value:
    x, name, start = _combiner(g, g.pick(limit=1500))
    dims = [d for d in range(len(x.shape)) if g.chance(0.5)]
    shape = [s for d, s in enumerate(x.shape) if d not in dims]
    # the start is joined in an order that is not specified, so it is neutral or of an idempotent op
    init = g.like((), x.element) if name in ("maximum", "minimum") else g.constant((), x.element, start)
    region = g.body(f"stablehlo.{name}", x.element)
    return g.emit("stablehlo.reduce", [x, init], (shape, x.element), f"dimensions = {array(dims)}", [region])


def argmax(g: Graph) -> Value:
    """A reduce of two operands: the largest value and the least index of it."""
    x = g.pick(is_scalar_number, rank=1, limit=1500)
    d = g.random.randrange(len(x.shape))
    index = g.emit("stablehlo.iota", [], (x.shape, "i32"), f"iota_dimension = {d} : i64")
    shape = [s for k, s in enumerate(x.shape) if k != d]
    ty, it, b1 = tensor((), x.element), tensor((), "i32"), tensor((), "i1")
    a, i, b, j, gt, eq, lt, keep1, keep, value, which = (g.name() for _ in range(11))
    compared = "{comparison_direction = #stablehlo<comparison_direction %s>}"
    lines = (
        f'{gt} = "stablehlo.compare"({a}, {b}) {compared % "GT"} : ({ty}, {ty}) -> {b1}',
        f'{eq} = "stablehlo.compare"({a}, {b}) {compared % "EQ"} : ({ty}, {ty}) -> {b1}',
        f'{lt} = "stablehlo.compare"({i}, {j}) {compared % "LT"} : ({it}, {it}) -> {b1}',
        f'{keep1} = "stablehlo.and"({eq}, {lt}) : ({b1}, {b1}) -> {b1}',
        f'{keep} = "stablehlo.or"({gt}, {keep1}) : ({b1}, {b1}) -> {b1}',
        f'{value} = "stablehlo.select"({keep}, {a}, {b}) : ({b1}, {ty}, {ty}) -> {ty}',
        f'{which} = "stablehlo.select"({keep}, {i}, {j}) : ({b1}, {it}, {it}) -> {it}',
        f'"stablehlo.return"({value}, {which}) : ({ty}, {it}) -> ()',
    )
    region = f"{{ ^bb0({a}: {ty}, {i}: {it}, {b}: {ty}, {j}: {it}):\n    " + "\n    ".join(lines) + " }"
    clean = x
    if x.info.is_float:  # NaN would make the result depend on the order
        same = g.emit(
            "stablehlo.compare", [x, x], (x.shape, "i1"), "comparison_direction = #stablehlo<comparison_direction EQ>"
        )
        clean = g.emit("stablehlo.select", [same, x, g.constant(x.shape, x.element, "0")], (x.shape, x.element))
    literal = "-4" if x.info.is_float and x.element != "f8E8M0FNU" else "0"
    inits = [g.constant((), x.element, literal), g.constant((), "i32", "99")]
    results = [(shape, x.element), (shape, "i32")]
    return g.emit_several(
        "stablehlo.reduce", [clean, index, *inits], results, f"dimensions = array<i64: {d}>", [region]
    )[1]


def _window(
    g: Graph, shape: tuple[int, ...]
) -> tuple[list[int], list[int], list[int], list[int], list[tuple[int, int]]]:
    """Sizes, strides, dilations of the base and of the window, and paddings."""
    rank = len(shape)
    sizes = [g.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    strides = [g.random.choice((1, 1, 2, 3)) for _ in range(rank)]
    base = [g.random.choice((1, 1, 1, 2)) for _ in range(rank)]
    window = [g.random.choice((1, 1, 1, 2)) for _ in range(rank)]
    padding = [(g.random.choice((0, 0, 1, 2)), g.random.choice((0, 0, 1, -1))) for _ in range(rank)]
    return sizes, strides, base, window, padding


def windows_of(
    shape: tuple[int, ...], sizes: list[int], strides: list[int], base: list[int], window: list[int], padding: list
) -> list[int] | None:
    """The shape of a windowed op's result; None where there is none."""
    made = []
    for s, k, stride, b, w, (low, high) in zip(shape, sizes, strides, base, window, padding, strict=True):
        spread = (s - 1) * b + 1 if s else 0
        padded, reach = spread + low + high, (k - 1) * w + 1 if k else 0
        if padded < 0:
            return None
        made.append(0 if padded == 0 or reach > padded else (padded - reach) // stride + 1)
    return made


def reduce_window(g: Graph) -> Value | None:
    x, name, start = _combiner(g, g.pick(rank=1, most_rank=4, limit=400))
    sizes, strides, base, window, padding = _window(g, x.shape)
    shape = windows_of(x.shape, sizes, strides, base, window, padding)
    if shape is None or math.prod(shape) > 1000:
        return None
    text = (
        f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, base_dilations = {array(base)}, "
        f"window_dilations = {array(window)}, padding = {matrix(padding)}"
    )
    init = g.like((), x.element) if name in ("maximum", "minimum") else g.constant((), x.element, start)
    region = g.body(f"stablehlo.{name}", x.element)
    return g.emit("stablehlo.reduce_window", [x, init], (shape, x.element), text, [region])


def select_and_scatter(g: Graph) -> Value | None:
    x = g.pick(is_scalar_number, rank=1, most_rank=4, limit=300)
    if x.info.is_float:  # which NaN wins is not specified
        x = g.argument(x.shape, x.element, "mild")
    sizes, strides, _, _, padding = _window(g, x.shape)
    ones = [1] * len(x.shape)
    shape = windows_of(x.shape, sizes, strides, ones, ones, padding)
    if shape is None or math.prod(shape) > 600 or not math.prod(shape):
        return None
    source = g.argument(shape, x.element, "mild")
    a, b, c, ty = g.name(), g.name(), g.name(), tensor((), x.element)
    select = (
        f'{{ ^bb0({a}: {ty}, {b}: {ty}): {c} = "stablehlo.compare"({a}, {b}) {{comparison_direction = '
        f"#stablehlo<comparison_direction {g.random.choice(('GE', 'LE'))}>}} : ({ty}, {ty}) -> tensor<i1> "
        f'"stablehlo.return"({c}) : (tensor<i1>) -> () }}'
    )
    text = f"window_dimensions = {array(sizes)}, window_strides = {array(strides)}, padding = {matrix(padding)}"
    regions = [select, g.body("stablehlo.add", x.element)]
    init = g.constant((), x.element, "0")
    return g.emit("stablehlo.select_and_scatter", [x, source, init], (x.shape, x.element), text, regions)


def sort(g: Graph) -> Value:
    """Stable, of one or two operands, by a total order."""
    x = known_signs(g, g.pick(lambda e: not e.is_complex, rank=1, limit=1000))
    operands = [x, *([g.like(x.shape, g.element())] if g.chance(0.5) else [])]
    names = [(g.name(), g.name()) for _ in operands]
    head = ", ".join(f"{n}: {tensor((), v.element)}" for pair, v in zip(names, operands, strict=True) for n in pair)
    c, ty = g.name(), tensor((), x.element)
    order = ", compare_type = #stablehlo<comparison_type TOTALORDER>" if x.info.is_float else ""
    direction = g.random.choice(("LT", "GT"))
    region = (
        f'{{ ^bb0({head}): {c} = "stablehlo.compare"({names[0][0]}, {names[0][1]}) {{comparison_direction = '
        f"#stablehlo<comparison_direction {direction}>{order}}} : ({ty}, {ty}) -> tensor<i1> "
        f'"stablehlo.return"({c}) : (tensor<i1>) -> () }}'
    )
    text = f"dimension = {g.random.randrange(len(x.shape))} : i64, is_stable = true"
    return g.emit_several("stablehlo.sort", operands, [(v.shape, v.element) for v in operands], text, [region])[-1]


def batch_norm(g: Graph) -> Value | None:
    kind = g.random.choice(("inference", "training", "grad"))
    shape = g.shape(least=2, most=4, limit=300)
    if 0 in shape:
        return None
    element = g.random.choice(("f32", "f64", "f16", "bf16"))
    d = g.random.randrange(len(shape))
    x = g.argument(shape, element, "mild")
    scale, offset, mean = (g.argument((shape[d],), element, "mild") for _ in range(3))
    variance = g.argument((shape[d],), element, "positive")
    text = f"epsilon = 1.000000e-02 : f32, feature_index = {d} : i64"
    channel = ((shape[d],), element)
    if kind == "inference":
        return g.emit(f"stablehlo.batch_norm_{kind}", [x, scale, offset, mean, variance], (shape, element), text)
    operands = [x, scale, offset]
    if kind == "grad":
        operands = [x, scale, mean, variance, g.argument(shape, element, "mild")]
    made = g.emit_several(f"stablehlo.batch_norm_{kind}", operands, [(shape, element), channel, channel], text)
    return g.random.choice(made)


OPS = (*((reduce, 10), (argmax, 2), (reduce_window, 4), (select_and_scatter, 2), (sort, 4), (batch_norm, 1)),)
