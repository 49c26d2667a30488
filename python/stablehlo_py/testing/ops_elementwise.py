"""Random elementwise ops of every type."""

from __future__ import annotations

from stablehlo_py.core.types import ElementType
from stablehlo_py.testing.graph import COMPLEX, ELEMENT_TYPES, FLOATS, INTEGERS, Graph, Value


def is_number(e: ElementType) -> bool:
    return not e.is_bool


def is_float(e: ElementType) -> bool:
    return e.is_float


def is_discrete(e: ElementType) -> bool:
    return e.is_integer or e.is_bool


BINARY = {
    "add": lambda e: True,
    "subtract": is_number,
    "multiply": lambda e: True,
    "divide": is_number,
    "remainder": lambda e: e.is_integer or e.is_float,
    "maximum": lambda e: True,
    "minimum": lambda e: True,
    "power": is_number,
    "atan2": lambda e: e.is_float or e.is_complex,
    "and": is_discrete,
    "or": is_discrete,
    "xor": is_discrete,
    "shift_left": lambda e: e.is_integer,
    "shift_right_arithmetic": lambda e: e.is_integer,
    "shift_right_logical": lambda e: e.is_integer,
}
_SIGNED = lambda e: e.is_float or e.is_complex or (e.is_integer and not e.is_unsigned)  # noqa: E731
_SMOOTH = lambda e: e.is_float or e.is_complex  # noqa: E731
UNARY = {
    "abs": _SIGNED,
    "negate": is_number,
    "sign": _SIGNED,
    "not": is_discrete,
    "popcnt": lambda e: e.is_integer,
    "count_leading_zeros": lambda e: e.is_integer,
    "ceil": is_float,
    "floor": is_float,
    "round_nearest_afz": is_float,
    "round_nearest_even": is_float,
    "sqrt": _SMOOTH,
    "rsqrt": _SMOOTH,
    "cbrt": is_float,
    "exponential": _SMOOTH,
    "exponential_minus_one": _SMOOTH,
    "log": _SMOOTH,
    "log_plus_one": _SMOOTH,
    "logistic": _SMOOTH,
    "sine": _SMOOTH,
    "cosine": _SMOOTH,
    "tan": _SMOOTH,
    "tanh": _SMOOTH,
}
CHLO = (
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cosh",
    "sinh",
    "erf",
    "erfc",
    "erf_inv",
    "lgamma",
    "digamma",
)
CHLO_OF_COMPLEX = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "conj", "square")


def unary(g: Graph) -> Value:
    name = g.random.choice(list(UNARY))
    x = g.pick(UNARY[name])
    element = x.info.part.name if name == "abs" else x.element
    return g.emit(f"stablehlo.{name}", [x], (x.shape, element))


def binary(g: Graph) -> Value:
    name = g.random.choice(list(BINARY))
    x = g.pick(BINARY[name])
    y = g.like(x.shape, x.element)
    if name == "atan2" and x.info.is_complex:  # a formula, whose value at infinities nobody has specified
        x, y = (g.argument(x.shape, x.element, "mild") for _ in range(2))
    if name == "divide" and x.info.is_complex and g.chance(0.5):
        x, y = (g.argument(x.shape, x.element, "wide") for _ in range(2))
    return g.emit(f"stablehlo.{name}", [x, y], (x.shape, x.element))


def chlo(g: Graph) -> Value:
    if g.chance(0.15):
        z = g.pick(lambda e: e.is_complex)
        return g.emit(f"chlo.{g.random.choice(CHLO_OF_COMPLEX)}", [z], (z.shape, z.element))
    x = g.pick(lambda e: e.name in ("f32", "f64", "f16", "bf16"))
    return g.emit(f"chlo.{g.random.choice(CHLO)}", [x], (x.shape, x.element))


def compare(g: Graph) -> Value:
    x = g.pick()
    y = g.like(x.shape, x.element)
    total = x.info.is_float and g.chance(0.3)
    if total:
        x, y = (known_signs(g, v) for v in (x, y))
    directions = ("EQ", "NE") if x.info.is_complex else ("EQ", "NE", "LT", "LE", "GT", "GE")
    attributes = f"comparison_direction = #stablehlo<comparison_direction {g.random.choice(directions)}>"
    if total:
        attributes += ", compare_type = #stablehlo<comparison_type TOTALORDER>"
    return g.emit("stablehlo.compare", [x, y], (x.shape, "i1"), attributes)


def select(g: Graph) -> Value:
    x = g.pick()
    mask = g.like((), "i1") if g.chance(0.2) else g.like(x.shape, "i1")
    return g.emit("stablehlo.select", [mask, x, g.like(x.shape, x.element)], (x.shape, x.element))


def clamp(g: Graph) -> Value:
    x = g.pick(lambda e: not e.is_complex)
    low, high = (g.like(() if g.chance(0.5) else x.shape, x.element) for _ in range(2))
    return g.emit("stablehlo.clamp", [low, x, high], (x.shape, x.element))


def convert(g: Graph) -> Value:
    x = g.pick()
    pool = [n for n in (*FLOATS, *INTEGERS, "i1", *COMPLEX) if not (x.info.is_complex and ELEMENT_TYPES[n].is_bool)]
    return g.emit("stablehlo.convert", [x], (x.shape, g.random.choice(pool)))


def is_finite(g: Graph) -> Value:
    x = g.pick(is_float)
    return g.emit("stablehlo.is_finite", [x], (x.shape, "i1"))


def reduce_precision(g: Graph) -> Value:
    x = g.pick(is_float)
    exponent, mantissa = g.random.choice(((5, 10), (8, 7), (4, 3), (2, 1), (8, 23), (11, 52), (1, 0), (6, 2)))
    attributes = f"exponent_bits = {exponent} : i32, mantissa_bits = {mantissa} : i32"
    return g.emit("stablehlo.reduce_precision", [x], (x.shape, x.element), attributes)


def parts(g: Graph) -> Value:
    """To complex, or from it."""
    if g.chance(0.5):
        x = g.pick(lambda e: e.name in ("f32", "f64"))
        return g.emit("stablehlo.complex", [x, g.like(x.shape, x.element)], (x.shape, f"complex<{x.element}>"))
    x = g.pick(lambda e: e.is_complex)
    return g.emit(f"stablehlo.{g.random.choice(('real', 'imag'))}", [x], (x.shape, x.info.part.name))


def without_nan(g: Graph, x: Value) -> Value:
    """NaN become 0: their bits are not specified."""
    if not x.info.is_float:
        return x
    same = g.emit(
        "stablehlo.compare", [x, x], (x.shape, "i1"), "comparison_direction = #stablehlo<comparison_direction EQ>"
    )
    return g.emit("stablehlo.select", [same, x, g.constant(x.shape, x.element, "0")], (x.shape, x.element))


def known_signs(g: Graph, x: Value) -> Value:
    """x itself where its NaN come from outside: the sign of a computed NaN is not specified, and TOTALORDER shows it."""
    return x if any(a.value == x for a in g.arguments) else without_nan(g, x)


def bitcast(g: Graph) -> Value | None:
    """Between types of 8 bits and more; a smaller type has the last dimension more."""
    x = without_nan(g, g.pick(lambda e: not e.is_bool and not e.is_complex and e.bits >= 8))
    bits = x.info.bytes * 8
    pool = [n for n in (*FLOATS, *INTEGERS) if ELEMENT_TYPES[n].bits >= 8]
    element = g.random.choice(pool)
    to = ELEMENT_TYPES[element].bytes * 8
    shape = x.shape
    if to < bits:
        shape = (*shape, bits // to)
    if to > bits:
        if not shape or shape[-1] != to // bits:
            return None
        shape = shape[:-1]
    if len(shape) > 6:
        return None
    return g.emit("stablehlo.bitcast_convert", [x], (shape, element))


def map_(g: Graph) -> Value:
    x = g.pick(lambda e: e.is_float or e.is_integer)
    op = f"stablehlo.{g.random.choice(('add', 'multiply', 'maximum', 'subtract'))}"
    dims = f"dimensions = array<i64{': ' if x.shape else ''}{', '.join(map(str, range(len(x.shape))))}>"
    return g.emit("stablehlo.map", [x, g.like(x.shape, x.element)], (x.shape, x.element), dims, [g.body(op, x.element)])


OPS = (
    *((binary, 10), (unary, 10), (chlo, 2), (compare, 3), (select, 3), (clamp, 2), (convert, 5), (is_finite, 1)),
    *((reduce_precision, 1), (parts, 2), (bitcast, 2), (map_, 1)),
)
