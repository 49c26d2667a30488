"""Ops once more: with the values of a copy in place of those of the original, on other operands, or not any longer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stablehlo_py.core.collect import made_by
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


def erase_unused(value: ir.Value, *names: str) -> None:
    """Erase the op of these names that makes a value, then those that make its operands, where nobody uses what they make."""
    op = made_by(value, *names)
    if op is None or any(list(result.uses) for result in op.results):
        return
    operands = list(op.operands)
    op.erase()
    for operand in operands:
        erase_unused(operand, *names)
