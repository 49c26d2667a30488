"""Panels: columns of a product's right side that lie together, and the marked ops that make columns of them again."""

from __future__ import annotations

from stablehlo_py.core.collect import maker
from stablehlo_py.mlir import ir

UNPACK = "kernel.unpack"  # marks the ops that make columns of panels
PANEL = 32  # columns; every vector width divides it, and two vectors of the widest have as many lanes


def is_unpacking(op: ir.Operation) -> bool:
    """Whether an op is one of those that make columns of panels."""
    return UNPACK in op.attributes


def panels_of(value: ir.Value) -> ir.Value | None:
    """The panels that a product's right side is made of; None where it is not."""
    flat = maker(value)
    if flat is None or not is_unpacking(flat):
        return None
    return flat.operands[0].owner.operation.operands[0]
