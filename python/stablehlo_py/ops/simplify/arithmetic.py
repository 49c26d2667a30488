"""Identities of arithmetic that hold for every value: NaN, infinities, both zeros, and integers that wrap."""

from __future__ import annotations

import math

import numpy as np

from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import is_splat, maker, operand, operands, splat, type_of

# --- neutral and absorbing operands


@simplify("stablehlo.add")
def add_zero(op: Op) -> ir.Value | None:
    """x + 0 == x for integers; x + -0.0 == x for floats."""
    return _other(op, -0.0 if op.type.element.is_float else 0)


@simplify("stablehlo.subtract")
def subtract_zero(op: Op) -> ir.Value | None:
    """x - 0 == x; for floats the zero is +0.0, since -0.0 - -0.0 == +0.0."""
    x, y = operands(op)
    return x if not op.type.element.is_complex and is_splat(y, 0.0) else None


@simplify("stablehlo.multiply")
def multiply_one(op: Op) -> ir.Value | None:
    """x * 1 == x."""
    return _other(op, 1)


@simplify("stablehlo.multiply", "stablehlo.and")
def integer_zero(op: Op) -> ir.Value | None:
    """x * 0 == 0 and x & 0 == 0 for integers and booleans."""
    if op.type.element.is_float or op.type.element.is_complex:
        return None
    return next((v for v in operands(op) if is_splat(v, 0)), None)


@simplify("stablehlo.divide")
def divide_one(op: Op) -> ir.Value | None:
    """x / 1 == x."""
    x, y = operands(op)
    return x if not op.type.element.is_complex and is_splat(y, 1) else None


@simplify("stablehlo.or", "stablehlo.xor")
def or_zero(op: Op) -> ir.Value | None:
    """x | 0 == x and x ^ 0 == x."""
    return _other(op, 0)


@simplify("stablehlo.and")
def and_ones(op: Op) -> ir.Value | None:
    """x & ~0 == x."""
    x, y = operands(op)
    return x if _is_all_ones(y) else y if _is_all_ones(x) else None


@simplify("stablehlo.or")
def or_ones(op: Op) -> ir.Value | None:
    """x | ~0 == ~0."""
    return next((v for v in operands(op) if _is_all_ones(v)), None)


@simplify("stablehlo.shift_left", "stablehlo.shift_right_logical", "stablehlo.shift_right_arithmetic")
def shift_zero(op: Op) -> ir.Value | None:
    """x << 0 == x, and to the right."""
    x, y = operands(op)
    return x if is_splat(y, 0) else None


@simplify("stablehlo.maximum")
def maximum_lowest(op: Op) -> ir.Value | None:
    """max(x, -inf) == x, NaN included; likewise the least integer."""
    return _other(op, _lowest(op))


@simplify("stablehlo.minimum")
def minimum_highest(op: Op) -> ir.Value | None:
    """min(x, inf) == x, NaN included; likewise the greatest integer."""
    return _other(op, _highest(op))


# --- equal operands


@simplify("stablehlo.and", "stablehlo.or", "stablehlo.maximum", "stablehlo.minimum")
def same_twice(op: Op) -> ir.Value | None:
    """f(x, x) == x for and, or, max, min."""
    x, y = operands(op)
    return x if x == y and not op.type.element.is_complex else None


@simplify("stablehlo.subtract", "stablehlo.xor")
def minus_itself(op: Op) -> ir.Value | None:
    """x - x == 0 and x ^ x == 0 for integers; not for floats, whose x may be infinite."""
    x, y = operands(op)
    element = op.type.element
    if x != y or element.is_float or element.is_complex:
        return None
    return make.constant(np.zeros((), element.dtype), op.type)


# --- signs


@simplify("stablehlo.negate", "stablehlo.not")
def twice(op: Op) -> ir.Value | None:
    """--x == x and ~~x == x."""
    inner = maker(operand(op), op.name.removeprefix("stablehlo."))
    return operand(inner) if inner else None


@simplify("stablehlo.abs")
def absolute_of_sign(op: Op) -> ir.Value | None:
    """|-x| == |x|, for integers that wrap too; complex x has no sign to lose."""
    inner = maker(operand(op), "negate")
    if inner is None or type_of(operand(op)).element.is_complex:
        return None
    return make.elementwise("abs", operand(inner))


@simplify(
    *(f"stablehlo.{name}" for name in ("abs", "floor", "ceil", "sign", "round_nearest_afz", "round_nearest_even"))
)
def once_is_enough(op: Op) -> ir.Value | None:
    """f(f(x)) == f(x) for abs, floor, ceil, sign and the roundings."""
    x = operand(op)
    return x if x.type == op.operation.results[0].type and maker(x, op.name.removeprefix("stablehlo.")) else None


@simplify("stablehlo.add")
def add_negated(op: Op) -> ir.Value | None:
    """x + -y == x - y, and -x + y == y - x."""
    x, y = operands(op)
    if op.type.element.is_bool:
        return None
    if inner := maker(y, "negate"):
        return make.elementwise("subtract", x, operand(inner))
    if inner := maker(x, "negate"):
        return make.elementwise("subtract", y, operand(inner))
    return None


@simplify("stablehlo.subtract")
def subtract_negated(op: Op) -> ir.Value | None:
    """x - -y == x + y."""
    x, y = operands(op)
    inner = maker(y, "negate")
    return make.elementwise("add", x, operand(inner)) if inner else None


@simplify("stablehlo.multiply", "stablehlo.divide")
def signs_cancel(op: Op) -> ir.Value | None:
    """-x * -y == x * y, and -x / -y == x / y, for floats."""
    x, y = (maker(v, "negate") for v in operands(op))
    if not (x and y and op.type.element.is_float):
        return None
    return make.elementwise(op.name.removeprefix("stablehlo."), operand(x), operand(y))


@simplify("stablehlo.multiply")
def multiply_minus_one(op: Op) -> ir.Value | None:
    """x * -1 == -x for floats and signed integers."""
    if not (op.type.element.is_float or op.type.element.kind == "int"):
        return None
    x = _other(op, -1)
    return make.elementwise("negate", x) if x is not None else None


# --- cheaper ops with the same result


@simplify("stablehlo.divide")
def divide_power_of_two(op: Op) -> ir.Value | None:
    """x / 2^k == x * 2^-k, where both are normal numbers: each is the one rounding of the same real number."""
    x, y = operands(op)
    element = op.type.element
    if element.name not in ("f32", "f64", "bf16", "f16"):
        return None
    divisor = splat(y)
    if divisor is None or not math.isfinite(divisor) or divisor == 0 or abs(math.frexp(float(divisor))[0]) != 0.5:
        return None
    exponent = math.frexp(float(divisor))[1] - 1
    lowest = {"f32": -126, "f64": -1022, "bf16": -126, "f16": -14}[element.name]
    if not lowest <= -exponent <= -lowest or not lowest <= exponent:
        return None
    return make.elementwise("multiply", x, make.constant(np.asarray(1 / float(divisor), element.dtype), op.type))


@simplify("stablehlo.power")
def small_powers(op: Op) -> ir.Value | None:
    """x^1 == x and x^2 == x * x, rounded once."""
    x, y = operands(op)
    if op.type.element.is_complex:
        return None
    if is_splat(y, 1):
        return x
    return make.elementwise("multiply", x, x) if is_splat(y, 2) else None


# --- complex numbers and their parts


@simplify("stablehlo.real", "stablehlo.imag")
def part_of_parts(op: Op) -> ir.Value | None:
    """real(complex(a, b)) == a and imag(complex(a, b)) == b."""
    inner = maker(operand(op), "complex")
    return operand(inner, 0 if op.name == "stablehlo.real" else 1) if inner else None


@simplify("stablehlo.complex")
def parts_together(op: Op) -> ir.Value | None:
    """complex(real(z), imag(z)) == z."""
    real, imag = maker(operand(op, 0), "real"), maker(operand(op, 1), "imag")
    if not (real and imag) or operand(real) != operand(imag):
        return None
    return operand(real) if operand(real).type == op.operation.results[0].type else None


def _other(op: Op, number: float) -> ir.Value | None:
    """The operand beside one that is `number` everywhere."""
    if op.type.element.is_complex:
        return None
    x, y = operands(op)
    return x if is_splat(y, number) else y if is_splat(x, number) else None


def _is_all_ones(value: ir.Value) -> bool:
    element = type_of(value).element
    return is_splat(value, 1 if element.is_bool else (1 << element.bits) - 1 if element.is_unsigned else -1)


def _lowest(op: Op) -> float:
    element = op.type.element
    if element.is_float:
        return -math.inf
    return -(1 << (element.bits - 1)) if element.kind == "int" else 0


def _highest(op: Op) -> float:
    element = op.type.element
    if element.is_float:
        return math.inf
    return (1 << (element.bits - (element.kind == "int"))) - 1
