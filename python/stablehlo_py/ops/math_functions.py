"""Real scalar functions of StableHLO that are not one op of the arith and math dialects."""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops.expression import Num, where


def sign(value: ir.Value) -> ir.Value:
    """-1, +-0, 1 or NaN."""
    x = Num(value)
    return where(x.eq(0.0) | x.is_nan, x, x.lift(1.0).copysign(x)).value


def is_finite(value: ir.Value) -> ir.Value:
    return (abs(Num(value)) < float("inf")).value


def zero(value: ir.Value) -> ir.Value:
    """The imaginary part of a real number."""
    return Num(value).lift(0.0).value


def rsqrt(value: ir.Value) -> ir.Value:
    """1 / sqrt(x); f32 goes through f64 and is rounded once."""
    x = Num(value)
    return (1.0 / x.to_f64().sqrt()).to(x.type).value


def logistic(value: ir.Value) -> ir.Value:
    """1 / (1 + exp(-x)), and exp(x) / (1 + exp(x)) for negative x, where exp(-x) would overflow."""
    x = Num(value)
    small = Num(math.exp((-abs(x)).value))
    return (where(x < 0.0, small, 1.0) / (1.0 + small)).value


def power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    return math.powf(base, exponent)


def remainder(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """x - trunc(x / y) y, exactly: C's fmod."""
    return arith.remf(lhs, rhs)


def atan2(y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of the point (x, y); a zero point has that of (+-1, +-0), by the sign of x."""
    vertical, horizontal = Num(y), Num(x)
    # MLIR folds math.atan2 of two zeros to NaN
    is_zero = vertical.eq(0.0) & horizontal.eq(0.0)
    return math.atan2(y, where(is_zero, horizontal.lift(1.0).copysign(horizontal), horizontal).value)
