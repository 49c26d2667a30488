"""scatter: updates combined into an operand at indices that are known only when the program runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Scatter
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.indexing import index_vectors


@lower("stablehlo.scatter")
def lower_scatter(op: Scatter, *operands: Tensor) -> tuple[Tensor, ...]:
    """result[at] = body(result[at], update) for each update, in row-major order of the scatter index.

        for batch: start = scatter_indices[batch]; for window: if start + window is inside: combine

    An update outside the operand is dropped by itself: the window's loops run only over what is inside. Windows may
    meet, so what threads share is not the updates but a dimension along which all windows are the whole operand: each
    thread does all updates in its part of that, in their order. Where the op says that they never meet, the updates.
    """
    count = len(operands) // 2
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    if updates[0].type.size == 0:
        return tuple(inputs)
    dims, shape, update_shape = op.dims, inputs[0].shape, updates[0].shape
    batch_dims = [d for d in range(len(update_shape)) if d not in dims.update_window_dims]
    window_dims = [d for d in range(len(shape)) if d not in dims.inserted_window_dims + dims.input_batching_dims]

    sizes = dict(zip(window_dims, (update_shape[d] for d in dims.update_window_dims), strict=True))
    free = {d: size for d, size in sizes.items() if d not in dims.scatter_dims_to_operand_dims}
    extents = [update_shape[d] for d in batch_dims]
    independent = _independent(op, extents)
    shared = None if independent else _shared_dimension(free, len(shape) - 1, math.prod(update_shape))
    length = 0 if shared is None else free[shared] // _parts(free[shared], shared == len(shape) - 1)

    def of_window(batch: list[ir.Value], carried: list, begin: ir.Value | None = None) -> list:
        starts: list[ir.Value] = [build.index(0)] * len(shape)
        vector = index_vectors(indices, dims.index_vector_dim, batch)
        scattered = dict(zip(dims.scatter_dims_to_operand_dims, vector, strict=True))
        for d, value in scattered.items():
            starts[d] = value
        for d, batching in zip(dims.input_batching_dims, dims.scatter_indices_batching_dims, strict=True):
            starts[d] = batch[batching - (batching > dims.index_vector_dim)]

        # window index i of dimension d is inside for first <= i < first + extent
        firsts: list[ir.Value | None] = []
        extents: list[int | ir.Value] = []
        for d, update_dim in zip(window_dims, dims.update_window_dims, strict=True):
            size = update_shape[update_dim]
            if d not in scattered:
                firsts.append(begin if d == shared else None)
                extents.append(length if d == shared else size)
                continue
            first, extent = _inside(starts[d], size, shape[d])
            firsts.append(first)
            extents.append(extent)

        def of_element(offset: list[ir.Value], results: list) -> list:
            window = [i if first is None else arith.addi(first, i) for i, first in zip(offset, firsts, strict=True)]
            at = list(starts)
            for d, i in zip(window_dims, window, strict=True):
                at[d] = arith.addi(starts[d], i) if d in scattered else i
            source = _placed(batch_dims, batch, dims.update_window_dims, window)
            current = [build.read(result, at) for result in results]
            new = build.apply_region(op, 0, *current, *[build.read(update, source) for update in updates])
            return [build.write(result, value, at) for result, value in zip(results, new, strict=True)]

        def of_whole() -> list:
            return build.loops(extents, carried, of_element)

        condition = _all_inside([(starts[d], shape[d]) for d in dims.inserted_window_dims if d in scattered])
        if condition is None:
            return of_whole()
        return build.when(condition, carried, of_whole, lambda: carried)

    if shared is None:
        return tuple(build.loops(extents, list(inputs), of_window, parallel=independent))

    def of_part(number: list[ir.Value], carried: list) -> list:
        begin = arith.muli(number[0], build.index(length))
        return build.loops(extents, carried, lambda batch, results: of_window(batch, results, begin))

    return tuple(build.loops([free[shared] // length], list(inputs), of_part, parallel=1))


MANY = 1 << 17  # elements of updates from which threads are worth the reading of all indices by each
_MOST_PARTS, _SHORTEST = 8, 32  # the innermost dimension is not cut below whole vectors


def _independent(op: Scatter, extents: Sequence[int]) -> int:
    """How many of the loops over updates have steps that never meet: all, or an outermost one over a batch."""
    if op.flag("unique_indices"):
        return len(extents)
    return int(len(extents) > 0 and 0 in op.dims.scatter_indices_batching_dims and op.dims.index_vector_dim > 0)


def _parts(size: int, innermost: bool) -> int:
    """Into how many equal parts a dimension is cut; more than there are threads cost a reading of the indices each."""
    most = min(_MOST_PARTS, size // (_SHORTEST if innermost else 1))
    return max((n for n in range(1, most + 1) if size % n == 0), default=1)


def _shared_dimension(free: Mapping[int, int], last: int, work: int) -> int | None:
    """The first dimension of a window, by size, that no index moves and that has parts enough, where there is much to do."""
    if work < MANY:
        return None
    return next((d for d, size in free.items() if _parts(size, d == last) > 1), None)


def _inside(start: ir.Value, size: int, extent: int) -> tuple[ir.Value, ir.Value]:
    """The part of start .. start + size that lies in 0 .. extent: its first offset and its size, 0 or less if empty."""
    zero = build.index(0)
    # a start far outside would overflow in the sums below; it is outside at -size and at extent just as well
    start = build.clamp_index(start, -size, extent)
    first = arith.maxsi(zero, arith.subi(zero, start))
    end = arith.minsi(build.index(size), arith.subi(build.index(extent), start))
    return first, arith.subi(end, first)


def _all_inside(places: Sequence[tuple[ir.Value, int]]) -> ir.Value | None:
    """Whether 0 <= index < extent for all; None where nothing is to be asked."""
    condition = None
    for index, extent in places:
        # a negative index is a large unsigned one
        inside = arith.cmpi(arith.CmpIPredicate.ult, index, build.index(extent))
        condition = inside if condition is None else arith.andi(condition, inside)
    return condition


def _placed(
    batch_dims: Sequence[int], batch: Sequence[ir.Value], window_dims: Sequence[int], window: Sequence[ir.Value]
) -> list[ir.Value]:
    """One index from the two groups of its dimensions."""
    at = dict(zip([*batch_dims, *window_dims], [*batch, *window], strict=True))
    return [at[d] for d in range(len(at))]
