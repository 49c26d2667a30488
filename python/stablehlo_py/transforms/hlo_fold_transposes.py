"""A transposition before a dot_general is another choice of its dimensions.

dot_general(x, transpose(w, [1, 0])), contracting [1] x [0]  ->  dot_general(x, w), contracting [1] x [1]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.dialects.stablehlo import DotGeneral
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.reading.annotations import walk

DIMS = "dot_dimension_numbers"


class HloFoldTransposes(Pass):
    """Let dot_general read what a transpose would have moved; transposes without use go with cse."""

    name: ClassVar[str] = "hlo-fold-transposes"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.dot_general",)

    def run(self, op: ir.Operation) -> None:
        found: list[ir.Operation] = []
        walk(op, lambda inner: found.append(inner) if inner.name == "stablehlo.dot_general" else None)
        for dot in found:
            for side in (0, 1):
                while _fold(dot, side):
                    pass


def _fold(dot: ir.Operation, side: int) -> bool:
    """Take one transpose in front of an operand in; not one that changes the order of the free dimensions."""
    value = dot.operands[side]
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "stablehlo.transpose":
        return False
    transpose = value.owner.operation
    permutation = [int(d) for d in transpose.attributes["permutation"]]
    dims = DotGeneral(dot).dims
    free = (dims.lhs_free, dims.rhs_free)[side](len(permutation))
    before = [permutation[d] for d in free]
    if before != sorted(before):
        return False

    def source(numbers: Sequence[int], of: int) -> list[int]:
        return [permutation[d] for d in numbers] if of == side else list(numbers)

    dot.attributes[DIMS] = stablehlo.DotDimensionNumbers.get(
        source(dims.lhs_batching, 0),
        source(dims.rhs_batching, 1),
        source(dims.lhs_contracting, 0),
        source(dims.rhs_contracting, 1),
    )
    dot.operands[side] = transpose.operands[0]
    return True
