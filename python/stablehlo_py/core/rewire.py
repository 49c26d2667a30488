"""Operands of copied ops: from the values of the original to those of the copy."""

from __future__ import annotations

from collections.abc import Mapping

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
