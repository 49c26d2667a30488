"""Comparisons, select and clamp."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import is_splat, maker, operand, operands, splat, type_of


@simplify("stablehlo.select")
def select_known(op: Op) -> ir.Value | None:
    """select(true, a, b) == a and select(false, a, b) == b."""
    predicate, on_true, on_false = operands(op)
    known = splat(predicate)
    return None if known is None else on_true if known else on_false


@simplify("stablehlo.select")
def select_equal(op: Op) -> ir.Value | None:
    """select(p, a, a) == a."""
    _, on_true, on_false = operands(op)
    return on_true if on_true == on_false else None


@simplify("stablehlo.select")
def select_not(op: Op) -> ir.Value | None:
    """select(!p, a, b) == select(p, b, a)."""
    predicate, on_true, on_false = operands(op)
    inner = maker(predicate, "not")
    return make.select(operand(inner), on_false, on_true) if inner else None


@simplify("stablehlo.select")
def select_of_select(op: Op) -> ir.Value | None:
    """select(p, select(p, a, b), c) == select(p, a, c); select(p, a, select(p, b, c)) == select(p, a, c)."""
    predicate, on_true, on_false = operands(op)
    if (inner := maker(on_true, "select")) and operand(inner) == predicate:
        return make.select(predicate, operand(inner, 1), on_false)
    if (inner := maker(on_false, "select")) and operand(inner) == predicate:
        return make.select(predicate, on_true, operand(inner, 2))
    return None


@simplify("stablehlo.select")
def select_booleans(op: Op) -> ir.Value | None:
    """select(p, true, false) == p and select(p, false, true) == !p."""
    predicate, on_true, on_false = operands(op)
    if not op.type.element.is_bool or predicate.type != on_true.type:
        return None
    if is_splat(on_true, 1) and is_splat(on_false, 0):
        return predicate
    return make.elementwise("not", predicate) if is_splat(on_true, 0) and is_splat(on_false, 1) else None


@simplify("stablehlo.compare")
def compare_itself(op: Op) -> ir.Value | None:
    """x == x, x <= x, x >= x and not x != x, x < x, x > x; not for floats, which may be NaN."""
    x, y = operands(op)
    element = type_of(x).element
    if x != y or element.is_float or element.is_complex:
        return None
    return make.constant(np.asarray(op.enum("comparison_direction") in ("EQ", "LE", "GE")), op.type)


@simplify("stablehlo.compare")
def compare_unsigned_zero(op: Op) -> ir.Value | None:
    """x < 0 is false and x >= 0 is true for unsigned x."""
    x, y = operands(op)
    direction = op.enum("comparison_direction")
    if not type_of(x).element.is_unsigned or direction not in ("LT", "GE") or not is_splat(y, 0):
        return None
    return make.constant(np.asarray(direction == "GE"), op.type)


@simplify("stablehlo.compare")
def compare_boolean(op: Op) -> ir.Value | None:
    """(p != false) == p and (p == true) == p, for booleans and for numbers that were made of them."""
    x, y = operands(op)
    direction = op.enum("comparison_direction")
    if op.enum("compare_type") == "TOTALORDER" or direction not in ("EQ", "NE"):
        return None
    if not is_splat(y, 0 if direction == "NE" else 1):
        return None
    if type_of(x).element.is_bool:
        return x
    inner = maker(x, "convert")
    return operand(inner) if inner and type_of(operand(inner)).element.is_bool else None


@simplify("stablehlo.clamp")
def clamp_wide(op: Op) -> ir.Value | None:
    """clamp(-inf, x, inf) == x; likewise the least and the greatest integer."""
    low, x, high = operands(op)
    element = op.type.element
    if element.is_float:
        wide = is_splat(low, -np.inf) and is_splat(high, np.inf)
    elif element.is_integer:
        signed = element.kind == "int"
        least, most = (-(1 << (element.bits - 1)) if signed else 0), (1 << (element.bits - signed)) - 1
        wide = is_splat(low, least) and is_splat(high, most)
    else:
        return None
    return x if wide else None
