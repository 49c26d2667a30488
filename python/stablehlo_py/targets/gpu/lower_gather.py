"""Gather on a GPU: a thread per element of the result, which finds the start of its slice itself."""

from __future__ import annotations

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Gather
from stablehlo_py.mlir import arith, ir, tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.indexing import _starts


@lower("stablehlo.gather", target="gpu")
def lower_gather(op: Gather, operand: Tensor, start_indices: Tensor) -> Tensor:
    """result[batch, offset] = operand[start(batch) + offset], start clamped so that the slice fits."""
    if op.type.size == 0:
        return build.empty(op.type)
    dims, sizes = op.dims, op.slice_sizes
    batch_dims = [d for d in range(op.type.rank) if d not in dims.offset_dims]
    window_dims = [d for d in range(operand.rank) if d not in dims.collapsed_slice_dims + dims.operand_batching_dims]

    def element(at: list[ir.Value]) -> ir.Value:
        source = _starts(operand, start_indices, dims, sizes, [at[d] for d in batch_dims])
        for d, offset in zip(window_dims, dims.offset_dims, strict=True):
            source[d] = arith.addi(source[d], at[offset])
        return tensor.extract(operand.value, source)

    return layout.assemble(op.type, element)
