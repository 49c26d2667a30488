"""Elementwise ops: one scalar body each; the loop around it is shared."""

from __future__ import annotations

from stablehlo_py.core.registry import lower, scalar
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build


@scalar("stablehlo.add")
def scalar_add(op: Op, x: ir.Value, y: ir.Value) -> ir.Value:
    """x + y; on booleans: or."""
    element = op.type.element
    if element.is_float:
        return arith.addf(x, y)
    return arith.ori(x, y) if element.is_bool else arith.addi(x, y)


for _name in scalar.ops():
    lower.add(_name, build.elementwise)
