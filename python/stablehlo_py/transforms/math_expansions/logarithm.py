"""log, log1p, asinh, acosh and atanh: x = 2^k (1 + f) with 1 + f near 1, and a polynomial for log(1 + f)."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.records import record
from stablehlo_py.transforms.math_expansions.arithmetic import (
    F32,
    F64,
    INFINITY,
    Arithmetic,
    format_of,
    integer_to_float,
    nan_like,
    two_sum,
)
from stablehlo_py.transforms.math_expansions.coefficients import LOG_32, LOG_64, LOG_64_SHORT
from stablehlo_py.transforms.math_expansions.exponential import LN2, LN2_PARTS_32, LN2_PARTS_64

_SQRT_HALF_BITS = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}
_SQUARE_VANISHES = 2.0**60  # above, x^2 + 1 is x^2 and log(x + 1) is log(x)


@record
class Split:
    """x = 2^exponent (1 + fraction), sqrt(1/2) <= 1 + fraction < sqrt(2); both are floats, the fraction is exact."""

    exponent: Num
    fraction: Num


def split(x: Num) -> Split:
    """A positive finite normal number."""
    f = format_of(x)
    bits = x.bits
    low = _SQRT_HALF_BITS[f]
    if f is F32:
        exponent = (bits - low) >> f.fraction
        rest = bits - (exponent << f.fraction)
        return Split(integer_to_float(exponent, x.type), rest.as_float() - 1.0)
    # 64-bit integers have neither an arithmetic shift nor a conversion to float in most vector units
    above = bits - low
    biased = (above + (f.bias << f.fraction)).shift_right_logical(f.fraction)
    ones = (f.bias + f.fraction) << f.fraction  # the bits of 2^52, which end in an integer
    exponent = (biased | ones).as_float() - (2.0**f.fraction + f.bias)
    return Split(exponent, (bits - (above & f.exponent_sign_mask)).as_float() - 1.0)


def split_any(x: Num) -> Split:
    """A positive finite number, subnormal or not."""
    f = format_of(x)
    small = x < f.smallest_normal
    parts = split(where(small, x * 2.0**f.fraction, x))
    return Split(parts.exponent - where(small, x.lift(float(f.fraction)), 0.0), parts.fraction)


def log_of_split(m: Arithmetic, parts: Split, correction: Num | None = None, *, short: bool = False) -> Num:
    """log(2^k (1 + f)) + correction."""
    k, f = parts.exponent, parts.fraction
    square = f * f
    if format_of(f) is F32:
        high, low = LN2_PARTS_32
        tail = m.horner_by_pairs(f, square, LOG_32) * (square * f)
        tail = m.multiply_add(k, low, tail)
        tail = m.multiply_add(square, -0.5, tail if correction is None else tail + correction)
        return m.multiply_add(k, high, f + tail)
    high, low = LN2_PARTS_64
    s = f / (f + 2.0)
    z = s * s
    half = square * 0.5
    rest = half + m.horner(z, LOG_64_SHORT if short else LOG_64) * z
    tail = m.multiply_add(s, rest, k * low if correction is None else m.multiply_add(k, low, correction))
    # log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + z R(z))): the form of fdlibm, which keeps f exact
    return m.multiply_add(k, high, f - (half - tail))


def log(m: Arithmetic, x: Num, *, short: bool = False) -> Num:
    """-inf at 0, NaN below."""
    return _with_limits(log_of_split(m, split_any(x), short=short), x, x)


def _with_limits(result: Num, x: Num, argument: Num) -> Num:
    """The log of `argument` where that is positive; an infinite or NaN x is its own logarithm."""
    finite = where(x < INFINITY, result, x)
    return where(argument > 0.0, finite, where(argument.eq(0.0), -INFINITY, nan_like(x)))


def log1p(m: Arithmetic, x: Num, *, short: bool = False) -> Num:
    """log of the rounded 1 + x, corrected by what the rounding lost."""
    u, lost = two_sum(x.lift(1.0), x)
    result = log_of_split(m, split(u), lost / u, short=short).copysign(x)
    return _with_limits(result, x, u)


def _asinh(m: Arithmetic, x: Num, *, short: bool) -> Num:
    size = abs(x)
    far = size > _SQUARE_VANISHES
    near = where(far, 1.0, size)
    square = near * near
    argument = where(far, size, near + square / ((square + 1.0).sqrt() + 1.0))
    return (log1p(m, argument, short=short) + where(far, x.lift(LN2), 0.0)).copysign(x)


def _acosh(m: Arithmetic, x: Num, *, short: bool) -> Num:
    far = x > _SQUARE_VANISHES
    above = where(far, 1.0, x) - 1.0
    argument = where(far, x, above + (above * (above + 2.0)).sqrt())
    result = log1p(m, argument, short=short) + where(far, x.lift(LN2), 0.0)
    return where(x < 1.0, nan_like(x), result)


def _atanh(m: Arithmetic, x: Num, *, short: bool) -> Num:
    size = abs(x)
    return (log1p(m, size * 2.0 / (1.0 - size), short=short) * 0.5).copysign(x)


def asinh(m: Arithmetic, x: Num) -> Num:
    return _asinh(m, x.to_f64(), short=format_of(x) is F32).to(x.type)


def acosh(m: Arithmetic, x: Num) -> Num:
    return _acosh(m, x.to_f64(), short=format_of(x) is F32).to(x.type)


def atanh(m: Arithmetic, x: Num) -> Num:
    return _atanh(m, x.to_f64(), short=format_of(x) is F32).to(x.type)
