"""Reductions over whole dimensions, with any body and any number of operands; map."""

from __future__ import annotations

import math

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.folding import Arrays, Run, known_body
from stablehlo_py.ops.evaluate.numeric import narrow, wide

# The specification lets the fold be any binary tree that keeps the order. One element after another is what a reader
# expects; beyond this many it would take too long.
_LONGEST_IN_SEQUENCE = 1024


@evaluate("stablehlo.reduce")
def evaluate_reduce(op: Op, *operands: np.ndarray, run: Run) -> Arrays:
    """init, then every element in row-major order, folded by the body: [.., k, ..] -> [..]."""
    half = len(operands) // 2
    inputs, inits = operands[:half], operands[half:]
    axes = op.ints("dimensions")
    dtype = op.type.element.dtype
    known = known_body(op.block(), dtype) if half == 1 else None
    if known:
        folded = known.ufunc.reduce(wide(narrow(inputs[0], dtype)), axis=axes, initial=wide(inits[0])[()])
        return (narrow(np.asarray(folded), dtype),)
    kept = [d for d in range(inputs[0].ndim) if d not in axes]
    shape = [inputs[0].shape[d] for d in kept]
    count = math.prod(inputs[0].shape[d] for d in axes)
    lines = [x.transpose(*sorted(axes), *kept).reshape(count, *shape) for x in inputs]
    if count > _LONGEST_IN_SEQUENCE:
        lines, count = _halved(lines, run), 1
    accumulators = tuple(np.broadcast_to(v, shape) for v in inits)
    for i in range(count):
        accumulators = run(0, *accumulators, *[line[i] for line in lines])
    return accumulators


def _halved(lines: list[np.ndarray], run: Run) -> list[np.ndarray]:
    """[n, ..] -> [1, ..] by folding neighbours: a binary tree over the elements in their order."""
    while (count := len(lines[0])) > 1:
        even = count // 2 * 2
        pairs = run(0, *[x[0:even:2] for x in lines], *[x[1:even:2] for x in lines])
        lines = [np.concatenate([pair, x[even:]]) for pair, x in zip(pairs, lines, strict=True)]
    return lines


@evaluate("stablehlo.map")
def evaluate_map(op: Op, *inputs: np.ndarray, run: Run) -> np.ndarray:
    """The body on each element."""
    return np.broadcast_to(run(0, *inputs)[0], inputs[0].shape)
