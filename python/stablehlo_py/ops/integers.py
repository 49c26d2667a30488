"""Integer scalar functions: the operations whose corner cases the machine leaves open."""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops.expression import Num, where


def divide(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Signed quotient towards zero; x / 0 == -1 and INT_MIN / -1 == INT_MIN, without a trap."""
    x, y = Num(lhs), Num(rhs)
    zero, overflow = y.eq(0), _overflows(x, y)
    quotient = Num(arith.divsi(lhs, where(zero | overflow, 1, y).value))
    return where(zero, -1, quotient).value


def remainder(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Signed remainder with the sign of lhs; x % 0 == x and INT_MIN % -1 == 0."""
    x, y = Num(lhs), Num(rhs)
    zero, overflow = y.eq(0), _overflows(x, y)
    rest = Num(arith.remsi(lhs, where(zero | overflow, 1, y).value))
    return where(zero, x, rest).value


def _overflows(x: Num, y: Num) -> Num:
    return x.eq(-1 << (x.width - 1)) & y.eq(-1)


def divide_unsigned(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Unsigned quotient; x / 0 is all ones."""
    y = Num(rhs)
    zero = y.eq(0)
    return where(zero, -1, Num(arith.divui(lhs, where(zero, 1, y).value))).value


def remainder_unsigned(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """Unsigned remainder; x % 0 == x."""
    y = Num(rhs)
    zero = y.eq(0)
    return where(zero, Num(lhs), Num(arith.remui(lhs, where(zero, 1, y).value))).value


def absolute(x: ir.Value) -> ir.Value:
    return abs(Num(x)).value


def negate(x: ir.Value) -> ir.Value:
    return (-Num(x)).value


def sign(value: ir.Value) -> ir.Value:
    x = Num(value)
    return where(x > 0, 1, where(x < 0, x.lift(-1), 0)).value


def invert(x: ir.Value) -> ir.Value:
    return (~Num(x)).value


def power(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """base ** exponent modulo 2**width; a negative exponent gives 1 for 1, +-1 for -1, else 0."""
    x, n = Num(base), Num(exponent)
    odd = (n & 1).ne(0)
    reciprocal = where(x.eq(1), x, where(x.eq(-1), where(odd, x, 1), 0))
    return where(n < 0, reciprocal, Num(power_unsigned(base, exponent))).value


def power_unsigned(base: ir.Value, exponent: ir.Value) -> ir.Value:
    """base ** exponent modulo 2**width by squaring, one step for each bit of the exponent."""
    square, n = Num(base), Num(exponent)
    result = square.lift(1)
    for bit in range(n.width):
        result = where(((n.shift_right_logical(bit)) & 1).ne(0), result * square, result)
        square = square * square
    return result.value


def shift_left(x: ir.Value, count: ir.Value) -> ir.Value:
    """0 where the count, unsigned, reaches the width."""
    return where(_in_range(count), Num(arith.shli(x, count)), 0).value


def shift_right_logical(x: ir.Value, count: ir.Value) -> ir.Value:
    """0 where the count, unsigned, reaches the width."""
    return where(_in_range(count), Num(arith.shrui(x, count)), 0).value


def shift_right_arithmetic(x: ir.Value, count: ir.Value) -> ir.Value:
    """The sign everywhere where the count, unsigned, reaches the width."""
    n = Num(count)
    return arith.shrsi(x, where(_in_range(count), n, n.width - 1).value)


def _in_range(count: ir.Value) -> Num:
    n = Num(count)
    return n.below(n.width)  # the width itself fits in an unsigned integer of that width


def popcount(x: ir.Value) -> ir.Value:
    return math.ctpop(x)


def leading_zeros(x: ir.Value) -> ir.Value:
    return math.ctlz(x)
