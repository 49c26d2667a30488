"""erf and erfc: a polynomial in x^2 near 0, exp(-x^2) times a slow function beyond."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import (
    F64,
    Arithmetic,
    clamp,
    fast_two_sum,
    format_of,
    with_sign_of,
)
from stablehlo_py.transforms.math_expansions.coefficients import (
    ERF_32,
    ERF_32_TAIL,
    ERF_64,
    ERFC_32,
    ERFC_64,
)
from stablehlo_py.transforms.math_expansions.exponential import exp_normal, expm1_of_rest, reduce_exp

_NEAR_32, _NEAR_64 = 0.9375, 1.0
_ERF_IS_ONE_32 = 4.0
_ERFC_NEAR = 0.5


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
    """1 - erf(x), which does not cancel."""
    size, square = abs(x), x * x
    positive = _erfc_positive(m, size)
    far = where(x < 0.0, 2.0 - positive, positive)
    near = m.horner(square, ERF_64) * x if format_of(x) is F64 else m.multiply_add(m.horner(square, ERF_32), x, x)
    return where(size < _ERFC_NEAR, 1.0 - near, far)  # P loses two bits where q is near its least


def _erfc_positive(m: Arithmetic, x: Num) -> Num:
    """exp(-x^2) P(q) / (1 + 2 x), with q = (x - c) / (x + c) for x in 1/2 .. infinity."""
    is_f64 = format_of(x) is F64
    center, coefficients, zero = (4.0, ERFC_64, 28.0) if is_f64 else (2.0, ERFC_32, 10.1)
    x = clamp(x, None, zero)
    q = (x - center) / (x + center)
    # the last step by itself: it rounds only once
    polynomial = m.multiply_add(m.horner_by_pairs(q, q * q, coefficients[:-1]), q, coefficients[-1])
    divisor, rest = fast_two_sum(x * 2.0, x.lift(1.0))
    inverse = 1.0 / divisor
    slow = polynomial * inverse
    slow = m.multiply_add(m.multiply_add(-slow, rest, m.multiply_add(-slow, divisor, polynomial)), inverse, slow)
    square, lost = m.product(x, x)
    n, r = reduce_exp(m, -square)
    return m.scale(m.multiply_add(slow, expm1_of_rest(m, r - lost), slow), n)
