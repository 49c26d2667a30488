"""Reads and updates at indices that are known."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Gather, Op, Scatter
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import array, operands, type_of


@simplify("stablehlo.dynamic_slice")
def dynamic_slice_known(op: Op) -> ir.Value | None:
    """dynamic_slice(x, i) == slice(x, i, i + size) with i clamped, for known i."""
    x, *indices = operands(op)
    starts = _starts(indices, type_of(x).shape, op.type.shape)
    if starts is None:
        return None
    return make.slice_(x, starts, [a + n for a, n in zip(starts, op.type.shape, strict=True)], [1] * len(starts))


@simplify("stablehlo.dynamic_update_slice")
def update_everything(op: Op) -> ir.Value | None:
    """dynamic_update_slice(x, u, i) == u, where u has the shape of x; == x, where u has no elements."""
    x, update, *_ = operands(op)
    if update.type == x.type:
        return update
    return x if type_of(update).size == 0 else None


@simplify("stablehlo.gather")
def gather_known(op: Gather) -> ir.Value | None:
    """gather(x, i) == reshape(slice(x, i, i + sizes)), for one known index vector."""
    dims, sizes = op.dims, op.slice_sizes
    x, indices = operands(op)
    found = array(indices)
    several = found is None or not found.size or found.size != len(dims.start_index_map)
    if found is None or several or dims.operand_batching_dims:
        return None
    shape = type_of(x).shape
    starts = [0] * len(shape)
    for d, index in zip(dims.start_index_map, found.reshape(-1), strict=True):
        starts[d] = min(max(int(index), 0), shape[d] - sizes[d])
    part = make.slice_(x, starts, [a + n for a, n in zip(starts, sizes, strict=True)], [1] * len(shape))
    return make.reshape(part, op.type.shape)


@simplify("stablehlo.scatter")
def scatter_nothing(op: Scatter) -> tuple[ir.Value, ...] | None:
    """scatter(x, i, u) == x, where u has no elements."""
    count = len(op.operation.results)
    inputs, updates = operands(op)[:count], operands(op)[count + 1 :]
    return tuple(inputs) if type_of(updates[0]).size == 0 else None


@simplify("stablehlo.sort")
def sort_one(op: Op) -> tuple[ir.Value, ...] | None:
    """sort(x) == x along a dimension of size 1 or 0."""
    rank = op.type.rank
    return tuple(operands(op)) if op.type.shape[op.integer("dimension", -1) % rank] <= 1 else None


def _starts(indices: list[ir.Value], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[int] | None:
    """Where a slice begins, clamped so that it lies inside; an index that leaves no choice need not be known."""
    starts = []
    for index, n, size in zip(indices, shape, sizes, strict=True):
        known = np.zeros(()) if n == size else array(index)
        if known is None:
            return None
        starts.append(min(max(int(known), 0), n - size))
    return starts
