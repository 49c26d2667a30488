"""mxu-contractions: dot_general becomes transposes, reshapes and one canonical product."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.stablehlo import DotGeneral
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.planning.box import same_tiles

# Passes of a product over the bf16 matrix unit: an f32 is a sum of three bf16, of whose nine products six matter.
HIGHEST, HIGH, DEFAULT = 6, 3, 1
ON_UNIT = ("bf16", "f16", "f32", "i8", "ui8", "i4", "ui4")


class MxuContractions(Pass):
    """Turn each dot_general that a matrix unit can do into mxu.contract on [b,m,k] and [b,k,n].

    precision: `default` multiplies f32 as bf16 where the program does not ask for more; `highest` keeps f32.
    """

    name: ClassVar[str] = "mxu-contractions"
    precision: str = "default"

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for dot in emit.operations_named(op, "stablehlo.dot_general"):
            view = DotGeneral(dot)
            if unmapped(view) is None:
                with ir.InsertionPoint(dot), dot.location:
                    value = canonical_product(view, passes_of(view, self.precision))
                emit.replace(dot, value)


def unmapped(op: DotGeneral) -> str | None:
    """Why a matrix unit cannot do this product; None where it can."""
    types = (*op.operand_types, op.type)
    if not all(ty.is_static for ty in types):
        return "its shape is not static"
    if any(0 in ty.shape for ty in types):
        return "it has no elements"
    lhs, rhs = (ty.element for ty in op.operand_types)
    if lhs.name not in ON_UNIT or rhs.name not in ON_UNIT:
        return f"a matrix unit has no products of {lhs} and {rhs}"
    if lhs.is_float != rhs.is_float or lhs.is_float != op.type.element.is_float:
        return f"a matrix unit has no products of {lhs} and {rhs} to {op.type.element}"
    return None


def passes_of(op: DotGeneral, precision: str) -> int:
    """How often the operands go through the unit, by their types and the precision that is asked for."""
    if not any(ty.element.name in ("f32", "f16") for ty in op.operand_types):
        return DEFAULT
    asked = str(op.operation.attributes["precision_config"]) if op.has("precision_config") else ""
    if precision == "highest" or "HIGHEST" in asked:
        return HIGHEST
    return HIGH if "HIGH" in asked else DEFAULT


def canonical_product(op: DotGeneral, passes: int) -> ir.Value:
    """The product as reshape(contract(lhs', rhs')), with lhs' and rhs' transposed only where no reshape will do."""
    dims = op.dims
    lhs, rhs = op.operation.operands
    lhs_type, rhs_type = op.operand_types
    pairs = sorted(zip(dims.lhs_contracting, dims.rhs_contracting, strict=True))
    lhs_contracting, rhs_contracting = [p[0] for p in pairs], [p[1] for p in pairs]
    lhs_batching, lhs_free = dims.lhs_batching, dims.lhs_free(lhs_type.rank)
    if not lhs_batching and len(lhs_free) > 1 and not _rows_run_on(lhs_type, lhs_free):
        lhs_batching, lhs_free = lhs_free[:-1], lhs_free[-1:]  # the weights are the same for all of this batch
    lhs3, lhs_t = _three(lhs, lhs_batching, lhs_free, lhs_contracting, contracting_last=True)
    rhs3, rhs_t = _three(rhs, dims.rhs_batching, dims.rhs_free(rhs_type.rank), rhs_contracting, contracting_last=False)
    batch, m = tensor_type(lhs3.type).shape[0], tensor_type(lhs3.type).shape[2 if lhs_t else 1]
    n = tensor_type(rhs3.type).shape[1 if rhs_t else 2]
    result = TensorType((batch, m, n), op.type.element)
    value = emit.contract(lhs3, rhs3, result, lhs_t=lhs_t, rhs_t=rhs_t, passes=passes)
    return emit.reshape(value, op.type.shape)


def _rows_run_on(lhs: TensorType, free: Sequence[int]) -> bool:
    """Whether the rows of all free dimensions lie one after the other in memory, so that they can be one dimension."""
    shape = [lhs.shape[d] for d in free]
    return same_tiles((*shape, 1024), (math.prod(shape), 1024), lhs.element)


def _three(
    value: ir.Value, batch: Sequence[int], free: Sequence[int], contracting: Sequence[int], *, contracting_last: bool
) -> tuple[ir.Value, bool]:
    """The operand with rank 3, and whether its free and contracted dimensions come in the other order."""
    shape = tensor_type(value.type).shape
    usual = [*batch, *free, *contracting] if contracting_last else [*batch, *contracting, *free]
    turned = [*batch, *contracting, *free] if contracting_last else [*batch, *free, *contracting]
    # A dimension of size 1 may stand anywhere: only the order of the others decides.
    order = [d for d in range(len(shape)) if shape[d] != 1]
    other = [d for d in usual if shape[d] != 1] != order and [d for d in turned if shape[d] != 1] == order
    chosen = turned if other else usual
    if [d for d in chosen if shape[d] != 1] != order:
        value = emit.transpose(value, chosen)
    sizes = [math.prod(shape[d] for d in group) for group in (batch, free, contracting)]
    in_middle = contracting_last == other
    middle, last = (sizes[2], sizes[1]) if in_middle else (sizes[1], sizes[2])
    return emit.reshape(value, (sizes[0], middle, last)), other
