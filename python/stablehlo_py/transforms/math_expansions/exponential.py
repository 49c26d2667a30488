"""exp, expm1, exp2, tanh, sinh and cosh: x = n log(2) + r, a polynomial in r, and 2^n put together from bits."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import (
    F64,
    Arithmetic,
    Whole,
    clamp,
    format_of,
    nearest,
    power_of_two,
    with_sign_of,
)
from stablehlo_py.transforms.math_expansions.coefficients import EXP_32, EXP_64, EXP_64_SHORT

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
# log(2) = high + low; high has so few bits that n * high is exact
LN2_PARTS_32 = (0.693359375, -2.1219444005469057e-4)
LN2_PARTS_64 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
# beyond these the result is 0 or infinite, and the bits of 2^n would wrap around
_EXP_RANGE_32, _EXP_RANGE_64 = (-104.0, 89.0), (-746.0, 710.0)
_EXPM1_LOW_32, _EXPM1_LOW_64 = -18.0, -40.0
_TANH_IS_ONE_32, _TANH_IS_ONE_64 = 9.5, 20.0
_SINH_RANGE = 712.0


def reduce_exp(m: Arithmetic, x: Num, *, biases: int = 2, more: int = 0) -> tuple[Whole, Num]:
    """n and r with x = n log(2) + r, |r| <= log(2) / 2.

    biases: what n is to become, see `Whole`: two powers of two, or one; more: by so much larger a power.
    """
    high, low = LN2_PARTS_64 if format_of(x) is F64 else LN2_PARTS_32
    n = nearest(m, x, LOG2_E, biases * format_of(x).bias + more)
    return n, m.multiply_add(n.value, -low, m.multiply_add(n.value, -high, x))


def expm1_of_rest(m: Arithmetic, r: Num, *, short: bool = False) -> Num:
    """exp(r) - 1 for |r| <= log(2) / 2."""
    square = r * r
    return m.multiply_add(square, _second_order(m, r, square, short=short), r)


def _second_order(m: Arithmetic, r: Num, square: Num, *, short: bool = False) -> Num:
    """(exp(r) - 1 - r) / r^2."""
    if format_of(r) is F64 and not short:
        return m.horner(r, EXP_64)
    return m.horner_by_pairs(r, square, EXP_64_SHORT if short else EXP_32)


def _scaled_expm1(m: Arithmetic, power: Num, r: Num, one: float) -> Num:
    """power exp(r) - one, in an order that rounds r's part only once beside the power of two."""
    square = r * r
    rest = square * _second_order(m, r, square)
    return m.multiply_add(power, rest, m.multiply_add(power, r, power - one))


def exp(m: Arithmetic, x: Num) -> Num:
    n, r = reduce_exp(m, clamp(x, *(_EXP_RANGE_64 if format_of(x) is F64 else _EXP_RANGE_32)))
    return m.scale_one_and(expm1_of_rest(m, r), n)


def exp_not_positive(m: Arithmetic, x: Num) -> Num:
    """exp of x <= 0, the same bits with fewer operations: 2^(n + c) is normal, and then 2^-c rounds subnormal results."""
    x = clamp(x, (_EXP_RANGE_64 if format_of(x) is F64 else _EXP_RANGE_32)[0], None)
    if m.ldexp:
        n, r = reduce_exp(m, x)
        return m.scale_one_and(expm1_of_rest(m, r), n)
    c = format_of(x).bias // 2 + 1
    n, r = reduce_exp(m, x, biases=1, more=c)
    power = power_of_two(n, c)
    return m.multiply_add(expm1_of_rest(m, r), power, power) * 2.0**-c


def exp_normal(m: Arithmetic, x: Num, *, short: bool = False) -> Num:
    """exp of x whose result is known to be a normal number."""
    n, r = reduce_exp(m, x, biases=1)
    power = power_of_two(n)
    return m.multiply_add(expm1_of_rest(m, r, short=short), power, power)


def exp2(m: Arithmetic, x: Num) -> Num:
    f = format_of(x)
    x = clamp(x, -float(f.bias + f.fraction + 2), float(f.bias + 2))
    n = nearest(m, x, 1.0, 2 * f.bias)
    return m.scale_one_and(expm1_of_rest(m, (x - n.value) * LN2), n)


def expm1(m: Arithmetic, x: Num) -> Num:
    is_f64 = format_of(x) is F64
    low, high = (_EXPM1_LOW_64, _EXP_RANGE_64[1]) if is_f64 else (_EXPM1_LOW_32, _EXP_RANGE_32[1])
    n, r = reduce_exp(m, clamp(x, low, high), biases=1)
    # 2^n itself overflows where the result need not; half of a subnormal is not exact
    scaled = _scaled_expm1(m, power_of_two(n, -1), r, 0.5) * 2.0
    return where(abs(x) < format_of(x).smallest_normal * 4.0, x, scaled).copysign(x)


def _expm1_small(m: Arithmetic, x: Num) -> Num:
    """exp(x) - 1 for 0 <= x where 2^n is far from overflow."""
    n, r = reduce_exp(m, x, biases=1)
    return _scaled_expm1(m, power_of_two(n), r, 1.0)


def tanh(m: Arithmetic, x: Num) -> Num:
    """e / (e + 2) with e = exp(2 |x|) - 1."""
    one = _TANH_IS_ONE_64 if format_of(x) is F64 else _TANH_IS_ONE_32
    e = _expm1_small(m, clamp(abs(x), None, one) * 2.0)
    return with_sign_of(e / (e + 2.0), x)


def _half_exp(m: Arithmetic, x: Num) -> Num:
    """exp(x) / 2, which may be finite where exp(x) is not."""
    n, r = reduce_exp(m, clamp(x, None, _SINH_RANGE))
    return m.scale_one_and(expm1_of_rest(m, r), n, -1)


def _sinh(m: Arithmetic, x: Num) -> Num:
    size = abs(x)
    e = _expm1_small(m, clamp(size, None, 2.0))
    small = (e + e / (e + 1.0)) * 0.5
    half = _half_exp(m, size)
    return where(size < 1.0, small, half - 0.25 / half).copysign(x)


def _cosh(m: Arithmetic, x: Num) -> Num:
    half = _half_exp(m, abs(x))
    return half + 0.25 / half


def sinh(m: Arithmetic, x: Num) -> Num:
    return _sinh(m, x.to_f64()).to(x.type)


def cosh(m: Arithmetic, x: Num) -> Num:
    return _cosh(m, x.to_f64()).to(x.type)
