"""sin, cos and tan: quarter turns n and a rest f, then polynomials on an eighth of a circle. f32 by way of f64."""

from __future__ import annotations

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import F32, Arithmetic, format_of, rounded
from stablehlo_py.transforms.math_expansions.coefficients import COS_64, COS_TURNS, SIN_64, SIN_TURNS
from stablehlo_py.transforms.math_expansions.quarter_turns import quarter_turns_32, quarter_turns_64

_PI_2 = (1.5707963267948966, 6.123233995736766e-17)
_IS_ITS_SINE = 2.0**-27


def _sin_cos_short(m: Arithmetic, x: Num) -> tuple[Num, Num, Num]:
    """n, and sin and cos of the rest, for f32."""
    n, f = quarter_turns_32(m, x.to_f64())
    square = f * f
    return n, m.horner(square, SIN_TURNS) * f, m.horner(square, COS_TURNS)


def _sin_cos_exact(m: Arithmetic, x: Num) -> tuple[Num, Num, Num]:
    n, f, f_lost = quarter_turns_64(m, x)
    r, lost = m.product(f, f.lift(_PI_2[0]))
    lost = m.multiply_add(f, _PI_2[1], m.multiply_add(f_lost, _PI_2[0], lost))
    square = r * r
    sine = r + m.multiply_add(m.horner(square, SIN_64), square * r, lost)
    half = square * 0.5
    near_one = 1.0 - half
    rest = m.multiply_add(m.horner(square, COS_64), square * square, -(r * lost))
    return n, sine, near_one + (((1.0 - near_one) - half) + rest)


def _sin_cos(m: Arithmetic, x: Num) -> tuple[Num, Num, Num]:
    return (_sin_cos_short if format_of(x) is F32 else _sin_cos_exact)(m, x)


def _low_bit(n: Num) -> Num:
    """Whether a small whole number is odd."""
    half = n * 0.5
    return rounded(half).ne(half)


def _pick(n: Num, sine: Num, cosine: Num) -> Num:
    """The sine of n quarter turns and the rest."""
    value = where(_low_bit(n), cosine, sine)
    lower = _low_bit((n * 0.5).floor())  # n modulo 4 is 2 or 3
    return where(lower, -value, value)


def sin(m: Arithmetic, x: Num) -> Num:
    n, sine, cosine = _sin_cos(m, x)
    return _or_itself(x, _pick(n, sine, cosine))


def cos(m: Arithmetic, x: Num) -> Num:
    n, sine, cosine = _sin_cos(m, x)
    return _pick(n + 1.0, sine, cosine).to(x.type)


def tan(m: Arithmetic, x: Num) -> Num:
    n, sine, cosine = _sin_cos(m, x)
    odd = _low_bit(n)
    return _or_itself(x, where(odd, -cosine, sine) / where(odd, sine, cosine))


def _or_itself(x: Num, result: Num) -> Num:
    """x where that is so small that subnormal products would count, and where it is -0."""
    small = x.eq(0.0) if format_of(x) is F32 else abs(x) < _IS_ITS_SINE
    return where(small, x, result.to(x.type))
