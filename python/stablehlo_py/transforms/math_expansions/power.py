"""pow, cbrt, rsqrt and hypot."""

from __future__ import annotations

from collections.abc import Callable

from stablehlo_py.mlir import ir
from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import (
    F32,
    INFINITY,
    NAN,
    Arithmetic,
    clamp,
    fast_two_sum,
    format_of,
    nan_like,
    nearest,
    power_of_two,
    rounded,
    two_sum,
)
from stablehlo_py.transforms.math_expansions.coefficients import CBRT, LOG_64
from stablehlo_py.transforms.math_expansions.exponential import LN2_PARTS_64, exp_normal, expm1_of_rest, reduce_exp
from stablehlo_py.transforms.math_expansions.logarithm import log_of_split, split, split_any

_POW_RANGE_32, _POW_RANGE_64 = 120.0, 760.0  # exp beyond is 0 or infinite in f32, f64
# x ** n as products: at most two roundings more, and the same zeros, infinities and NaN as by the rules below
_PRODUCTS: dict[float, Callable[[Num], Num]] = {
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    -1.0: lambda x: 1.0 / x,
}
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_CBRT_2, _CBRT_4 = 1.2599210498948732, 1.5874010519681996


def pow(m: Arithmetic, x: Num, y: Num) -> Num:
    """x ** y by the rules of C99: 1 where y is 0 or x is 1, NaN for a negative finite x and a broken y."""
    if (product := _PRODUCTS.get(_constant(y))) is not None:
        return product(x)
    ty, single = x.type, format_of(x) is F32
    x, y = x.to_f64(), y.to_f64()
    size = abs(x)
    size_one = size.eq(1.0)
    power = _pow_short(m, size, y) if single else _pow_exact(m, size, y)
    power = where(size_one & y.eq(y), 1.0, power)
    half = y * 0.5
    whole, even = rounded(y).eq(y), rounded(half).eq(half)
    signed = where(whole & ~even, power.copysign(x), power)
    broken = (x < 0.0) & (x > -INFINITY) & y.eq(y) & ~whole
    result = where(broken, nan_like(x), signed)
    return where(y.eq(0.0) | x.eq(1.0), 1.0, result).to(ty)


def _constant(x: Num) -> float:
    """The value of a constant; NaN for what is none."""
    owner = x.value.owner
    if not isinstance(owner, ir.OpView | ir.Operation) or owner.name != "arith.constant":
        return NAN
    return ir.FloatAttr(owner.attributes["value"]).value


def _log_limits(size: Num, log: Num) -> Num:
    """log where size is a positive finite number; its limits at 0, infinity and NaN."""
    return where(size > 0.0, where(size < INFINITY, log, size), where(size.eq(0.0), -INFINITY, size))


def _pow_short(m: Arithmetic, size: Num, y: Num) -> Num:
    """exp(y log(size)) in f64, good for f32, whose numbers are all normal here."""
    log = _log_limits(size, log_of_split(m, split(size), short=True))
    return exp_normal(m, clamp(y * log, -_POW_RANGE_32, _POW_RANGE_32), short=True)


def _pow_exact(m: Arithmetic, size: Num, y: Num) -> Num:
    """exp(y log(size)) with the logarithm and the product in two doubles each."""
    high, low = _log_in_two(m, size)
    high = _log_limits(size, high)
    exponent, lost = m.product(high, y)
    lost = m.multiply_add(low, y, lost)
    lost = where(abs(exponent) < _POW_RANGE_64, lost, 0.0)
    n, r = reduce_exp(m, clamp(exponent, -_POW_RANGE_64, _POW_RANGE_64))
    return m.scale_one_and(expm1_of_rest(m, r + lost), n)


def _log_in_two(m: Arithmetic, x: Num) -> tuple[Num, Num]:
    """log(x) to about 2^-65: s = f / (2 + f) and its cube in two doubles, the rest of the series in one.

    log(1 + f) = 2 s + s^3 (2/3 + z Q(z)), z = s^2
    """
    parts = split_any(x)
    k, f = parts.exponent, parts.fraction
    divisor, divisor_lost = fast_two_sum(f.lift(2.0), f)
    inverse = 1.0 / divisor
    s = f * inverse
    product, product_lost = m.product(s, divisor)
    s_lost = (((f - product) - product_lost) - s * divisor_lost) * inverse
    z, z_lost = m.product(s, s)
    z_lost = m.multiply_add(s * 2.0, s_lost, z_lost)
    # the series without its first coefficient, which is 2/3 in two doubles
    rest = z * m.horner(z, LOG_64[:-1])
    a, a_lost = fast_two_sum(z.lift(_TWO_THIRDS[0]), rest)
    a_lost = a_lost + (LOG_64[-1] - _TWO_THIRDS[0]) + _TWO_THIRDS[1]
    cube, cube_lost = m.product(s, z)
    cube_lost = cube_lost + m.multiply_add(s, z_lost, s_lost * z)
    b, b_lost = m.product(cube, a)
    b_lost = b_lost + m.multiply_add(cube, a_lost, cube_lost * a)
    high, low = LN2_PARTS_64
    total, lost = two_sum(k * high, s * 2.0)
    total, more = two_sum(total, b)
    return fast_two_sum(total, m.multiply_add(k, low, lost + more + (b_lost + s_lost * 2.0)))


def cbrt(m: Arithmetic, x: Num) -> Num:
    """t y^2 with y = t^(-1/3) by Newton's method, for t = |x| 2^(-3 q) in 0.7 .. 5.7; f32 by way of f64."""
    single = format_of(x) is F32
    wide = x.to_f64()
    size = abs(wide)
    parts = split(size) if single else split_any(size)
    # bring sqrt(1/2) .. sqrt(2) to 1 .. 2
    below = parts.fraction < 0.0
    mantissa = (parts.fraction + 1.0) * where(below, size.lift(2.0), 1.0)
    exponent = parts.exponent - where(below, size.lift(1.0), 0.0)
    third = nearest(m, exponent - 1.0, 1 / 3, format_of(exponent).bias)
    rest = exponent - third.value * 3.0  # 0, 1 or 2
    t = mantissa * where(rest.eq(0.0), size.lift(1.0), where(rest.eq(1.0), size.lift(2.0), 4.0))
    inverse = where(rest.eq(0.0), size.lift(1.0), where(rest.eq(1.0), size.lift(1 / _CBRT_2), 1 / _CBRT_4))
    y = m.horner(mantissa, CBRT) * inverse
    for _ in range(1 if single else 2):
        y = y + y * (1.0 - t * y * (y * y)) * (1 / 3)
    root = t * (y * y)
    if not single:
        square, lost = m.product(root, root)
        cube, cube_lost = m.product(square, root)
        root = root - ((cube - t) + (cube_lost + lost * root)) * (y * y) * (1 / 3)
    # the result is never subnormal
    result = root * power_of_two(third)
    return where((size > 0.0) & (size < INFINITY), result.copysign(wide), wide).to(x.type)


def rsqrt(m: Arithmetic, x: Num) -> Num:
    return (1.0 / x.to_f64().sqrt()).to(x.type)


def hypot(m: Arithmetic, x: Num, y: Num) -> Num:
    """sqrt(x^2 + y^2); infinite where one of them is, even beside NaN."""
    infinite = abs(x).eq(INFINITY) | abs(y).eq(INFINITY)
    if format_of(x) is F32:
        a, b = x.to_f64(), y.to_f64()
        return where(infinite, INFINITY, m.multiply_add(a, a, b * b).sqrt().to(x.type))
    a, b = abs(x), abs(y)
    large = where(a > b, a, b)
    up = where(large < 2.0**-400, x.lift(2.0**700), 1.0)
    factor = where(large > 2.0**400, x.lift(2.0**-700), up)
    back = where(large > 2.0**400, x.lift(2.0**700), where(large < 2.0**-400, x.lift(2.0**-700), 1.0))
    a, b = a * factor, b * factor
    (square_a, lost_a), (square_b, lost_b) = m.product(a, a), m.product(b, b)
    total, lost = two_sum(square_a, square_b)
    return where(infinite, INFINITY, (total + (lost + lost_a + lost_b)).sqrt() * back)
