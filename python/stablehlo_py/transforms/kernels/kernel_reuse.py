"""Which results of a kernel may stand in the memory of an operand.

One that is computed element by element from the elements of the operand at the same places, in one loop, which is all
that touches either: an element is read before its place is written, and never after.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.hlo_form_kernels import INPLACE, KERNEL
from stablehlo_py.transforms.kernels.kernels_to_memref import number_pairs

REUSE = "kernel.reuse"  # pairs of numbers of buffers: one that is read, and one that is written and may be the same
_SHAPES = ("memref.collapse_shape", "memref.expand_shape")


class KernelReuse(Pass):
    """Mark the operands of kernels whose memory a result may take."""

    name: ClassVar[str] = "kernel-reuse"

    def run(self, op: ir.Operation) -> bool:
        for function in [f.operation for f in op.regions[0].blocks[0].operations]:
            if KERNEL in function.attributes and INPLACE not in function.attributes:
                pairs = pairs_of(function)
                if pairs:
                    function.attributes[REUSE] = ir.DenseI64ArrayAttr.get([n for pair in pairs for n in pair])
        return False


def reuse_pairs(function: ir.Operation) -> list[tuple[int, int]]:
    """(read, written): numbers of buffers of a kernel, inputs and outputs counted together, that may be one."""
    return number_pairs(function, REUSE)


def pairs_of(function: ir.Operation) -> list[tuple[int, int]]:
    """The same of a kernel on buffers, before its linalg ops are loops."""
    places = [_only_place(argument) for argument in function.regions[0].blocks[0].arguments]
    known = [(number, place) for number, place in enumerate(places) if place is not None]
    return [(i, j) for i, source in known for j, target in known if source.pairs_with(target)]


@record
class _Place:
    """An operand of a linalg.generic over independent elements, which it reads or writes each at a place of its own."""

    op: ir.Operation
    type: ir.Type
    map: ir.AffineMap
    is_output: bool

    def pairs_with(self, target: _Place) -> bool:
        at_once = self.op == target.op and not self.is_output and target.is_output
        return at_once and self.type == target.type and self.map == target.map


def _only_place(argument: ir.Value) -> _Place | None:
    """Where a buffer is used, if that is one operand of one op that treats its elements apart; all of them, as it is."""
    value = argument
    while True:
        uses = list(value.uses)
        if len(uses) != 1:
            return None
        op = uses[0].owner.operation
        if op.name not in _SHAPES:
            break
        value = op.results[0]
    if op.name != "linalg.generic" or any(
        "parallel" not in str(i) for i in ir.ArrayAttr(op.attributes["iterator_types"])
    ):
        return None
    number = uses[0].operand_number
    places = ir.AffineMapAttr(ir.ArrayAttr(op.attributes["indexing_maps"])[number]).value
    if not places.is_permutation:
        return None
    return _Place(op, value.type, places, number >= ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0])
