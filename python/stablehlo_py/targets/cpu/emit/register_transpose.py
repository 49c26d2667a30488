"""Square blocks of vectors, transposed in registers, and matrices that are turned by such blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.mlir import ir, vector
from stablehlo_py.ops.llvm_ops import arithmetic_fence
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes


def transposed(rows: Sequence[ir.Value]) -> list[ir.Value]:
    """n vectors of n elements (n a power of two), each shuffle one that x86 has.

    First within the 16-byte pieces of the vectors (unpack), then the pieces among the vectors.
    """
    n = len(rows)
    piece = min(n, 16 // element_bytes(ir.VectorType(rows[0].type).element_type))  # elements
    pieces = n // piece
    low = [p * piece + i // 2 + (n if i % 2 else 0) for p in range(pieces) for i in range(piece)]
    high = [i + piece // 2 for i in low]
    groups = [list(rows[g * piece : (g + 1) * piece]) for g in range(pieces)]
    for number in range(int(math.log2(piece))):
        groups = [
            [_shuffle(group[i], group[i + piece // 2], mask) for i in range(piece // 2) for mask in (low, high)]
            for group in groups
        ]
        if number % 2:
            groups = [[fence(value) for value in group] for group in groups]
    even = [2 * p * piece + i for p in range(pieces) for i in range(piece)]
    odd = [piece + i for i in even]
    columns: list[list[ir.Value]] = []  # of each place in a piece: the vectors, by the piece that the column stood in
    for place in range(piece):
        block = [group[place] for group in groups]
        for _ in range(int(math.log2(pieces))):
            pairs = list(zip(block[::2], block[1::2], strict=True))
            block = [_shuffle(a, b, mask) for mask in (even, odd) for a, b in pairs]
        columns.append(block)
    return [columns[s % piece][s // piece] for s in range(n)]


def fence(value: ir.Value) -> ir.Value:
    """The same bits; LLVM does not look through it for shuffles to join, of which it finds none in twice the time."""
    ty = ir.VectorType(value.type)
    words = ir.VectorType.get([ty.shape[0] * element_bytes(ty.element_type) // 4], ir.F32Type.get())
    if words == ty:
        return arithmetic_fence(value)
    return vector.bitcast(ty, arithmetic_fence(vector.bitcast(words, value)))


def _shuffle(a: ir.Value, b: ir.Value, mask: Sequence[int]) -> ir.Value:
    return vector.shuffle(a, b, list(mask))


def turned(
    source: Address, between: int, rows: int, target: Address, apart: int, columns: int, vectors: Vectors
) -> None:
    """A matrix of `rows` x `columns` neighbours, its rows `between` elements from each other, to its transpose.

    apart: from one row of the transpose to the next. Square blocks are turned in registers; a matrix that has none is moved
    element by element.
    """
    lanes = vectors.lanes
    if min(rows, columns) < lanes:
        one = ir.VectorType.get([1], vectors.element)

        def element(row: ir.Value, column: ir.Value) -> None:
            value = source.moved(add(multiply(row, between), column)).load(one)
            target.moved(add(multiply(column, apart), row)).store(value)

        nest.loop(0, rows, 1, lambda r: nest.loop(0, columns, 1, lambda c: element(r, c)))
        return

    def block(row: int | ir.Value, column: int | ir.Value) -> None:
        first = source.moved(add(multiply(row, between), column))
        to = target.moved(add(multiply(column, apart), row))
        for n, line in enumerate(transposed([first.moved(n * between).load(vectors.type) for n in range(lanes)])):
            to.moved(n * apart).store(line)

    nest.in_vectors(columns, lanes, lambda c: nest.in_vectors(rows, lanes, lambda r: block(r, c)))
