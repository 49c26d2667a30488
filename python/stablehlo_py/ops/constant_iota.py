"""constant and iota."""

from __future__ import annotations

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Constant, Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor


@lower("stablehlo.constant")
def lower_constant(op: Constant) -> Tensor:
    """The elements themselves; one element repeated becomes a fill, which costs no memory in the program."""
    if op.type.size == 0:
        return build.empty(op.type)
    if op.type.rank and op.splat is not None:
        return build.splat(op.type, op.splat)
    return build.constant(op.type, op.value)


@lower("stablehlo.iota")
def lower_iota(op: Op) -> Tensor:
    """result[i] = i[iota_dimension], as the element type."""
    dimension, element = op.integer("iota_dimension"), op.type.element

    def position(indices: list[ir.Value]) -> ir.Value:
        return build.narrow(element, build.from_index(element, indices[dimension]))

    return layout.assemble(op.type, position)
