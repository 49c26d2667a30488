"""Sort slices of words one by one: by insertion where they are short, else by the digits of their keys, lowest first.

    count how often each digit has each value, in one read
    for digit: for element: target[place[its value]++] = element     to and fro between the two rows of a buffer

Both are stable. A digit that is the same everywhere moves nothing and is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir, scf
from stablehlo_py.ops import build
from stablehlo_py.ops.expression import Num
from stablehlo_py.ops.sort_order import Key
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.sorting.sort_words import Layout, Slices, to_index

DIGIT = 8  # bits: as many places are written to in turn as the first-level cache and its page table have room for
SHORT = 24  # elements up to which insertion is quicker than counting

At = Callable[[ir.Value], list[ir.Value]]  # where element j of a slice is in the buffers
Rows = Sequence[ir.Value]  # buffers [2, length]: of words, and of payloads that are apart


def sort_slices(slices: Slices, stages: Sequence[Sequence[Key]], layout: Layout, parallel: str) -> None:
    """Sort slice after slice; the loop over them is marked as parallel."""
    types = [layout.word, *([ir.IntegerType.get_signless(layout.payload_width)] if layout.split else [])]
    rows = [nest.scratch([2, slices.length], ty) for ty in types]
    counts = counts_for(layout) if slices.length > SHORT else None

    def of_slice(number: ir.Value) -> None:
        def at(j: ir.Value) -> list[ir.Value]:
            return slices.place(number, j)

        side: int | ir.Value = 0
        for turn, keys in enumerate(stages):
            _load(slices, keys, layout, rows, side, again=turn > 0, at=at)
            if counts is None:
                _insert(layout, rows, slices.length)
            else:
                side = by_digits(layout, rows, counts, slices.length, side)

        def deliver(j: ir.Value) -> None:
            words = [Num(nest.load(row, [side, j])) for row in rows]
            slices.deliver(stages, layout, words, at, j)

        nest.loop(0, slices.length, 1, deliver)

    nest.loop(0, slices.count, 1, of_slice, parallel=parallel)


def counts_for(layout: Layout) -> ir.Value:
    """How often each digit has each value."""
    return nest.scratch([-(-layout.key_bits // DIGIT), 1 << DIGIT], ir.IntegerType.get_signless(32))


def _load(
    slices: Slices,
    keys: Sequence[Key],
    layout: Layout,
    rows: Rows,
    side: int | ir.Value,
    *,
    again: bool,
    at: At,
) -> None:
    """Words in the order of the slice, or in the order that the stage before has left."""

    def of_element(j: ir.Value) -> None:
        place = j
        if again:
            place = to_index(layout.payload_of([Num(nest.load(row, [side, j])) for row in rows]))
        for word, row in zip(slices.words(keys, layout, at, place), rows, strict=True):
            nest.store(word.value, row, [side, j])

    nest.loop(0, slices.length, 1, of_element)


def _insert(layout: Layout, rows: Rows, length: int) -> None:
    """for i: move the ordered elements before i that are larger one up, and put i in front of them."""

    def of_element(i: ir.Value) -> None:
        new = [nest.load(row, [0, i]) for row in rows]
        key = _key(layout, Num(new[0]))
        search = scf.while_([ir.IndexType.get()], [i])
        before, after = (region.blocks[0] for region in search.regions)
        with ir.InsertionPoint(before):
            place = before.arguments[0]
            has_left = arith.cmpi(arith.CmpIPredicate.ne, place, nest.index(0))
            left = arith.maxsi(arith.subi(place, nest.index(1)), nest.index(0))
            larger = key.below(_key(layout, Num(nest.load(rows[0], [0, left]))))
            scf.condition(arith.andi(has_left, larger.value), [place])
        with ir.InsertionPoint(after):
            place = after.arguments[0]
            left = arith.subi(place, nest.index(1))
            for row in rows:
                nest.store(nest.load(row, [0, left]), row, [0, place])
            scf.yield_([left])
        for value, row in zip(new, rows, strict=True):
            nest.store(value, row, [0, search.results[0]])

    nest.loop(1, length, 1, of_element)


def _key(layout: Layout, word: Num) -> Num:
    """What decides, without the payload, which would be compared as well."""
    return word.shift_right_logical(layout.shift) if layout.shift else word


def by_digits(layout: Layout, rows: Rows, counts: ir.Value, length: int | ir.Value, side: int | ir.Value) -> ir.Value:
    """Sort by each digit of the key in turn; the row in which the elements are in the end."""
    digits = -(-layout.key_bits // DIGIT)
    values = 1 << DIGIT
    i32 = ir.IntegerType.get_signless(32)
    one = arith.constant(i32, 1)
    whole = arith.constant(i32, length) if isinstance(length, int) else arith.index_cast(i32, length)
    nothing = arith.constant(i32, 0)

    def clear(digit: ir.Value) -> None:
        nest.loop(0, values, 1, lambda value: nest.store(nothing, counts, [digit, value]))

    def count(j: ir.Value) -> None:
        word = Num(nest.load(rows[0], [side, j]))
        for digit in range(digits):
            shift = layout.shift + DIGIT * digit
            value = _digit(word.shift_right_logical(shift) if shift else word)
            place = [nest.index(digit), value]
            nest.store(arith.addi(nest.load(counts, place), one), counts, place)

    nest.loop(0, digits, 1, clear)
    nest.loop(0, length, 1, count)

    def of_digit(digit: ir.Value, side: ir.Value) -> list[ir.Value]:
        shift = Num(
            arith.index_cast(layout.word, arith.addi(arith.muli(digit, nest.index(DIGIT)), nest.index(layout.shift)))
        )

        def value_of(word: ir.Value) -> ir.Value:
            return _digit(Num(word).shift_right_logical(shift))

        first = value_of(nest.load(rows[0], [side, 0]))
        same = arith.cmpi(arith.CmpIPredicate.eq, nest.load(counts, [digit, first]), whole)

        def move() -> list[ir.Value]:
            other = arith.subi(nest.index(1), side)

            def begin(value: ir.Value, total: ir.Value) -> list[ir.Value]:
                own = nest.load(counts, [digit, value])
                nest.store(total, counts, [digit, value])
                return [arith.addi(total, own)]

            def of_element(j: ir.Value) -> None:
                moved = [nest.load(row, [side, j]) for row in rows]
                value = value_of(moved[0])
                place = nest.load(counts, [digit, value])
                nest.store(arith.addi(place, one), counts, [digit, value])
                target = arith.index_castui(ir.IndexType.get(), place)
                for element, row in zip(moved, rows, strict=True):
                    nest.store(element, row, [other, target])

            nest.loop(0, values, 1, begin, [nothing])
            nest.loop(0, length, 1, of_element)
            return [other]

        return build.when(same, [side], lambda: [side], move)

    return nest.loop(0, digits, 1, of_digit, [nest.index(side)])[0]


def _digit(word: Num) -> ir.Value:
    return to_index(word & ((1 << DIGIT) - 1) if word.width > DIGIT else word)
