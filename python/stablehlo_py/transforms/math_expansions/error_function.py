"""erf and erfc: a polynomial in x^2 near 0, exp(-x^2) times a slow function beyond."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import F64, Arithmetic, clamp, format_of, with_sign_of
from stablehlo_py.transforms.math_expansions.coefficients import (
    ERF_32,
    ERF_32_TAIL,
    ERF_64,
    ERFC_64,
    ERFC_64_SHORT,
)
from stablehlo_py.transforms.math_expansions.exponential import exp_normal, expm1_of_rest, reduce_exp

_NEAR_32, _NEAR_64 = 0.9375, 1.0
_ERF_IS_ONE_32 = 4.0
_ERFC_NEAR_64 = 0.5
_ERFC_IS_ZERO_32, _ERFC_IS_ZERO_64 = 11.0, 28.0
_ERFC_CENTER = 4.0


def erf(m: Arithmetic, x: Num) -> Num:
    size, square = abs(x), x * x
    if format_of(x) is F64:
        near = m.horner(square, ERF_64) * x
        return where(size < _NEAR_64, near, (1.0 - _erfc_positive(m, size)).copysign(x))
    near = m.multiply_add(m.horner(square, ERF_32), x, x)
    bounded = clamp(size, None, _ERF_IS_ONE_32)
    far = 1.0 - exp_normal(m, m.horner(bounded, ERF_32_TAIL) - bounded)
    return where(size < _NEAR_32, near, with_sign_of(far, x))


def erfc(m: Arithmetic, x: Num) -> Num:
    """1 - erf(x), which does not cancel; f32 by way of f64."""
    short = format_of(x) is not F64
    wide = x.to_f64()
    positive = _erfc_positive(m, abs(wide), short=short)
    result = where(wide < 0.0, 2.0 - positive, positive)
    if short:
        return result.to(x.type)
    # P loses two bits where q is near -1
    near = m.horner(wide * wide, ERF_64)
    return where(abs(wide) < _ERFC_NEAR_64, 1.0 - near * wide, result)


def _erfc_positive(m: Arithmetic, x: Num, *, short: bool = False) -> Num:
    """exp(-x^2) P(q) / (1 + 2 x), with q = (x - 4) / (x + 4) for x in 0 .. infinity; x is f64."""
    x = clamp(x, None, _ERFC_IS_ZERO_32 if short else _ERFC_IS_ZERO_64)
    if short:
        # one division for both: the roundings of the products around it are lost in that to f32
        sum_, more = x + _ERFC_CENTER, x * 2.0 + 1.0
        inverse = 1.0 / (sum_ * more)
        q = (x - _ERFC_CENTER) * (more * inverse)
        slow = m.horner_by_pairs(q, q * q, ERFC_64_SHORT) * (sum_ * inverse)
        return exp_normal(m, -(x * x), short=True) * slow
    q = (x - _ERFC_CENTER) / (x + _ERFC_CENTER)
    slow = m.horner(q, ERFC_64) / (x * 2.0 + 1.0)
    square, lost = m.product(x, x)
    n, r = reduce_exp(m, -square)
    power = expm1_of_rest(m, r - lost) + 1.0
    return m.scale(power * slow, n)
