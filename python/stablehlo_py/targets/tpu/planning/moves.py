"""Moves: what an op that only moves elements does, with the moves before it, as boxes from sources into one target."""

from __future__ import annotations

from stablehlo_py.core.collect import maker
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu.constants import number_of
from stablehlo_py.targets.tpu.planning import box as boxes
from stablehlo_py.targets.tpu.planning.box import Box

ON_CHIP = ("i1", "f32", "bf16", "f16", "i8", "ui8", "i16", "ui16", "i32", "ui32")
FLOATS = ("f32", "bf16", "f16")
MOVES = (
    *("stablehlo.transpose", "stablehlo.reshape", "stablehlo.slice", "stablehlo.reverse"),
    *("stablehlo.broadcast_in_dim", "stablehlo.pad", "stablehlo.concatenate"),
)


@record
class Piece:
    """One source and where its elements go."""

    source: ir.Value
    box: Box


@record
class Move:
    """pieces: parts of the target that do not overlap; fill: what is everywhere else, if they leave something free."""

    pieces: tuple[Piece, ...]
    fill: float | None
    target: TensorType

    @property
    def sources(self) -> list[ir.Value]:
        """Each once."""
        return list(dict.fromkeys(piece.source for piece in self.pieces))


def unmapped_types(op: Op) -> str | None:
    """Why the chip moves no elements of such types; None where it does."""
    types = (*op.operand_types, op.type)
    if not all(ty.is_static for ty in types):
        return "its shape is not static"
    if any(ty.size == 0 for ty in types):
        return "it has no elements"
    return None if op.type.element.name in ON_CHIP else f"the chip has no registers of {op.type.element}"


def move_of(operation: ir.Operation) -> Move | str:
    """What an op moves, or why the chip does not do it."""
    op = view(operation)
    if reason := unmapped_types(op):
        return reason
    if op.name == "stablehlo.pad":
        return _pad(op)
    if op.name == "stablehlo.concatenate":
        return _concatenate(op)
    piece = chain(operation.results[0])
    if piece.source == operation.results[0]:
        return "its sizes do not fit together"
    return Move((piece,), None, op.type)


def _pad(op: Op) -> Move | str:
    """Zero or another number around and between the elements; negative padding cuts."""
    fill = number_of(op.operation.operands[1])
    if fill is None:
        return "its padding is not a constant"
    low, between = op.ints("edge_padding_low"), op.ints("interior_padding")
    steps = tuple(b + 1 for b in between)
    piece = chain(op.operation.operands[0])
    # Elements i of the operand with 0 <= low + i * step < size: negative padding leaves fewer.
    shape = op.operand_types[0].shape
    cut = [max(0, -(a // s)) for a, s in zip(low, steps, strict=True)]
    kept = [
        min(n - 1, (size - 1 - a) // s) - c + 1
        for n, size, a, s, c in zip(shape, op.type.shape, low, steps, cut, strict=True)
    ]
    if min(kept, default=1) < 1:
        return "nothing of its operand is left"
    box = boxes.sliced(piece.box, cut, kept, [1] * len(shape))
    if box is None:
        return "its sizes do not fit together"
    first = [a + c * s for a, c, s in zip(low, cut, steps, strict=True)]
    box = boxes.placed(box, first, steps, op.type.shape)
    return Move((Piece(piece.source, box),), fill, op.type)


def _concatenate(op: Op) -> Move:
    dim = op.integer("dimension")
    pieces, at = [], 0
    for operand in op.operation.operands:
        piece = chain(operand)
        shape = tensor_type(operand.type).shape
        first = [at if d == dim else 0 for d in range(len(shape))]
        pieces.append(Piece(piece.source, boxes.placed(piece.box, first, [1] * len(shape), op.type.shape)))
        at += shape[dim]
    return Move(tuple(pieces), None, op.type)


def chain(value: ir.Value) -> Piece:
    """Where the elements of `value` come from, through ops that move them, as far back as one box says it."""
    applied: list[ir.Operation] = []
    source = value
    while (producer := _mover(source, value)) is not None:
        applied.append(producer)
        source = producer.operands[0]
    while applied:
        box = _composed(source, applied)
        if box is not None:
            return Piece(source, box)
        source = applied.pop().results[0]
    return Piece(value, boxes.whole(tensor_type(value.type).shape))


def _composed(source: ir.Value, applied: list[ir.Operation]) -> Box | None:
    box: Box | None = boxes.whole(tensor_type(source.type).shape)
    for operation in reversed(applied):
        box = _through(view(operation), box)
        if box is None:
            return None
    return box


def _mover(value: ir.Value, last: ir.Value) -> ir.Operation | None:
    """The op that moves elements to `value`. One that moves twice as much as `last` takes of it, for several, stays alone."""
    operation = maker(value)
    if operation is None:
        return None
    if operation.name == "stablehlo.convert":
        kinds = {tensor_type(v.type).element.name for v in (operation.operands[0], operation.results[0])}
        return operation if kinds <= set(FLOATS) and value == last else None
    if operation.name not in MOVES[:5] or not all(tensor_type(v.type).is_static for v in operation.operands):
        return None
    if operation.name == "stablehlo.broadcast_in_dim" and value != last:
        return None
    single = value == last or len(list(value.uses)) == 1
    if (
        not single
        and operation.name != "stablehlo.reshape"
        and 2 * tensor_type(last.type).size > tensor_type(value.type).size
    ):
        return None
    return operation


def _through(op: Op, box: Box) -> Box | None:
    """The box behind one more op."""
    match op.name:
        case "stablehlo.convert":
            return box
        case "stablehlo.reshape":
            return boxes.reshaped(box, op.type.shape)
        case "stablehlo.transpose":
            return boxes.transposed(box, op.ints("permutation"))
        case "stablehlo.broadcast_in_dim":
            return boxes.broadcast(box, op.type.shape, op.ints("broadcast_dimensions"))
        case "stablehlo.reverse":
            turned = set(op.ints("dimensions"))
            starts = [n - 1 if d in turned else 0 for d, n in enumerate(op.type.shape)]
            return boxes.sliced(box, starts, op.type.shape, [-1 if d in turned else 1 for d in range(op.type.rank)])
        case "stablehlo.slice":
            return boxes.sliced(box, op.ints("start_indices"), op.type.shape, op.ints("strides"))
    raise ValueError(f"{op.name} does not only move elements")
