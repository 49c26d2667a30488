"""A transposition before a dot_general is another choice of its dimensions; one behind it, another order of its operands.

dot_general(x, transpose(w, [1, 0])), contracting [1] x [0]  ->  dot_general(x, w), contracting [1] x [1]
transpose(dot_general(x, y), [1, 0])                         ->  dot_general(y, x)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.collect import made_by, operations_named
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import DotGeneral
from stablehlo_py.mlir import ir, stablehlo

DIMS = "dot_dimension_numbers"
PRECISION = "precision_config"
LEAST_COLUMNS = 64  # of a result whose operands change places: products of fewer are slower than those of as many rows


class HloFoldTransposes(Pass):
    """Let dot_general read what a transpose would have moved, and make it moved; transposes without use go with cse."""

    name: ClassVar[str] = "hlo-fold-transposes"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.transpose",)

    def run(self, op: ir.Operation) -> Made:
        changed = False
        for dot in operations_named(op, "stablehlo.dot_general"):
            for side in (0, 1):
                while _fold(dot, side):
                    changed = True
            changed |= _swap(dot)
        return () if changed else False


def _fold(dot: ir.Operation, side: int) -> bool:
    """Take one transpose in front of an operand in; not one that changes the order of the free dimensions."""
    transpose = made_by(dot.operands[side], "stablehlo.transpose")
    if transpose is None:
        return False
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


def _swap(dot: ir.Operation) -> bool:
    """The operands in the other order, where that makes the transposed result, which alone is used."""
    uses = [use.owner.operation for use in dot.results[0].uses]
    if len(uses) != 1 or uses[0].name != "stablehlo.transpose" or not set(dot.attributes) <= {DIMS, PRECISION}:
        return False
    transpose, dims = uses[0], DotGeneral(dot).dims
    lhs, rhs = (ir.RankedTensorType(value.type) for value in dot.operands)
    batch, left = len(dims.lhs_batching), len(dims.lhs_free(lhs.rank))
    rank = batch + left + len(dims.rhs_free(rhs.rank))
    order = [*range(batch), *range(batch + left, rank), *range(batch, batch + left)]
    columns = math.prod(lhs.shape[d] for d in dims.lhs_free(lhs.rank))
    if [int(d) for d in transpose.attributes["permutation"]] != order or columns < LEAST_COLUMNS:
        return False
    if lhs.element_type != rhs.element_type:
        return False
    attributes = {DIMS: make.dot_dims(dims.rhs_batching, dims.lhs_batching, dims.rhs_contracting, dims.lhs_contracting)}
    if PRECISION in dot.attributes:
        attributes[PRECISION] = ir.ArrayAttr.get(list(reversed(list(ir.ArrayAttr(dot.attributes[PRECISION])))))
    with ir.InsertionPoint(dot), dot.location:
        ty = tensor_type(transpose.results[0].type)
        swapped = make.op("dot_general", [dot.operands[1], dot.operands[0]], ty, **attributes)
    transpose.results[0].replace_all_uses_with(swapped.results[0])
    transpose.erase()
    dot.erase()
    return True
