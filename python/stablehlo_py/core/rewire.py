"""Ops once more: with the values of a copy in place of those of the original, or on other operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stablehlo_py.mlir import ir


def remap(op: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> None:
    """Let `op` and the ops in its regions use the new values."""
    for i, operand in enumerate(op.operands):
        if operand in values:
            op.operands[i] = values[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                remap(inner.operation, values)


def like(op: ir.Operation, operands: Sequence[ir.Value], *types: ir.Type) -> ir.Operation:
    """The op, with its attributes, on other operands and with results of these types, at the current insertion point."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(op.name, results=types, operands=list(operands), attributes=attributes)
