"""mxu-fuse: elementwise ops and row reductions are put together with the product that feeds them, or among themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu.planning.group import Group, find_group

# Eight rows of all values of a group of the vector unit fit into this many bytes of VMEM, whatever the chip.
LARGEST_ROWS = 4 << 20


class MxuFuse(Pass):
    """Outline groups of elementwise ops and row reductions, with the product before them, into mxu.fusion.

    %d = contract; %s = add %d, %b; %r = maximum %s, 0   ->   %r = fusion { contract; add; maximum; yield }
    """

    name: ClassVar[str] = "mxu-fuse"

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for block in list(_blocks(op)):
            operations = [view.operation for view in block.operations]
            place = {result: i for i, operation in enumerate(operations) for result in operation.results}
            taken: set[ir.Value] = set()
            for operation in reversed(operations):
                if len(operation.results) != 1 or operation.results[0] in taken:
                    continue
                group = find_group(operation, taken, place)
                if group is not None and _fits(group):
                    taken.update(member.results[0] for member in group.members)
                    outline(group)


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    """The blocks of functions and of control flow, inner ones last."""
    for region in op.regions:
        for block in region.blocks:
            yield block
            for view in block.operations:
                if view.operation.name in ("func.func", "stablehlo.while", "stablehlo.if", "stablehlo.case"):
                    yield from _blocks(view.operation)


def _fits(group: Group) -> bool:
    if len(group.inputs) + (2 if group.product is not None else 0) > mxu.MAX_INPUTS:
        return False
    if any(tensor_type(op.results[0].type).rank == 0 for op in group.members):
        return False
    values = len(group.members) + 2 * len(group.inputs)
    return group.product is not None or 8 * 4 * group.n * values <= LARGEST_ROWS


def outline(group: Group) -> ir.Operation:
    """Move a group's ops into a fusion where its last op is."""
    root = group.root
    with ir.InsertionPoint(root), root.location:
        fusion = ir.Operation.create("mxu.fusion", results=[root.results[0].type], regions=1)
    root.results[0].replace_all_uses_with(fusion.results[0])
    block = ir.Block.create_at_start(fusion.regions[0], [])
    for operation in group.members:
        block.append(operation)
    with ir.InsertionPoint(block), root.location:
        ir.Operation.create("mxu.yield", operands=[root.results[0]])
    return fusion


def fusion_of(operation: ir.Operation) -> ir.Operation | None:
    """The fusion that an op stands in."""
    parent = operation.parent
    return parent.operation if parent is not None and parent.operation.name == "mxu.fusion" else None
