"""Elementwise arithmetic, logic and mathematical functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate import complex as cx
from stablehlo_py.ops.evaluate.numeric import bits_of, element_of, exact, from_bits, narrow
from stablehlo_py.ops.evaluate.pointwise import Row, pointwise, register_rows


def integer_divide(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Towards zero; x / 0 is all ones, and the least value / -1 is itself."""
    if lhs.dtype.kind == "u":
        return np.where(rhs == 0, ~np.zeros((), lhs.dtype), lhs // np.where(rhs == 0, 1, rhs).astype(lhs.dtype))
    odd = (rhs == 0) | (rhs == -1)
    safe = np.where(odd, 1, rhs).astype(lhs.dtype)
    floor = lhs // safe
    quotient = floor + ((lhs - floor * safe != 0) & ((lhs < 0) != (safe < 0)))
    return np.where(rhs == 0, -1, np.where(rhs == -1, -lhs, quotient)).astype(lhs.dtype)


def integer_remainder(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """With the sign of lhs; x rem 0 is x."""
    odd = (rhs == 0) | (rhs == -1) if lhs.dtype.kind == "i" else rhs == 0
    rest = np.fmod(lhs, np.where(odd, 1, rhs).astype(lhs.dtype))
    return np.where(rhs == 0, lhs, rest).astype(lhs.dtype)


def integer_power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """By squaring, wrapping; a negative exponent gives 1, -1 or 0."""
    base, exponent = (np.array(x) for x in np.broadcast_arrays(base, exponent))
    unit = np.where(base == 1, 1, 0)
    if base.dtype.kind == "i":
        unit = np.where(base == -1, np.where(exponent % 2 == 0, 1, -1), unit)
    negative = exponent < 0
    result, square, left = np.ones_like(base), base, np.where(negative, base.dtype.type(0), exponent)
    while np.any(left):
        result = np.where(left & 1, result * square, result)
        square, left = square * square, left >> left.dtype.type(1)
    return np.where(negative, unit.astype(base.dtype), result)  # mixed with int64, ui64 would become f64


def maximum(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """NaN wins; +0 is above -0."""
    return np.where(lhs == rhs, np.where(np.signbit(lhs), rhs, lhs), np.maximum(lhs, rhs))


def minimum(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """NaN wins; -0 is below +0."""
    return np.where(lhs == rhs, np.where(np.signbit(lhs), lhs, rhs), np.minimum(lhs, rhs))


def sign(x: np.ndarray) -> np.ndarray:
    """-1, 1, or x itself where it is a zero or a NaN."""
    return np.where((x == 0) | np.isnan(x), x, np.copysign(np.ones((), x.dtype), x))


def round_away(x: np.ndarray) -> np.ndarray:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.abs(whole) + (np.abs(x - whole) >= 0.5), x).astype(x.dtype)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without the overflow of exp that makes small results zero."""
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


register_rows(
    {
        "stablehlo.abs": Row(np.abs, lambda z: np.hypot(np.real(z), np.imag(z)), np.abs, precise=True),
        "stablehlo.add": Row(np.add, np.add, np.add, np.logical_or),
        "stablehlo.and": Row(integer=np.bitwise_and),
        "stablehlo.atan2": Row(np.arctan2, cx.atan2, precise=True),
        "stablehlo.cbrt": Row(np.cbrt, cx.cbrt, precise=True),
        "stablehlo.ceil": Row(np.ceil),
        "stablehlo.cosine": Row(np.cos, np.cos, precise=True),
        "stablehlo.divide": Row(np.divide, cx.divide, integer_divide),
        "stablehlo.exponential": Row(np.exp, np.exp, precise=True),
        "stablehlo.exponential_minus_one": Row(np.expm1, cx.expm1, precise=True),
        "stablehlo.floor": Row(np.floor),
        "stablehlo.imag": Row(np.zeros_like, np.imag),
        "stablehlo.is_finite": Row(np.isfinite),
        "stablehlo.log": Row(np.log, np.log, precise=True),
        "stablehlo.log_plus_one": Row(np.log1p, cx.log1p, precise=True),
        "stablehlo.logistic": Row(logistic, cx.logistic, precise=True),
        "stablehlo.maximum": Row(maximum, np.maximum, np.maximum, np.logical_or),
        "stablehlo.minimum": Row(minimum, np.minimum, np.minimum, np.logical_and),
        "stablehlo.multiply": Row(np.multiply, cx.multiply, np.multiply, np.logical_and),
        "stablehlo.negate": Row(np.negative, np.negative, np.negative),
        "stablehlo.not": Row(integer=np.invert),
        "stablehlo.or": Row(integer=np.bitwise_or),
        "stablehlo.power": Row(np.power, cx.power, integer_power, np.logical_or, precise=True),
        "stablehlo.real": Row(np.positive, np.real),
        "stablehlo.remainder": Row(np.fmod, None, integer_remainder),
        "stablehlo.round_nearest_afz": Row(round_away),
        "stablehlo.round_nearest_even": Row(np.rint),
        "stablehlo.rsqrt": Row(lambda x: 1 / np.sqrt(x), cx.rsqrt, precise=True),
        "stablehlo.sign": Row(sign, cx.sign, np.sign),
        "stablehlo.sine": Row(np.sin, np.sin, precise=True),
        "stablehlo.sqrt": Row(np.sqrt, np.sqrt, precise=True),
        "stablehlo.subtract": Row(np.subtract, np.subtract, np.subtract, np.logical_xor),
        "stablehlo.tan": Row(np.tan, np.tan, precise=True),
        "stablehlo.tanh": Row(np.tanh, np.tanh, precise=True),
        "stablehlo.xor": Row(integer=np.bitwise_xor),
    }
)


# --- bits


def _shift_amount(rhs: np.ndarray, element: ElementType) -> tuple[np.ndarray, np.ndarray]:
    """(amount below the width, whether the amount asked for was): amounts count as unsigned."""
    amount = bits_of(rhs)
    inside = amount < element.bits
    return np.where(inside, amount, 0).astype(amount.dtype), inside


@pointwise("stablehlo.shift_left")
def evaluate_shift_left(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs * 2^rhs; 0 where rhs is no less than the width."""
    amount, inside = _shift_amount(rhs, op.type.element)
    bits = bits_of(lhs)
    return from_bits(np.where(inside, bits << amount, 0).astype(bits.dtype), lhs.dtype)


@pointwise("stablehlo.shift_right_logical")
def evaluate_shift_right_logical(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Zeros come in from the left."""
    amount, inside = _shift_amount(rhs, op.type.element)
    bits = bits_of(lhs)
    return from_bits(np.where(inside, bits >> amount, 0).astype(bits.dtype), lhs.dtype)


@pointwise("stablehlo.shift_right_arithmetic")
def evaluate_shift_right_arithmetic(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Copies of the highest bit come in from the left, for unsigned types too."""
    element = op.type.element
    amount, inside = _shift_amount(rhs, element)
    signed = np.dtype(f"int{8 * lhs.dtype.itemsize}")
    spare = 8 * lhs.dtype.itemsize - element.bits
    value = (bits_of(lhs) << np.uint8(spare)).view(signed) >> signed.type(spare)
    shifted = value >> np.where(inside, amount, element.bits - 1).astype(signed)
    return from_bits(shifted.view(np.dtype(f"uint{8 * lhs.dtype.itemsize}")), lhs.dtype)


@pointwise("stablehlo.popcnt")
def evaluate_popcnt(op: Op, operand: np.ndarray) -> np.ndarray:
    """How many bits are set."""
    return narrow(np.bitwise_count(bits_of(operand)), op.type.element.dtype)


@pointwise("stablehlo.count_leading_zeros")
def evaluate_count_leading_zeros(op: Op, operand: np.ndarray) -> np.ndarray:
    """The width minus the place of the highest set bit."""
    bits = bits_of(operand)
    step = 1
    while step < 8 * bits.dtype.itemsize:  # smear the highest bit over all below it
        bits = bits | (bits >> bits.dtype.type(step))
        step *= 2
    return narrow(op.type.element.bits - np.bitwise_count(bits).astype(np.int16), op.type.element.dtype)


@pointwise("stablehlo.reduce_precision")
def evaluate_reduce_precision(op: Op, operand: np.ndarray) -> np.ndarray:
    """As if stored with fewer exponent and mantissa bits: rounds to even, overflows to inf, flushes subnormals to 0."""
    if operand.dtype.itemsize == 1:  # formats whose bias is not that of their width
        return narrow(evaluate_reduce_precision(op, operand.astype(np.float32)), op.type.element.dtype)
    info = ml_dtypes.finfo(operand.dtype)
    exponent_bits, mantissa_bits = op.integer("exponent_bits"), op.integer("mantissa_bits")
    bits = bits_of(operand)
    word = bits.dtype.type
    mantissa, width = info.nmant, 8 * operand.dtype.itemsize
    if mantissa_bits < mantissa:
        unit = 1 << (mantissa - mantissa_bits)
        odd = (bits & word(unit)) >> word(mantissa - mantissa_bits)
        bits = (bits + odd + word((unit >> 1) - 1)) & word((1 << width) - unit)
    if exponent_bits < info.nexp:
        field = ((1 << info.nexp) - 1) << mantissa
        bias, reach = (1 << (info.nexp - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent, signed = bits & word(field), bits & word(1 << (width - 1))
        bits = np.where(exponent > word((bias + reach) << mantissa), signed | word(field), bits)
        bits = np.where(exponent <= word((bias - reach) << mantissa), signed, bits)
    result = from_bits(np.asarray(bits), operand.dtype)
    return np.where(np.isnan(exact(operand)), operand, result)


# --- choosing


@pointwise("stablehlo.select")
def evaluate_select(op: Op, pred: np.ndarray, on_true: np.ndarray, on_false: np.ndarray) -> np.ndarray:
    """pred ? on_true : on_false; pred may be a scalar."""
    return np.where(pred, on_true, on_false)


@pointwise("stablehlo.clamp")
def evaluate_clamp(op: Op, low: np.ndarray, operand: np.ndarray, high: np.ndarray) -> np.ndarray:
    """min(max(operand, low), high); the bounds may be scalars."""
    real = element_of(operand.dtype).is_float
    above, below = (maximum, minimum) if real else (np.maximum, np.minimum)
    return narrow(below(above(exact(operand), exact(low)), exact(high)), operand.dtype)
