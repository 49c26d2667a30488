"""chlo: special functions, predicates, top_k, and the forms that broadcast their operands."""

from __future__ import annotations

import math

import numpy as np

from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate import complex as cx
from stablehlo_py.ops.evaluate.numeric import bits_of, element_of, from_bits, total_order
from stablehlo_py.ops.evaluate.pointwise import Row, pointwise, register_rows
from stablehlo_py.ops.evaluate.shape import broadcast
from stablehlo_py.ops.evaluate.special import special

erfc = np.vectorize(math.erfc, otypes=[np.float64])  # SciPy's is off by 20 ULP in the tail


def digamma(x: np.ndarray) -> np.ndarray:
    """The logarithmic derivative of gamma; NaN at its poles.

    Left of zero by reflection of the fraction of x, which is exact: SciPy's reflection of x itself loses digits there.
    """
    left = x < 0
    fraction = x - np.rint(x)
    cotangent = np.pi / np.tan(np.pi * np.where(left, fraction, 0.25))
    result = special.digamma(np.where(left, 1 - x, x)) - np.where(left, cotangent, 0)
    return np.where((x <= 0) & (fraction == 0) | np.isneginf(x), np.nan, result)


def erf_inv(x: np.ndarray) -> np.ndarray:
    """y with erf(y) = x; a zero keeps its sign, which SciPy's does not."""
    return np.where(x == 0, x, special.erfinv(x))


def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hurwitz: the sum of (q + n)^-x; for q below 0 the terms before the first positive one are added to it."""
    x, q = np.broadcast_arrays(x, q)
    shift = np.where(np.isfinite(q) & (q < 0), np.ceil(-q), 0)
    head = np.zeros(x.shape)
    for n in range(int(shift.max(initial=0)) if shift.max(initial=0) < 1e5 else 0):
        head = head + np.where(n < shift, np.power(q + n, -x), 0)
    result = head + special.zeta(x, q + shift)
    result = np.where((q < 0) & (x != np.floor(x)), np.nan, result)
    result = np.where((q <= 0) & (q == np.floor(q)), np.inf, result)
    return np.where(x == 1, np.inf, np.where((x < 1) | np.isnan(x) | np.isnan(q), np.nan, result))


def lgamma(x: np.ndarray) -> np.ndarray:
    """log |gamma(x)|; infinite at the poles and at both infinities, as C has it."""
    at_pole = -np.log(np.abs(np.where(np.abs(x) < 1e-300, x, 1)))  # SciPy's is infinite at subnormal numbers
    return np.where(np.isneginf(x), np.inf, np.where(np.abs(x) < 1e-300, at_pole, special.gammaln(x)))


def polygamma(n: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The n-th derivative of digamma; NaN for n that is no natural number."""
    sign = np.where(n % 2 == 0, -1.0, 1.0)
    higher = sign * special.gamma(n + 1) * zeta(n + 1, x)
    return np.where((n < 0) | (n != np.floor(n)), np.nan, np.where(n == 0, digamma(x), higher))


register_rows(
    {
        "chlo.acos": Row(np.arccos, np.arccos, precise=True),
        "chlo.acosh": Row(np.arccosh, np.arccosh, precise=True),
        "chlo.asin": Row(np.arcsin, np.arcsin, precise=True),
        "chlo.asinh": Row(np.arcsinh, np.arcsinh, precise=True),
        "chlo.atan": Row(np.arctan, np.arctan, precise=True),
        "chlo.atanh": Row(np.arctanh, np.arctanh, precise=True),
        "chlo.bessel_i1e": Row(lambda x: np.where(x == 0, x, special.i1e(x)), precise=True),
        "chlo.conj": Row(np.positive, np.conj),
        "chlo.cosh": Row(np.cosh, np.cosh, precise=True),
        "chlo.digamma": Row(digamma, precise=True),
        "chlo.erf": Row(special.erf, precise=True),
        "chlo.erf_inv": Row(erf_inv, precise=True),
        "chlo.erfc": Row(erfc, precise=True),
        "chlo.is_inf": Row(np.isinf),
        "chlo.is_neg_inf": Row(np.isneginf),
        "chlo.is_pos_inf": Row(np.isposinf),
        "chlo.lgamma": Row(lgamma, precise=True),
        "chlo.polygamma": Row(polygamma, precise=True),
        "chlo.sinh": Row(np.sinh, np.sinh, precise=True),
        "chlo.square": Row(np.square, lambda z: cx.multiply(z, z), np.square),
        "chlo.tan": Row(np.tan, np.tan, precise=True),
        "chlo.zeta": Row(zeta, precise=True),
    }
)


@pointwise("chlo.mulhi")
def evaluate_mulhi(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The upper half of the product in twice the width."""
    product = lhs.astype(object) * rhs.astype(object) >> element_of(lhs.dtype).bits
    return np.asarray(product).astype(lhs.dtype)


@pointwise("chlo.next_after")
def evaluate_next_after(op: Op, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The neighbour of x on the way to y in the float type itself; y where they are equal, NaN where one is."""
    x, y = np.broadcast_arrays(x, y)
    bits = bits_of(x)
    one, sign = bits.dtype.type(1), bits.dtype.type(1 << (element_of(x.dtype).bits - 1))
    upward = np.asarray(y > x)
    grows = upward == ((bits & sign) == 0)  # away from zero, where the bits count up
    stepped = np.where(grows, bits + one, bits - one)
    stepped = np.where((bits & ~sign) == 0, np.where(upward, one, sign | one), stepped)
    stepped = np.where(np.asarray(x == y), bits_of(y), stepped)
    result = from_bits(stepped, x.dtype)
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, result))


@pointwise("chlo.constant")
def evaluate_constant(op: Op) -> np.ndarray:
    """The elements written in the program."""
    return op.elements("value")


@evaluate("chlo.constant_like")
def evaluate_constant_like(op: Op, operand: np.ndarray) -> np.ndarray:
    """The value, as often as the operand has elements."""
    text = str(op.operation.attributes["value"]).split(":")[0].strip()
    return np.full(operand.shape, float(text), operand.dtype)


@evaluate("chlo.top_k")
def evaluate_top_k(op: Op, operand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The k greatest along the last dimension, greatest first, and where they were; among equals the first comes first.

    Floats are ordered totally, so NaN counts as the greatest.
    """
    k = op.types[0].shape[-1]
    key = total_order(operand) if element_of(operand.dtype).is_float else bits_of_ordered(operand)
    order = operand.shape[-1] - 1 - np.argsort(key[..., ::-1], axis=-1, kind="stable")[..., ::-1]
    order = order[..., :k]
    return np.take_along_axis(operand, order, -1), order.astype(op.types[1].element.dtype)


def bits_of_ordered(x: np.ndarray) -> np.ndarray:
    """Integers and booleans in a type that NumPy sorts."""
    return x.astype(np.int8) if x.dtype.itemsize == 1 and x.dtype.kind not in "iub" else x


# --- forms that broadcast


def _broadcasting(name: str) -> Rule:
    def evaluate_broadcasting(op: Op, *operands: np.ndarray) -> np.ndarray:
        rank = max(x.ndim for x in operands)
        dimensions = op.ints("broadcast_dimensions")
        if dimensions:
            operands = tuple(_raised(x, rank, dimensions) for x in operands)
        rule = evaluate.find(name)
        assert rule is not None  # the names are those of the tables below
        return rule(op, *np.broadcast_arrays(*operands))

    return evaluate_broadcasting


def _raised(x: np.ndarray, rank: int, dimensions: tuple[int, ...]) -> np.ndarray:
    if x.ndim in (0, rank):
        return x
    shape = [1] * rank
    for d, size in zip(dimensions, x.shape, strict=True):
        shape[d] = size
    return broadcast(x, shape, dimensions)


_OF_STABLEHLO = (
    "add",
    "and",
    "atan2",
    "compare",
    "complex",
    "divide",
    "maximum",
    "minimum",
    "multiply",
    "or",
    "power",
    "remainder",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "subtract",
    "xor",
)
_OF_CHLO = ("next_after", "polygamma", "zeta")

for _prefix, _names in (("stablehlo", _OF_STABLEHLO), ("chlo", _OF_CHLO)):
    for _name in _names:
        pointwise(f"chlo.broadcast_{_name}")(_broadcasting(f"{_prefix}.{_name}"))
