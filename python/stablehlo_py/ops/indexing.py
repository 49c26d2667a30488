"""gather, dynamic_slice, dynamic_update_slice: reads and writes at places that are known only when the program runs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Gather, GatherDims, Op
from stablehlo_py.mlir import arith, ir, tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor


@lower("stablehlo.dynamic_slice")
def lower_dynamic_slice(op: Op, operand: Tensor, *start_indices: Tensor) -> Tensor:
    """The slice at the start indices, moved inside the operand where it would stick out."""
    sizes = op.type.shape
    return layout.extract_slice(operand, clamped_starts(operand.shape, sizes, start_indices), sizes)


@lower("stablehlo.dynamic_update_slice")
def lower_dynamic_update_slice(op: Op, operand: Tensor, update: Tensor, *start_indices: Tensor) -> Tensor:
    """The operand with the update at the start indices, moved inside where it would stick out."""
    if update.shape == operand.shape:
        return update
    return layout.insert_slice(update, operand, clamped_starts(operand.shape, update.shape, start_indices))


def clamped_starts(shape: Sequence[int], sizes: Sequence[int], starts: Sequence[Tensor]) -> list[int | ir.Value]:
    """Start indices from 0-d tensors, each between 0 and the last at which the size still fits."""
    return [
        build.clamp_index(build.to_index(start.element, build.read(start, [])), 0, extent - size)
        if extent > size
        else 0
        for extent, size, start in zip(shape, sizes, starts, strict=True)
    ]


@lower("stablehlo.gather")
def lower_gather(op: Gather, operand: Tensor, start_indices: Tensor) -> Tensor:
    """result[batch, offset] = operand[start(batch) + offset], start clamped so that the slice fits.

    Where a slice is one element, one parallel loop nest over the result. Else the start is computed once a slice:

        for batch: start = clamp(start_indices[batch]); for offset: result[batch, offset] = operand[start + offset]
    """
    if op.type.size == 0:
        return build.empty(op.type)
    dims, sizes = op.dims, op.slice_sizes
    batch_dims = [d for d in range(op.type.rank) if d not in dims.offset_dims]
    window_dims = [d for d in range(operand.rank) if d not in dims.collapsed_slice_dims + dims.operand_batching_dims]

    if math.prod(sizes) == 1:
        return layout.assemble(
            op.type,
            lambda i: tensor.extract(
                operand.value, _starts(operand, start_indices, dims, sizes, [i[d] for d in batch_dims])
            ),
        )

    def of_slice(batch: list[ir.Value], carried: list) -> list:
        starts = _starts(operand, start_indices, dims, sizes, batch)

        def of_element(offset: list[ir.Value], inner: list) -> list:
            source, target = list(starts), [batch[0] if batch else offset[0]] * op.type.rank
            for d, i in zip(window_dims, offset, strict=True):
                source[d] = i if operand.shape[d] == sizes[d] else arith.addi(starts[d], i)
            for d, i in zip([*batch_dims, *dims.offset_dims], [*batch, *offset], strict=True):
                target[d] = i
            stored = tensor.extract(operand.value, source)
            return [Tensor(tensor.insert(stored, inner[0].value, target), op.type)]

        return build.loops([op.type.shape[d] for d in dims.offset_dims], carried, of_element)

    extents = [op.type.shape[d] for d in batch_dims]
    return build.loops(extents, [build.empty(op.type)], of_slice, parallel=len(extents))[0]


def _starts(
    operand: Tensor, start_indices: Tensor, dims: GatherDims, sizes: Sequence[int], batch: Sequence[ir.Value]
) -> list[ir.Value]:
    """Where in the operand the slice of a batch index starts."""
    places = index_vectors(start_indices, dims.index_vector_dim, batch)
    starts: list[ir.Value] = [build.index(0)] * operand.rank
    for value, d in zip(places, dims.start_index_map, strict=True):
        starts[d] = build.clamp_index(value, 0, operand.shape[d] - sizes[d])
    for d, batching in zip(dims.operand_batching_dims, dims.start_indices_batching_dims, strict=True):
        starts[d] = batch[batching - (batching > dims.index_vector_dim)]
    return starts


def index_vectors(indices: Tensor, index_vector_dim: int, batch: Sequence[ir.Value]) -> list[ir.Value]:
    """The index vector at a batch index, as values of index type; without a vector dimension, it has one component."""
    if index_vector_dim == indices.rank:
        return [build.to_index(indices.element, build.read(indices, batch))]
    before, after = batch[:index_vector_dim], batch[index_vector_dim:]
    return [
        build.to_index(indices.element, build.read(indices, [*before, build.index(component), *after]))
        for component in range(indices.shape[index_vector_dim])
    ]
