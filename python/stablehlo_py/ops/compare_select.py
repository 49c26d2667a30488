"""compare, select, clamp: choices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.core.registry import lower, scalar
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.later import Later
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.expression import Num, where

if TYPE_CHECKING:
    from stablehlo_py.ops import complex_functions as cx
else:
    cx = Later("stablehlo_py.ops.complex_functions")

_F, _I = arith.CmpFPredicate, arith.CmpIPredicate

# direction: (float, signed, unsigned); NE holds on NaN, the others do not
PREDICATES = {
    "EQ": (_F.OEQ, _I.eq, _I.eq),
    "NE": (_F.UNE, _I.ne, _I.ne),
    "LT": (_F.OLT, _I.slt, _I.ult),
    "LE": (_F.OLE, _I.sle, _I.ule),
    "GT": (_F.OGT, _I.sgt, _I.ugt),
    "GE": (_F.OGE, _I.sge, _I.uge),
}
_COMPLEX = {"EQ": cx.equal, "NE": cx.not_equal}


@scalar("stablehlo.compare")
def scalar_compare(op: Op, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    element = op.operand_types[0].element
    direction = op.enum("comparison_direction")
    on_float, on_signed, on_unsigned = PREDICATES[direction]
    if element.is_complex:
        if direction not in _COMPLEX:
            raise UnsupportedOp(op.name, f"{direction} is not defined on {element}", where=str(op.location))
        return _COMPLEX[direction](lhs, rhs)
    if element.is_float:
        if op.enum("compare_type") == "TOTALORDER":
            return arith.cmpi(on_signed, total_order(lhs), total_order(rhs))
        return arith.cmpf(on_float, lhs, rhs)
    signed = element.kind == "int"
    return arith.cmpi(on_signed if signed else on_unsigned, lhs, rhs)


def total_order(value: ir.Value) -> ir.Value:
    """A signed integer that orders floats -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    bits = Num(value).bits
    return where(bits < 0, bits ^ ((1 << (bits.width - 1)) - 1), bits).value


@scalar("stablehlo.select")
def scalar_select(op: Op, pred: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
    return arith.select(pred, on_true, on_false)


@scalar("stablehlo.clamp")
def scalar_clamp(op: Op, low: ir.Value, operand: ir.Value, high: ir.Value) -> ir.Value:
    """min(max(operand, low), high); NaN wins."""
    element = op.type.element
    if element.is_float:
        return arith.minimumf(arith.maximumf(operand, low), high)
    if element.is_complex:
        return cx.minimum(cx.maximum(operand, low), high)
    if element.kind == "int":
        return arith.minsi(arith.maxsi(operand, low), high)
    return arith.minui(arith.maxui(operand, low), high)


for _name in ("stablehlo.compare", "stablehlo.select", "stablehlo.clamp"):
    lower.add(_name, build.elementwise)
