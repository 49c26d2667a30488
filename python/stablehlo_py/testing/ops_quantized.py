"""Random ops on quantized tensors: from floats or stored integers, through a few ops, back to floats.

Sums run over scales that are powers of two, which makes them exact: half of an integer in between would round either way.
"""

from __future__ import annotations

from stablehlo_py.testing.graph import Graph, Value, array
from stablehlo_py.testing.ops_elementwise import without_nan

_STORED = ("i8", "i8", "u8", "i4", "i16", "i8<-127:127>", "u8<3:200>", "i32")
_EXACT_SCALES = (0.5, 0.25, 2.0, 1.0, 0.0625)
_SCALES = (*_EXACT_SCALES, 0.1, 0.3, 1.7, 0.013)
_UNARY = ("abs", "negate", "ceil", "floor", "sign", "tanh", "logistic", "exponential", "cosine", "sqrt", "cbrt")
_BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide")


def _bounds(stored: str) -> tuple[int, int]:
    if "<" in stored:
        low, high = stored.rstrip(">").partition("<")[2].split(":")
        return int(low), int(high)
    bits = int(stored[1:])
    return (0, 2**bits - 1) if stored[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _parameters(g: Graph, stored: str, *, exact: bool) -> str:
    """scale:zero_point"""
    low, high = _bounds(stored)
    zero = 0 if low <= 0 and g.chance(0.3) else g.random.randint(max(low, -20), min(high, 20))
    return f"{g.random.choice(_EXACT_SCALES if exact else _SCALES)}:{zero}"


def _element(g: Graph, *, exact: bool = False) -> str:
    """A quantized element type of a whole tensor."""
    stored = g.random.choice(_STORED)
    return f"!quant.uniform<{stored}:f32, {_parameters(g, stored, exact=exact)}>"


def _element_along(g: Graph, axis: int, size: int) -> str:
    """One with a scale for each slice along `axis`."""
    stored = g.random.choice(_STORED)
    each = ", ".join(_parameters(g, stored, exact=False) for _ in range(size))
    return f"!quant.uniform<{stored}:f32:{axis}, {{{each}}}>"


def _start(g: Graph, element: str) -> Value:
    """Stored integers from outside, or floats in scope that are quantized."""
    if g.chance(0.4):
        return g.argument(g.shape(most=4, limit=300), element)
    x = without_nan(g, g.pick(lambda e: e.name == "f32", limit=600, most_rank=5))
    return g.emit("stablehlo.uniform_quantize", [x], (x.shape, element))


def _like(g: Graph, x: Value) -> Value:
    return g.argument(x.shape, x.element)


def _step(g: Graph, x: Value) -> Value:
    """One op on quantized numbers."""
    kind = g.random.choice(("unary", "binary", "binary", "move", "move", "again", "clamp", "select"))
    if kind == "unary":
        return g.emit(f"stablehlo.{g.random.choice(_UNARY)}", [x], (x.shape, x.element))
    if kind == "binary":
        return g.emit(f"stablehlo.{g.random.choice(_BINARY)}", [x, _like(g, x)], (x.shape, x.element))
    if kind == "again":
        return g.emit("stablehlo.uniform_quantize", [x], (x.shape, _element(g)))
    if kind == "clamp":
        low, high = (_like(g, x) for _ in range(2))
        return g.emit("stablehlo.clamp", [low, x, high], (x.shape, x.element))
    if kind == "select":
        mask = g.like(x.shape, "i1")
        return g.emit("stablehlo.select", [mask, x, _like(g, x)], (x.shape, x.element))
    return _moved(g, x)


def _moved(g: Graph, x: Value) -> Value:
    rank = len(x.shape)
    kind = g.random.choice(("transpose", "reverse", "reshape", "concatenate", "broadcast"))
    if kind == "transpose":
        order = g.random.sample(range(rank), rank)
        shape = [x.shape[d] for d in order]
        return g.emit("stablehlo.transpose", [x], (shape, x.element), f"permutation = {array(order)}")
    if kind == "reverse":
        dims = [d for d in range(rank) if g.chance(0.5)]
        return g.emit("stablehlo.reverse", [x], (x.shape, x.element), f"dimensions = {array(dims)}")
    if kind == "reshape":
        return g.emit("stablehlo.reshape", [x], ((x.size, 1), x.element))
    if kind == "concatenate" and rank:
        d = g.random.randrange(rank)
        shape = [*x.shape[:d], 2 * x.shape[d], *x.shape[d + 1 :]]
        return g.emit("stablehlo.concatenate", [x, _like(g, x)], (shape, x.element), f"dimension = {d} : i64")
    dims = f"broadcast_dimensions = {array(range(1, rank + 1))}"
    return g.emit("stablehlo.broadcast_in_dim", [x], ((2, *x.shape), x.element), dims)


def elementwise(g: Graph) -> Value | None:
    x = _start(g, _element(g))
    for _ in range(g.random.randint(1, 4)):
        if len(x.shape) > 5 or x.size > 1000:
            break
        x = _step(g, x)
    if x.element.startswith("!quant") and g.chance(0.15):
        y = _like(g, x)
        direction = f"comparison_direction = #stablehlo<comparison_direction {g.random.choice(('LT', 'EQ', 'GE'))}>"
        return g.emit("stablehlo.compare", [x, y], (x.shape, "i1"), direction)
    return g.emit("stablehlo.uniform_dequantize", [x], (x.shape, "f32"))


def along_axis(g: Graph) -> Value | None:
    """A scale for each slice of one dimension."""
    x = without_nan(g, g.pick(lambda e: e.name == "f32", rank=1, most_rank=4, limit=300))
    axis = g.random.randrange(len(x.shape))
    if not 1 <= x.shape[axis] <= 8:
        return None
    q = g.emit("stablehlo.uniform_quantize", [x], (x.shape, _element_along(g, axis, x.shape[axis])))
    if g.chance(0.5):
        q = g.emit("stablehlo.add", [q, q], (q.shape, q.element))
    return g.emit("stablehlo.uniform_dequantize", [q], (x.shape, "f32"))


def product(g: Graph) -> Value:
    """Both operands quantized, or the right one alone; rows by columns."""
    m, k, n = (g.random.choice((1, 2, 3, 5, 8, 17)) for _ in range(3))
    stored = g.random.choice(("i8", "u8", "i8<-127:127>"))
    right = g.argument((k, n), f"!quant.uniform<i8:f32, {g.random.choice(_EXACT_SCALES)}>")
    numbers = (
        "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
    )
    if g.chance(0.3):
        left = g.argument((m, k), "f32", "mild")
        return g.emit("stablehlo.dot_general", [left, right], ((m, n), "f32"), numbers)
    left = g.argument((m, k), f"!quant.uniform<{stored}:f32, {_parameters(g, stored, exact=True)}>")
    wide = f"!quant.uniform<i32:f32, {g.random.choice(_EXACT_SCALES)}>"
    made = g.emit("stablehlo.dot_general", [left, right], ((m, n), wide), numbers)
    if g.chance(0.5):
        made = g.emit("stablehlo.uniform_quantize", [made], (made.shape, _element(g, exact=True)))
    return g.emit("stablehlo.uniform_dequantize", [made], (made.shape, "f32"))


def maximum_of(g: Graph) -> Value:
    """A reduction with quantized elements in its body."""
    element = _element(g)
    x = g.argument(g.shape(least=1, most=3, limit=200), element)
    dims = sorted(g.random.sample(range(len(x.shape)), g.random.randint(1, len(x.shape))))
    shape = [s for d, s in enumerate(x.shape) if d not in dims]
    init = g.argument((), element)
    region = g.body(f"stablehlo.{g.random.choice(('maximum', 'minimum'))}", element)
    made = g.emit("stablehlo.reduce", [x, init], (shape, element), f"dimensions = {array(dims)}", [region])
    return g.emit("stablehlo.uniform_dequantize", [made], (made.shape, "f32"))


OPS = ((elementwise, 3), (along_axis, 1), (product, 1), (maximum_of, 1))
