"""Loops whose steps run one after the other, whoever compiles them: LLVM need not look for vectors in them.

while c: ...              the end depends on what a step computes
for i: y[x[i]] += 1       a step writes where memory says
for i: s += x[i]; y[i] = s    a step writes what the one before hands to it
"""

from __future__ import annotations

from stablehlo_py.core.collect import operations_named
from stablehlo_py.mlir import ir


def is_ordered(loop: ir.Operation) -> bool:
    """Whether a loop without scf.for inside is one of those above."""
    if loop.name == "scf.while" or operations_named(loop, "scf.while"):
        return True
    if loop.name != "scf.for":
        return False
    block = loop.regions[0].blocks[0]
    carried = set(list(block.arguments)[1:])
    return _writes(block, set(carried), set())


def _writes(block: ir.Block, carried: set[ir.Value], loaded: set[ir.Value]) -> bool:
    """Whether a store of a block has a place from memory, or a place or value from the step before; both sets grow."""
    for view in block.operations:
        op = view.operation
        operands = list(op.operands)
        for inner in (b for region in op.regions for b in region.blocks):
            if _writes(inner, carried, loaded):
                return True
            operands += inner.operations[len(inner.operations) - 1].operands
        if op.name == "memref.store" and (
            any(v in loaded for v in operands[2:]) or any(v in carried for v in (operands[0], *operands[2:]))
        ):
            return True
        if op.name == "memref.load" or any(v in loaded for v in operands):
            loaded.update(op.results)
        if any(v in carried for v in operands):
            carried.update(op.results)
    return False
