"""Two vectors of a step share the words of memory: one has their lower halves, the other the upper ones.

    a(0 .. 15), a(16 .. 31)   ->   a(0, 2 .. 30), a(1, 3 .. 31)

A bf16 is the upper half of a float. Widened from halves that stand side by side it takes an instruction that spreads them
and one that moves them up, narrowed again three; from a word it takes one, a shift or a mask, and two words become one
by two. Which lanes an element is in matters only to what counts them and to the order of sums, which is that of the shape.
"""

from __future__ import annotations

from stablehlo_py.core.collect import maker
from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.vectors.vector_legality import Innermost

HALF = 16  # bits


def are_halves(loop: Innermost) -> bool:
    """Whether all that a loop reads and writes are upper halves of words, and none of its ops counts its steps."""
    touched = [op for op in loop.body if op.name in ("memref.load", "memref.store")]
    if loop.has_complex or not touched:
        return False
    others = [op for op in loop.body if op not in touched and not any(v in loop.linear for v in op.results)]
    if any(v in loop.linear for op in others for v in op.operands):
        return False
    return all(_is_widened(op.results[0]) if op.results else _is_narrowed(op.operands[0]) for op in touched)


def _is_widened(value: ir.Value) -> bool:
    users = [use.owner.operation for use in value.uses]
    return _is_half(value) and bool(users) and all(op.name == "arith.extui" and _is_word(op.results[0]) for op in users)


def _is_narrowed(value: ir.Value) -> bool:
    op = maker(value)
    return _is_half(value) and op is not None and op.name == "arith.trunci" and _is_word(op.operands[0])


def _is_half(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType) and ir.IntegerType(value.type).width == HALF


def _is_word(value: ir.Value) -> bool:
    return isinstance(value.type, ir.IntegerType) and ir.IntegerType(value.type).width == 2 * HALF


class Words:
    """What two vectors of so many lanes share in one place of memory. The first of them comes first."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self._kept: ir.Value | None = None

    def load(self, here: Address, half: int) -> ir.Value:
        """The lower or the upper halves of the words, which stand where the elements of the first vector would."""
        words, halves = self._types()
        if half == 0:
            self._kept = here.load(words)
        assert self._kept is not None
        value = self._kept if half == 0 else arith.shrui(self._kept, nest.constant_vector(words, HALF))
        return arith.trunci(halves, value)

    def keep(self, lower: ir.Value) -> None:
        self._kept = lower

    def store(self, here: Address, upper: ir.Value, *, streaming: bool) -> None:
        """Both halves; `here`: where the elements of the second vector would stand."""
        words, _ = self._types()
        assert self._kept is not None
        moved = arith.shli(arith.extui(words, upper), nest.constant_vector(words, HALF))
        both = arith.ori(arith.extui(words, self._kept), moved)
        first = here.moved(-self.lanes)
        Address(first.pointer, 4 if streaming else first.size).store(both, streaming=streaming)

    def _types(self) -> tuple[ir.VectorType, ir.VectorType]:
        word, half = (ir.IntegerType.get_signless(bits) for bits in (2 * HALF, HALF))
        return ir.VectorType.get([self.lanes], word), ir.VectorType.get([self.lanes], half)
