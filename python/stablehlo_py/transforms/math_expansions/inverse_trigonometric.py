"""atan, atan2, asin and acos: an odd polynomial for tangents up to tan(pi / 8), and multiples of pi / 4."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import F32, INFINITY, Arithmetic, format_of
from stablehlo_py.transforms.math_expansions.coefficients import ATAN_64, ATAN_64_SHORT

_TAN_PI_8 = 0.41421356237309503
# pi / 4 = high + low; three times high is exact
_PI_4 = (float.fromhex("0x1.921fb54442d18p-1"), float.fromhex("0x1.1a62633145c07p-55"))
_LARGE, _SMALL = 2.0**1000, 2.0**-900


def _angle(m: Arithmetic, y: Num, x: Num, *, short: bool) -> Num:
    """The angle of the point (x, y) in 0 .. pi for y >= 0; both are f64, zeros count with their sign."""
    size = abs(x)
    steep = y > size
    low, high = where(steep, size, y), where(steep, y, size)
    # 0 / 0 and inf / inf are the axes and the diagonals
    both = low.eq(INFINITY) & high.eq(INFINITY)
    low = where(both, 1.0, low)
    high = where(both | high.eq(0.0), 1.0, high)
    if not short:  # low + high must not overflow, and high tan(pi / 8) not be subnormal; f32 is far from both
        factor = where(high > _LARGE, x.lift(0.25), where(high < _SMALL, x.lift(2.0**200), 1.0))
        low, high = low * factor, high * factor
    middle = low > high * _TAN_PI_8
    z = where(middle, low - high, low) / where(middle, low + high, high)
    square = z * z
    coefficients = ATAN_64_SHORT if short else ATAN_64
    tail = m.horner(square, coefficients[:-1]) * square + (coefficients[-1] - 1.0)
    a = m.multiply_add(tail, z, z)
    # a + eighths pi / 4, then reflected at the diagonal and at the vertical axis
    eighths = where(middle, x.lift(1.0), 0.0)
    eighths, a = where(steep, 2.0 - eighths, eighths), where(steep, -a, a)
    left = x.bits < 0
    eighths, a = where(left, 4.0 - eighths, eighths), where(left, -a, a)
    return m.multiply_add(eighths, _PI_4[0], m.multiply_add(eighths, _PI_4[1], a))


def atan2(m: Arithmetic, y: Num, x: Num) -> Num:
    wide = y.to_f64()
    return _angle(m, abs(wide), x.to_f64(), short=format_of(y) is F32).copysign(wide).to(y.type)


def atan(m: Arithmetic, x: Num) -> Num:
    wide = x.to_f64()
    return _angle(m, abs(wide), wide.lift(1.0), short=format_of(x) is F32).copysign(wide).to(x.type)


def _cosine_of(x: Num) -> Num:
    """sqrt(1 - x^2), NaN beyond 1."""
    return ((1.0 - x) * (1.0 + x)).sqrt()


def asin(m: Arithmetic, x: Num) -> Num:
    wide = x.to_f64()
    return _angle(m, abs(wide), _cosine_of(wide), short=format_of(x) is F32).copysign(wide).to(x.type)


def acos(m: Arithmetic, x: Num) -> Num:
    wide = x.to_f64()
    return _angle(m, _cosine_of(wide), wide, short=format_of(x) is F32).to(x.type)
