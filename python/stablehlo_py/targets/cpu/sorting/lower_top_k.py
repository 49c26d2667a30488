"""top_k on the CPU: one read of each row, whose blocks are skipped where their largest does not beat the k-th so far.

    for block of a row: if max(keys of the block) > limit: for element: keep it if its key > limit

Keys are signed integers in the order of the elements. A few are kept in order: a new one moves in. Many are kept as they
come; when twice k are there, they are sorted, and the k-th is the new limit. Either way the first of equal ones wins.
"""

from __future__ import annotations

import math

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, ir, scf, vector
from stablehlo_py.ops import build, layout, sort
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.expression import Num
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors
from stablehlo_py.targets.cpu.sorting.lower_sort import buffer_of, tensor_of
from stablehlo_py.targets.cpu.sorting.sort_radix import by_digits, counts_for
from stablehlo_py.targets.cpu.sorting.sort_words import INDEX, Layout, from_index, to_index
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

FEW, MOST = 64, 256  # elements up to which they are kept in order: always, and where few of the row are kept
BLOCK_BYTES = 512  # looked at before each branch


@lower("chlo.top_k", target="cpu")
def lower_top_k(op: Op, operand: Tensor) -> tuple[Tensor, ...]:
    values_type, indices_type = op.types
    k, length = values_type.shape[-1], operand.shape[-1]
    if values_type.size == 0 or not _is_plain(operand.element) or indices_type.element.bits < 32:
        return sort.lower_top_k(op, operand)
    rows = math.prod(operand.shape[:-1])
    flat = layout.reshape(operand, (rows, length))
    targets = [nest.scratch([rows, k], build.storage_type(ty.element)) for ty in (values_type, indices_type)]
    few = k <= FEW or (k <= MOST and 4 * k <= length)
    (_Few if few else _Many)(flat, buffer_of(flat), targets, indices_type.element, k).emit()
    return tuple(
        layout.reshape(tensor_of(target, ty.with_shape((rows, k))), ty.shape)
        for target, ty in zip(targets, op.types, strict=True)
    )


def _is_plain(element: ElementType) -> bool:
    return (element.is_float and element.bits >= 16) or (element.is_integer and element.bits >= 8)


class _Rows:
    """What both ways share: the walk over blocks, and keys."""

    def __init__(self, operand: Tensor, source: ir.Value, targets: list[ir.Value], index: ElementType, k: int) -> None:
        self.element, self.source, self.targets, self.index, self.k = operand.element, source, targets, index, k
        self.rows, self.length = operand.shape
        self.bits = ir.IntegerType.get_signless(operand.element.bits)
        self.limit = nest.scratch([1], self.bits)  # the key of the k-th so far

    def emit(self) -> None:
        nest.loop(0, self.rows, 1, self.of_row, parallel=PARALLEL_LOOP)

    def of_row(self, row: ir.Value) -> None:
        raise NotImplementedError

    def keep(self, row: ir.Value, j: ir.Value, key: ir.Value) -> None:
        raise NotImplementedError

    def after_block(self) -> None:
        """What is to be done when some elements of a block were kept."""

    def walk(self, row: ir.Value, begin: int) -> None:
        """Offer the elements of a row from `begin` on.

        What is looked at for the last block overlaps the one before: at worst, a branch is taken for nothing.
        """
        size = self.element.bits // 8
        lanes, block = 64 // size, BLOCK_BYTES // size
        if self.length < block:
            self.offer(row, begin, self.length)
            return
        vectors, keys = Vectors(build.storage_type(self.element), lanes), Vectors(self.bits, lanes)
        least = self.constant(keys.type, -(1 << (self.element.bits - 1)))

        def of_block(start: ir.Value) -> None:
            first = nest.minimum(start, self.length - block) if (self.length - begin) % block else start

            def largest(at: ir.Value, so_far: ir.Value) -> list[ir.Value]:
                return [arith.maxsi(so_far, self.key(vectors.load(self.source, [row, nest.add(first, at)])))]

            (parts,) = nest.loop(0, block, lanes, largest, [least])
            key = vector.reduction(self.bits, "maxsi", parts)
            end = nest.minimum(nest.add(start, block), self.length)
            nest.when(self.beats(key), lambda: self.offer(row, start, end))

        nest.loop(begin, self.length, block, of_block)

    def offer(self, row: ir.Value, begin: int | ir.Value, end: int | ir.Value) -> None:
        """Keep the elements of a range that beat the k-th so far."""

        def of_element(j: ir.Value) -> None:
            key = self.key(nest.load(self.source, [row, j]))
            nest.when(self.beats(key), lambda: self.keep(row, j, key))

        nest.loop(begin, end, 1, of_element)
        self.after_block()

    def beats(self, key: ir.Value) -> ir.Value:
        return arith.cmpi(arith.CmpIPredicate.sgt, key, nest.load(self.limit, [0]))

    def deliver(self, row: ir.Value, j: ir.Value, place: ir.Value) -> None:
        nest.store(nest.load(self.source, [row, place]), self.targets[0], [row, j])
        nest.store(build.narrow(self.index, build.from_index(self.index, place)), self.targets[1], [row, j])

    def key(self, stored: ir.Value) -> ir.Value:
        """A signed integer in the order of the elements, of one or of a vector: floats in total order."""
        ty = ir.VectorType.get(stored.type.shape, self.bits) if isinstance(stored.type, ir.VectorType) else self.bits
        bits = stored if stored.type == ty else arith.bitcast(ty, stored)
        if self.element.is_unsigned:
            return arith.xori(bits, self.constant(ty, -(1 << (self.element.bits - 1))))
        if not self.element.is_float:
            return bits
        # negative ones have their magnitude flipped
        sign = arith.shrsi(bits, self.constant(ty, self.element.bits - 1))
        return arith.xori(bits, arith.andi(sign, self.constant(ty, (1 << (self.element.bits - 1)) - 1)))

    def constant(self, ty: ir.Type, value: int) -> ir.Value:
        number = ir.IntegerAttr.get(self.bits, value)
        attribute = ir.DenseElementsAttr.get_splat(ty, number) if isinstance(ty, ir.VectorType) else number
        return arith.constant(ty, attribute)


class _Few(_Rows):
    """The best so far in order."""

    def of_row(self, row: ir.Value) -> None:
        self.keys = nest.scratch([self.k], self.bits)
        self.places = nest.scratch([self.k], ir.IndexType.get())
        nest.loop(0, self.k, 1, lambda j: self.insert(j, self.key(nest.load(self.source, [row, j])), j))
        self.note_limit()
        self.walk(row, self.k)
        nest.loop(0, self.k, 1, lambda j: self.deliver(row, j, nest.load(self.places, [j])))

    def note_limit(self) -> None:
        nest.store(nest.load(self.keys, [self.k - 1]), self.limit, [0])

    def keep(self, row: ir.Value, j: ir.Value, key: ir.Value) -> None:
        self.insert(j, key, self.k - 1)
        self.note_limit()

    def insert(self, j: ir.Value, key: ir.Value, hole: int | ir.Value) -> None:
        """Put element j behind those kept that are not smaller; `hole` is the place that may be overwritten."""
        search = scf.while_([ir.IndexType.get()], [nest.index(hole)])
        before, after = (region.blocks[0] for region in search.regions)
        with ir.InsertionPoint(before):
            place = before.arguments[0]
            has_left = arith.cmpi(arith.CmpIPredicate.ne, place, nest.index(0))
            left = arith.maxsi(arith.subi(place, nest.index(1)), nest.index(0))
            smaller = arith.cmpi(arith.CmpIPredicate.slt, nest.load(self.keys, [left]), key)
            scf.condition(arith.andi(has_left, smaller), [place])
        with ir.InsertionPoint(after):
            place = after.arguments[0]
            left = arith.subi(place, nest.index(1))
            for kept in (self.keys, self.places):
                nest.store(nest.load(kept, [left]), kept, [place])
            scf.yield_([left])
        nest.store(key, self.keys, [search.results[0]])
        nest.store(j, self.places, [search.results[0]])


class _Many(_Rows):
    """Up to twice k elements as they come, the best k of them in order where they were sorted last.

    Their words have the key, turned so that the largest comes first, and their place, as sort_words has it.
    """

    def of_row(self, row: ir.Value) -> None:
        place_bits = max(1, (self.length - 1).bit_length())
        key_bits = self.element.bits
        split = key_bits + place_bits > 64
        width = key_bits if split else max(8, 1 << (key_bits + place_bits - 1).bit_length())
        self.layout = Layout(key_bits, INDEX, place_bits, width, split)
        self.full = min(2 * self.k, self.length)
        room = self.full + BLOCK_BYTES // (self.element.bits // 8)
        types = [self.layout.word, *([ir.IntegerType.get_signless(self.layout.payload_width)] if split else [])]
        self.words = [nest.scratch([2, room], ty) for ty in types]
        self.counts = counts_for(self.layout)
        self.state = nest.scratch([2], ir.IndexType.get())  # how many are kept, and in which row
        nest.store(nest.index(0), self.state, [0])
        nest.store(nest.index(0), self.state, [1])
        nest.loop(0, self.full, 1, lambda j: self.keep(row, j, self.key(nest.load(self.source, [row, j]))))
        self.sort()
        self.walk(row, self.full)
        self.sort()
        side = nest.load(self.state, [1])

        def of_place(j: ir.Value) -> None:
            words = [Num(nest.load(kept, [side, j])) for kept in self.words]
            self.deliver(row, j, to_index(self.layout.payload_of(words)))

        nest.loop(0, self.k, 1, of_place)

    def keep(self, row: ir.Value, j: ir.Value, key: ir.Value) -> None:
        count, side = (nest.load(self.state, [i]) for i in range(2))
        # the largest signed key is the smallest unsigned one
        word = (Num(key) ^ ((1 << (self.element.bits - 1)) - 1)).resize(self.layout.width)
        if self.layout.split:
            parts = [word, from_index(j, self.layout.payload_width)]
        else:
            parts = [(word << self.layout.shift) | from_index(j, self.layout.width)]
        for part, kept in zip(parts, self.words, strict=True):
            nest.store(part.value, kept, [side, count])
        nest.store(nest.add(count, 1), self.state, [0])

    def after_block(self) -> None:
        count = nest.load(self.state, [0])
        nest.when(arith.cmpi(arith.CmpIPredicate.uge, count, nest.index(self.full)), self.sort)

    def sort(self) -> None:
        """Leave the k best, in order."""
        count, side = (nest.load(self.state, [i]) for i in range(2))
        side = by_digits(self.layout, self.words, self.counts, count, side)
        nest.store(side, self.state, [1])
        nest.store(nest.index(self.k), self.state, [0])
        last = Num(nest.load(self.words[0], [side, self.k - 1]))
        key = last.shift_right_logical(self.layout.shift) if self.layout.shift else last
        key = key.resize(self.element.bits) ^ ((1 << (self.element.bits - 1)) - 1)
        nest.store(key.value, self.limit, [0])
