"""mxu-moves: transposes, slices, pads, concatenations and reshapes that change tiles become kernels of transfers."""

from __future__ import annotations

import math
from typing import ClassVar

from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.index_kernel import INDEXED, IndexKernel, unmapped
from stablehlo_py.targets.tpu.kernels.move_kernel import MoveKernel
from stablehlo_py.targets.tpu.planning.box import Factor, same_tiles
from stablehlo_py.targets.tpu.planning.move_groups import Group, groups_of
from stablehlo_py.targets.tpu.planning.moves import MOVES, Move, move_of

CONSTANT, FREE = "it moves a constant", "it moves nothing"
ROOTS = (*MOVES, "stablehlo.convert")


class MxuMoves(Pass):
    """Turn each op that only moves elements, with those before it, into an mxu.kernel; or into a reshape that moves nothing.

    What an array is made of without arguments of the program (constants) is not moved by the chip.
    """

    name: ClassVar[str] = "mxu-moves"
    chip: str = "v5e"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        machine = chip(self.chip)
        limit = machine.vmem_for_blocks(self.vmem_limit)
        number = len(emit.operations_named(op, "mxu.kernel"))
        for root in reversed(emit.operations_named(op, *ROOTS, *INDEXED)):
            if not list(root.results[0].uses):
                root.erase()
                continue
            if root.name in INDEXED:
                if unmapped(root, machine, limit) is None:
                    with ir.InsertionPoint(root), root.location:
                        value = IndexKernel(root, machine, limit).build(f"move.{number}")
                    emit.replace(root, value)
                    number += 1
                continue
            move = mapped(root, machine, limit)
            if isinstance(move, str):
                continue
            with ir.InsertionPoint(root), root.location:
                if moves_nothing(move[0]):
                    value = emit.reshape(move[0].pieces[0].source, move[0].target.shape)
                else:
                    value = MoveKernel(*move, machine, limit).build(f"move.{number}")
                    number += 1
            if value != root.results[0]:
                emit.replace(root, value)


def reason_for_host(root: ir.Operation, machine: Chip, limit: int) -> str | None:
    """Why the host moves the elements of an op; None for other ops, and for what is not done while the program runs."""
    if root.name in INDEXED:
        return unmapped(root, machine, limit)
    if root.name not in MOVES:
        return None
    result = mapped(root, machine, limit)
    return result if isinstance(result, str) and result not in (CONSTANT, FREE) else None


def mapped(root: ir.Operation, machine: Chip, limit: int) -> tuple[Move, tuple[Group, ...]] | str:
    """The move of an op and how it is made, or why the host makes it."""
    move = move_of(root)
    if isinstance(move, str):
        return move
    if root.name == "stablehlo.convert" and stays(move):
        return FREE
    if all(is_constant(piece.source) for piece in move.pieces):
        return CONSTANT
    if moves_nothing(move):
        return (move, ()) if root.name != "stablehlo.reshape" or move.pieces[0].source != root.operands[0] else FREE
    groups = groups_of(move, machine, limit)
    return groups if isinstance(groups, str) else (move, groups)


def moves_nothing(move: Move) -> bool:
    """Whether the target is the source in the same tiles and of the same type."""
    return stays(move) and tensor_type(move.pieces[0].source.type).element == move.target.element


def stays(move: Move) -> bool:
    """Whether each element is where it was."""
    if len(move.pieces) != 1:
        return False
    source = tensor_type(move.pieces[0].source.type)
    if source.size != move.target.size or not same_tiles(source.shape, move.target.shape, source.element):
        return False
    return _flat(move.pieces[0].box.factors, source.shape, move.target.shape)


def _flat(factors: tuple[Factor, ...], source: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Whether every factor has the same stride in both arrays, row by row."""

    def stride(shape: tuple[int, ...], dim: int) -> int:
        return math.prod(shape[dim + 1 :])

    return all(f.source_step * stride(source, f.source) == f.target_step * stride(target, f.target) for f in factors)


def is_constant(value: ir.Value) -> bool:
    """Made of nothing that the program is given."""
    operation = maker(value)
    if operation is None or operation.name.startswith("mxu.") or operation.regions:
        return False
    return all(is_constant(operand) for operand in operation.operands)
