"""Loops whose steps run one after the other, whoever compiles them: LLVM need not look for vectors in them.

- `while c: ...`: the end depends on what a step computes
- `for i: y[x[i]] += 1`: a step writes where memory says
- `for i: s += x[i]; y[i] = s`: a step writes what the one before hands to it
"""

from __future__ import annotations

from stablehlo_py.core.collect import operations_named
from stablehlo_py.mlir import ir


def is_ordered(loop: ir.Operation) -> bool:
    """Whether a loop without scf.for inside is one of those above."""
    if operations_named(loop, "scf.while"):  # itself or inside
        return True
    block = loop.regions[0].blocks[0]
    return loop.name == "scf.for" and _writes_in_order(block, set(list(block.arguments)[1:]), set())


def _writes_in_order(block: ir.Block, carried: set[ir.Value], loaded: set[ir.Value]) -> bool:
    """Whether a store of a block has a place from memory, or a place or value from the step before; both sets grow."""
    for view in block.operations:
        op = view.operation
        operands = list(op.operands)
        for inner in (b for region in op.regions for b in region.blocks):
            if _writes_in_order(inner, carried, loaded):
                return True
            operands += inner.operations[len(inner.operations) - 1].operands
        if op.name == "memref.store":
            value, _, *place = operands
            if value in carried or any(v in carried or v in loaded for v in place):
                return True
        if op.name == "memref.load" or any(v in loaded for v in operands):
            loaded.update(op.results)
        if any(v in carried for v in operands):
            carried.update(op.results)
    return False
