"""Views: ops that only say where a value's elements are found, so that a reader can look through them.

A reader of a group works at loop dimensions d0 .. dn. `trace` follows a value back through broadcasts, through reshapes
that add or drop dimensions of size 1 and through small transpositions, and says at which of those dimensions the value
behind them is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.mlir import ir

# Elements up to which a transposition is no work of its own: read in any order, they stay in the first-level cache.
SMALL = 4096

# Elements that a slice must have in a row of memory for its readers to find it there: a loop over fewer is no vector loop.
LONG = 64

# For each dimension of a value, the loop dimension at which it is read; None for a dimension of size 1.
Dims = tuple[int | None, ...]


def is_view(op: ir.Operation) -> bool:
    """Whether readers can look through the op."""
    if op.name == "stablehlo.broadcast_in_dim":
        return True
    if op.name == "stablehlo.transpose":
        return tensor_type(op.results[0].type).size <= SMALL
    if op.name != "stablehlo.reshape":
        return False
    before, after = tensor_type(op.operands[0].type).shape, tensor_type(op.results[0].type).shape
    return [n for n in before if n != 1] == [n for n in after if n != 1]


def is_piece(op: ir.Operation) -> bool:
    """Whether readers can find the op's elements in its operand's memory, in long runs: a slice without gaps."""
    if op.name != "stablehlo.slice" or any(n != 1 for n in view(op).ints("strides", ())):
        return False
    whole, part = (tensor_type(v.type).shape for v in (op.operands[0], op.results[0]))
    cut = [d for d in range(len(part)) if part[d] != whole[d]]
    run = math.prod(part[cut[-1] :]) if cut else math.prod(part)
    return run >= LONG


def trace(value: ir.Value, dims: Dims, producers: Mapping[ir.Value, ir.Operation]) -> tuple[ir.Value, Dims]:
    """The value behind the views among `producers`, and the dimensions at which it is read."""
    while (op := producers.get(value)) is not None and is_view(op):
        operand = op.operands[0]
        dims = _through(op, dims)
        value = operand
    return value, dims


def _through(op: ir.Operation, dims: Dims) -> Dims:
    before, after = tensor_type(op.operands[0].type).shape, tensor_type(op.results[0].type).shape
    if op.name == "stablehlo.broadcast_in_dim":
        targets = view(op).ints("broadcast_dimensions")
        # a dimension of size 1 is repeated, except where the result has size 1 there too
        return tuple(None if n == 1 != after[d] else dims[d] for n, d in zip(before, targets, strict=True))
    if op.name == "stablehlo.transpose":
        permutation = view(op).ints("permutation")
        return tuple(dims[permutation.index(d)] for d in range(len(dims)))
    wide = iter([d for d, n in zip(dims, after, strict=True) if n != 1])
    return tuple(None if n == 1 else next(wide) for n in before)


def element(value: ir.Value, dims: Dims) -> Dims:
    """The same place with None wherever the value has size 1: equal places have equal names."""
    return tuple(None if n == 1 else d for n, d in zip(tensor_type(value.type).shape, dims, strict=True))
