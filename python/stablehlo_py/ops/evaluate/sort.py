"""Sort with any comparator: a stable merge sort that runs the comparator on whole arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.folding import Arrays, Run

Less = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # (row, element, element) -> bool


def merge_order(rows: int, length: int, less: Less) -> np.ndarray:
    """[rows, length] indices that put each row in order.

    Runs of width 1, 2, 4 .. are merged pairwise: the place of an element of the left run is its own plus how many of
    the right run come before it, found by binary search for all elements of all runs at once. The rest fill the gaps.
    """
    order = np.broadcast_to(np.arange(length), (rows, length)).copy()
    row = np.arange(rows)[:, None]
    width = 1
    while width < length:
        start = np.arange(length) // (2 * width) * (2 * width)
        left = np.flatnonzero(np.arange(length) - start < width)
        right = np.flatnonzero(np.arange(length) - start >= width)
        first = np.minimum(start[left] + width, length)
        low = np.broadcast_to(first, (rows, len(left))).copy()
        high = np.broadcast_to(np.minimum(first + width, length), low.shape).copy()
        here = order[:, left]
        while np.any(low < high):
            middle = (low + high) // 2
            before = less(row, order[row, np.minimum(middle, length - 1)], here)
            searching = low < high
            low, high = np.where(searching & before, middle + 1, low), np.where(searching & ~before, middle, high)
        # A comparator that is no strict weak order must still give a permutation.
        low = np.maximum.accumulate(low, axis=1)
        merged, free = np.empty_like(order), np.ones(order.shape, bool)
        place = left + (low - first)
        merged[row, place], free[row, place] = here, False
        merged[free] = order[:, right].ravel()
        order, width = merged, 2 * width
    return order


@evaluate("stablehlo.sort")
def evaluate_sort(op: Op, *inputs: np.ndarray, run: Run) -> Arrays:
    """Every operand in the order that the comparator puts the lines along `dimension` in."""
    rank = inputs[0].ndim
    if rank == 0:
        return inputs
    axis = op.integer("dimension", -1) % rank
    moved = [np.moveaxis(x, axis, -1) for x in inputs]
    shape = moved[0].shape
    rows, length = int(np.prod(shape[:-1])), shape[-1]
    lines = [x.reshape(rows, length) for x in moved]

    def less(row: np.ndarray, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        pairs = [side for line in lines for side in (line[row, lhs], line[row, rhs])]
        return np.broadcast_to(run(0, *pairs)[0], lhs.shape)

    if rows * length == 0:
        return inputs
    order = merge_order(rows, length, less)
    return tuple(np.moveaxis(np.take_along_axis(x, order, 1).reshape(shape), -1, axis) for x in lines)
