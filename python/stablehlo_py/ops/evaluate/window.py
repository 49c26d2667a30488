"""Windows: reduce_window and select_and_scatter."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import ReduceWindow, SelectAndScatter
from stablehlo_py.ops.evaluate.folding import Arrays, Fold, Run
from stablehlo_py.ops.evaluate.shape import pad


def _places(op: ReduceWindow, shape: tuple[int, ...], result: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """For each place in the window, in order, where all windows have it in the padded and dilated operand."""
    for place in itertools.product(*map(range, op.window_dimensions)):
        starts = [p * d for p, d in zip(place, op.window_dilations, strict=True)]
        yield tuple(slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, result, op.window_strides, strict=True))


def _result_shape(op: ReduceWindow, padded: tuple[int, ...]) -> tuple[int, ...]:
    reach = [(w - 1) * d + 1 if w else 0 for w, d in zip(op.window_dimensions, op.window_dilations, strict=True)]
    return tuple(
        max((n - r) // s + 1, 0) if n >= r else 0 for n, r, s in zip(padded, reach, op.window_strides, strict=True)
    )


@evaluate("stablehlo.reduce_window")
def evaluate_reduce_window(op: ReduceWindow, *operands: np.ndarray, run: Run) -> Arrays:
    """init, then the elements of each window in row-major order, folded by the body; padding counts as init."""
    half = len(operands) // 2
    inputs, inits = operands[:half], operands[half:]
    low, high = [lo for lo, _ in op.padding], [hi for _, hi in op.padding]
    interior = [d - 1 for d in op.base_dilations]
    padded = [pad(x, init, low, high, interior) for x, init in zip(inputs, inits, strict=True)]
    shape = _result_shape(op, padded[0].shape)
    fold = Fold(op.block(), run, tuple(t.element.dtype for t in op.types))
    accumulators = fold.start(inits, shape)
    if 0 in shape:
        return fold.finish(accumulators)
    for place in _places(op, padded[0].shape, shape):
        accumulators = fold.step(accumulators, tuple(x[place] for x in padded))
    return fold.finish(accumulators)


@evaluate("stablehlo.select_and_scatter")
def evaluate_select_and_scatter(
    op: SelectAndScatter, operand: np.ndarray, source: np.ndarray, init: np.ndarray, *, run: Run
) -> np.ndarray:
    """In each window of operand, the element that `select` keeps gets the window's source added by `scatter`.

    Padding is never selected. Windows scatter in the order of their places, which the specification leaves open.
    """
    low, high = [lo for lo, _ in op.padding], [hi for _, hi in op.padding]
    flat = [0] * operand.ndim
    zero, out = np.zeros((), operand.dtype), np.full((), False)
    padded = pad(operand, zero, low, high, flat)
    real = pad(np.ones(operand.shape, bool), out, low, high, flat)
    best, chosen = np.zeros(source.shape, operand.dtype), np.full(source.shape, -1)
    places = list(_places(op, padded.shape, source.shape)) if source.size else []
    for number, place in enumerate(places):
        element, exists = padded[place], real[place]
        keep = (chosen >= 0) & np.broadcast_to(run(0, best, element)[0], source.shape)
        take = exists & ~keep
        best, chosen = np.where(take, element, best), np.where(take, number, chosen)
    result = np.full(padded.shape, init, op.type.element.dtype)
    for number, place in enumerate(places):
        value = np.broadcast_to(run(1, result[place], source)[0], source.shape)
        result[place] = np.where(chosen == number, value, result[place])
    # Cut the padding off again; where it was negative, what was cut keeps init.
    return pad(result, init, [-lo for lo in low], [-hi for hi in high], flat)
