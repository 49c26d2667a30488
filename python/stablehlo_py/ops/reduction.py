"""reduce: any body over any dimensions of several operands."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, TensorType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir, tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import PARALLEL, REDUCTION, Tensor
from stablehlo_py.ops.contraction import accumulator, converted

FEW = 8  # elements beside each other that are no loop of vectors
NEAR = 1024  # elements of a reduction that stay in the first cache while it is passed over again


@lower("stablehlo.reduce")
def lower_reduce(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    """acc = init; for each element in row-major order: acc = body(acc, element).

    The loops follow the operand's dimensions, so memory is read in order; with the last dimension kept, the innermost
    loop is parallel and contiguous, unless it is so short that accumulators in registers are worth more. Floats below 32
    bits are accumulated in f32 and rounded once at the end.
    """
    inputs, inits = operands[: len(operands) // 2], operands[len(operands) // 2 :]
    reduced = op.ints("dimensions")
    runs = _runs([d in reduced for d in range(inputs[0].rank)])
    extents = [math.prod(inputs[0].shape[d] for d in run) for run in runs]
    kept = [i for i, run in enumerate(runs) if run[0] not in reduced]
    order = list(range(len(runs)))
    if len(runs) > 1 and kept[-1:] == order[-1:] and extents[-1] < FEW and extents[-2] <= NEAR:
        order[-2:] = reversed(order[-2:])
    starts = [accumulators(init, [extents[i] for i in kept]) for init in inits]
    if inputs[0].type.size == 0:
        totals = starts
    else:
        totals = build.generic(
            [layout.reshape(x, extents) for x in inputs],
            starts,
            lambda *scalars: apply_wide(op, 0, [*scalars[len(inputs) :], *scalars[: len(inputs)]]),
            maps=[build.dims_map(len(runs), [order.index(i) for i in range(len(runs))])] * len(inputs)
            + [build.dims_map(len(runs), [order.index(i) for i in kept])] * len(inputs),
            iterators=[PARALLEL if i in kept else REDUCTION for i in order],
        )
    return tuple(
        layout.reshape(converted(total, ty.element), ty.shape) for total, ty in zip(totals, op.types, strict=True)
    )


def _runs(kinds: Sequence[bool]) -> list[list[int]]:
    """Neighbouring dimensions of one kind, which are one loop."""
    runs: list[list[int]] = []
    for d, kind in enumerate(kinds):
        if runs and kinds[d - 1] == kind:
            runs[-1].append(d)
        else:
            runs.append([d])
    return runs


def accumulators(init: Tensor, shape: Sequence[int]) -> Tensor:
    """A tensor of accumulators, each the init value."""
    ty = TensorType(tuple(shape), accumulator(init.element))
    if ty.size == 0:
        return build.empty(ty)
    return build.fill(ty, start(init))


def start(init: Tensor) -> ir.Value:
    """The init value as a stored scalar of the accumulator's type."""
    if accumulator(init.element) == init.element:
        return tensor.extract(init.value, [])
    return build.read(init, [])


def apply_wide(op: Op, region: int, scalars: Sequence[ir.Value]) -> tuple[ir.Value, ...]:
    """The body on compute scalars, small floats not rounded between its ops: they are once, at the very end."""
    return build.apply_region(op, region, *scalars, rounding=False)


def is_wider(element: ElementType) -> bool:
    """Whether accumulators of this type are kept in another one."""
    return accumulator(element) != element
