"""Gather, scatter, and slices whose place is known at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Gather, GatherDims, Op, Scatter, ScatterDims
from stablehlo_py.ops.evaluate.folding import Arrays, Run
from stablehlo_py.ops.evaluate.numeric import exact


def _as_int(indices: np.ndarray) -> np.ndarray:
    """Indices as i64; what an unsigned type holds beyond i64 stays beyond every bound."""
    indices = exact(indices)
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(2**63 - 1))
    return indices.astype(np.int64)


def _clamped(starts: Sequence[np.ndarray], shape: Sequence[int], sizes: Sequence[int]) -> list[int]:
    return [int(np.clip(_as_int(s), 0, n - size)) for s, n, size in zip(starts, shape, sizes, strict=True)]


@evaluate("stablehlo.dynamic_slice")
def evaluate_dynamic_slice(op: Op, operand: np.ndarray, *start_indices: np.ndarray) -> np.ndarray:
    """A slice of slice_sizes; its start is moved until it lies inside."""
    sizes = op.ints("slice_sizes")
    starts = _clamped(start_indices, operand.shape, sizes)
    return operand[tuple(slice(a, a + n) for a, n in zip(starts, sizes, strict=True))]


@evaluate("stablehlo.dynamic_update_slice")
def evaluate_dynamic_update_slice(
    op: Op, operand: np.ndarray, update: np.ndarray, *start_indices: np.ndarray
) -> np.ndarray:
    """The operand with `update` written over a slice; its start is moved until it lies inside."""
    starts = _clamped(start_indices, operand.shape, update.shape)
    result = np.array(operand)
    result[tuple(slice(a, a + n) for a, n in zip(starts, update.shape, strict=True))] = update
    return result


def gather(operand: np.ndarray, start_indices: np.ndarray, dims: GatherDims, sizes: Sequence[int]) -> np.ndarray:
    """result[batch.., offset..] = operand[clamped start(batch) + offset]."""
    indices = _as_int(start_indices)
    if dims.index_vector_dim == indices.ndim:
        indices = indices[..., None]
    indices = np.moveaxis(indices, dims.index_vector_dim, -1)
    batch_shape = indices.shape[:-1]
    dropped = dims.collapsed_slice_dims + dims.operand_batching_dims
    offset_sizes = [n for d, n in enumerate(sizes) if d not in dropped]
    batch_rank, offset_rank = len(batch_shape), len(offset_sizes)
    index: list[np.ndarray] = []
    offset = 0
    for d, size in enumerate(sizes):
        place = np.zeros((1,) * (batch_rank + offset_rank), np.int64)
        if d in dims.start_index_map:
            start = np.clip(indices[..., dims.start_index_map.index(d)], 0, operand.shape[d] - size)
            place = place + start.reshape([*batch_shape, *(1,) * offset_rank])
        if d in dims.operand_batching_dims:
            at = dims.start_indices_batching_dims[dims.operand_batching_dims.index(d)]
            at -= at > dims.index_vector_dim
            place = place + _along(batch_shape[at], at, batch_rank + offset_rank)
        if d not in dropped:
            place = place + _along(size, batch_rank + offset, batch_rank + offset_rank)
            offset += 1
        index.append(place)
    full = tuple(np.broadcast_to(i, (*batch_shape, *offset_sizes)) for i in index)
    taken = operand[full] if full else np.broadcast_to(operand, (*batch_shape, *offset_sizes))
    batch_dims = [d for d in range(batch_rank + offset_rank) if d not in dims.offset_dims]
    return np.moveaxis(taken, range(batch_rank + offset_rank), [*batch_dims, *dims.offset_dims])


def _along(size: int, axis: int, rank: int) -> np.ndarray:
    """0, 1, .. size - 1 along one axis."""
    return np.arange(size).reshape([-1 if d == axis else 1 for d in range(rank)])


@evaluate("stablehlo.gather")
def evaluate_gather(op: Gather, operand: np.ndarray, start_indices: np.ndarray) -> np.ndarray:
    """Slices of slice_sizes from many places, each moved until it lies inside."""
    return gather(operand, start_indices, op.dims, op.slice_sizes)


@evaluate("stablehlo.dynamic_gather")
def evaluate_dynamic_gather(
    op: Op, operand: np.ndarray, start_indices: np.ndarray, slice_sizes: np.ndarray
) -> np.ndarray:
    """gather with sizes known at run time."""
    return gather(operand, start_indices, Gather(op.operation).dims, [int(n) for n in slice_sizes])


def _targets(
    dims: ScatterDims, indices: np.ndarray, shape: tuple[int, ...], updates: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """For each element of the updates, row-major: its flat place in the input, and whether that is in bounds."""
    indices = _as_int(indices)
    if dims.index_vector_dim == indices.ndim:
        indices = indices[..., None]
    indices = np.moveaxis(indices, dims.index_vector_dim, -1)
    scatter_dims = [d for d in range(len(updates)) if d not in dims.update_window_dims]
    batch_shape = [updates[d] for d in scatter_dims]
    spread = [updates[d] if d in scatter_dims else 1 for d in range(len(updates))]
    place, inside = np.zeros(updates, np.int64), np.ones(updates, bool)
    window = iter(dims.update_window_dims)
    for d, size in enumerate(shape):
        here = np.zeros((1,) * len(updates), np.int64)
        if d in dims.scatter_dims_to_operand_dims:
            start = indices[..., dims.scatter_dims_to_operand_dims.index(d)].reshape(batch_shape)
            here = here + np.clip(start, -1 - 2**31, 2**62).reshape(spread)  # far outside, but safe to add to
        if d in dims.input_batching_dims:
            at = dims.scatter_indices_batching_dims[dims.input_batching_dims.index(d)]
            at -= at > dims.index_vector_dim
            here = here + _along(batch_shape[at], scatter_dims[at], len(updates))
        if d not in dims.inserted_window_dims + dims.input_batching_dims:
            axis = next(window)
            here = here + _along(updates[axis], axis, len(updates))
        inside &= (here >= 0) & (here < size)
        place = place * size + np.where((here >= 0) & (here < size), here, 0)
    return place.ravel(), inside.ravel()


@evaluate("stablehlo.scatter")
def evaluate_scatter(op: Scatter, *operands: np.ndarray, run: Run) -> Arrays:
    """Each update is combined into its place by the body; those out of bounds are left out.

    One index after the other, and the window of each in row-major order: the order is free, and this is XLA's. The
    body is run in the type of its operands, so each update is rounded by itself.
    As the specification has it, of a window that lies partly outside the part inside counts; XLA leaves out the whole.
    """
    count = len(operands) // 2
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    place, inside = _targets(op.dims, indices, inputs[0].shape, updates[0].shape)
    # Updates of one place must follow each other; round r takes the r-th update of every place at once.
    rank, window_dims = updates[0].ndim, op.dims.update_window_dims
    visit = np.arange(place.size).reshape(updates[0].shape)
    visit = visit.transpose([*(d for d in range(rank) if d not in window_dims), *window_dims]).ravel()
    kept = visit[inside[visit]]
    by_place = kept[np.argsort(place[kept], kind="stable")]
    sorted_places = place[by_place]
    starts = np.flatnonzero(np.diff(sorted_places, prepend=-1))
    lengths = np.diff(starts, append=len(sorted_places))
    turn = np.arange(len(sorted_places)) - np.repeat(starts, lengths)
    results = [np.array(x).ravel() for x in inputs]
    flat_updates = [u.ravel() for u in updates]
    order = np.argsort(turn, kind="stable")
    rounds = np.split(by_place[order], np.cumsum(np.bincount(turn))[:-1]) if len(turn) else []
    for chosen in rounds:
        at = place[chosen]
        values = run(0, *(r[at] for r in results), *(u[chosen] for u in flat_updates))
        for result, value in zip(results, values, strict=True):
            result[at] = value
    return tuple(x.reshape(inputs[0].shape) for x in results)


@evaluate("stablehlo.torch_index_select")
def evaluate_torch_index_select(op: Op, operand: np.ndarray, index: np.ndarray) -> np.ndarray:
    """operand taken at `index` along dim, after the first batch_dims dimensions; indices are clamped."""
    dim, batch = op.integer("dim"), op.integer("batch_dims")
    at = np.clip(_as_int(index), 0, operand.shape[dim] - 1)
    taken = [np.take(operand[b], at[b], axis=dim - batch) for b in np.ndindex(*operand.shape[:batch])]
    return np.stack(taken).reshape(op.type.shape)
