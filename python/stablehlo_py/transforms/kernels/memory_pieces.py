"""Kernels that only move one piece of memory: a slice without gaps, read or written, where an offset says it all.

dynamic_slice(x, i, 0) of (n, m) as (1, m) is the m elements behind x[clamp(0, i, n - 1), 0].
"""

from __future__ import annotations

from stablehlo_py.core.types import TensorType, row_major, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record

_MOVES = ("stablehlo.slice", "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")


@record
class StartIndex:
    """An operand that moves a piece: the bytes of the integer, and clamp(0, it, limit) * stride bytes."""

    operand: int
    width: int
    signed: bool
    limit: int
    stride: int


@record
class Piece:
    """What a kernel of one op moves: `bytes` bytes of operand 0 from an offset on.

    update: the operand that is written there; None where the piece is the result.
    """

    bytes: int
    offset: int
    indices: tuple[StartIndex, ...]
    update: int | None


def piece_of(kernel: ir.Operation) -> Piece | None:
    """The piece that a kernel in StableHLO moves; None for one that does anything else."""
    block = kernel.regions[0].blocks[0]
    operations = [o.operation for o in block.operations]
    op = operations[-2] if len(operations) > 1 else None
    if op is None or op.name not in _MOVES or any(o.name != "stablehlo.constant" for o in operations[:-2]):
        return None
    update = 1 if op.name == "stablehlo.dynamic_update_slice" else None
    moved = op.operands[1] if update else op.results[0]
    whole, part = tensor_type(op.operands[0].type), tensor_type(moved.type)
    arguments = list(block.arguments)
    if list(op.operands)[: 1 + (update or 0)] != arguments[: 1 + (update or 0)] or not _is_run(whole, part):
        return None
    strides = row_major(whole.shape, whole.element.bytes)
    if op.name == "stablehlo.slice":
        if any(n != 1 for n in view(op).ints("strides", ())):
            return None
        starts = view(op).ints("start_indices")
        return Piece(part.bytes, sum(n * by for n, by in zip(starts, strides, strict=True)), (), None)
    offset, indices = 0, []
    places = zip(list(op.operands)[1 + (update or 0) :], whole.shape, part.shape, strides, strict=True)
    for index, size, cut, stride in places:
        if index not in arguments:
            constant = view(index.owner.operation)
            assert isinstance(constant, Constant)
            offset += min(max(int(constant.value), 0), size - cut) * stride
        elif size > cut:  # else it can only begin at 0
            element = tensor_type(index.type).element
            if element.bits % 8:
                return None
            number = arguments.index(index)
            indices.append(StartIndex(number, element.bytes, not element.is_unsigned, size - cut, stride))
    return Piece(part.bytes, offset, tuple(indices), update)


def _is_run(whole: TensorType, part: TensorType) -> bool:
    """Whether a part of a shape is one run of memory: one of each dimension before the last that is cut."""
    cut = [d for d, (n, m) in enumerate(zip(whole.shape, part.shape, strict=True)) if n != m]
    return part.size > 0 and (not cut or all(n == 1 for n in part.shape[: cut[-1]]))
