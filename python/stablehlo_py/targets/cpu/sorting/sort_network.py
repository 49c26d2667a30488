"""Sort short slices side by side: a network of minima and maxima, each on one element of as many slices as a vector has.

    block of slices: words [length, lanes]; for size = 2, 4 ..: for distance: (lower, upper) = (min, max)

Every merge of two ordered runs is bitonic with the second run read backwards, so that all comparisons point one way and
those beyond the end are left out. Words end in the place of their element, or equal ones are equal elements: the result
is that of a stable sort. Runs up to TILE stay in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.expression import Num
from stablehlo_py.ops.sort_order import Key
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors
from stablehlo_py.targets.cpu.sorting.sort_words import Layout, Slices

VECTOR_BITS = 512  # two vectors where the machine's have 256
TILE = 16  # words that are sorted, or merged at distances below that, without memory between
LONGEST = 1024  # more makes log2(n) ** 2 comparisons an element dearer than digits


def lanes_of(layout: Layout) -> int:
    return VECTOR_BITS // layout.width


def layout_for_network(slices: Slices, stages: Sequence[Sequence[Key]]) -> Layout | None:
    """The layout of words that hold all there is, where there are slices enough to fill vectors; else None."""
    layout = slices.layout(stages, unique=True)
    short = len(stages) == 1 and not layout.split and slices.length <= LONGEST
    return layout if short and 2 * slices.count >= lanes_of(layout) else None


def sort_across(slices: Slices, keys: Sequence[Key], layout: Layout, parallel: str) -> None:
    """Sort all slices, as many at once as a vector has lanes; the loop over the blocks is marked as parallel."""
    lanes, length = lanes_of(layout), slices.length
    height = length if length <= TILE else -(-length // TILE) * TILE
    vectors = Vectors(layout.word, lanes)
    words = nest.scratch([height, lanes], layout.word)
    # vectors are compared as signed: AVX2 has no unsigned comparison
    sign = 1 << (layout.width - 1) if layout.key_bits + layout.payload_bits == layout.width else 0

    def of_block(block: ir.Value) -> None:
        first = arith.muli(block, nest.index(lanes))
        whole = slices.count % lanes == 0
        count = lanes if whole else nest.minimum(lanes, nest.subtract(slices.count, first))

        def place(lane: ir.Value) -> Callable[[ir.Value], list[ir.Value]]:
            number = arith.addi(first, lane)
            return lambda j: slices.place(number, j)

        def take(j: ir.Value) -> None:
            def of_lane(lane: ir.Value) -> None:
                (word,) = slices.words(keys, layout, place(lane), j)
                nest.store((word ^ sign if sign else word).value, words, [j, lane])

            nest.loop(0, count, 1, of_lane)

        def give(j: ir.Value) -> None:
            def of_lane(lane: ir.Value) -> None:
                word = Num(nest.load(words, [j, lane]))
                slices.deliver([keys], layout, [word ^ sign if sign else word], place(lane), j)

            nest.loop(0, count, 1, of_lane)

        nest.loop(0, length, 1, take)
        last = vectors.splat(build.integer_constant(layout.word, (1 << (layout.width - 1)) - 1))
        for row in range(length, height):
            vectors.store(last, words, [row, 0])
        _network(vectors, words, height)
        nest.loop(0, length, 1, give)

    nest.loop(0, -(-slices.count // lanes), 1, of_block, parallel=parallel)
    # the lanes' loops would be vectorised by gathers and scatters, which take longer than single loads
    ir.InsertionPoint.current.block.owner.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()


def _network(vectors: Vectors, words: ir.Value, height: int) -> None:
    """Sort the columns of words [height, lanes]."""
    if height <= TILE:
        _in_registers(vectors, words, 0, height, _sorted)
        return
    nest.loop(0, height, TILE, lambda row: _in_registers(vectors, words, row, TILE, _sorted))

    def of_size(level: ir.Value, half: ir.Value) -> list[ir.Value]:
        """Runs of `half` rows become runs of twice as many."""
        _compare_rows(vectors, words, height, half, backwards=True)

        def of_distance(_: ir.Value, distance: ir.Value) -> list[ir.Value]:
            _compare_rows(vectors, words, height, distance, backwards=False)
            return [arith.shrui(distance, nest.index(1))]

        nest.loop(0, level, 1, of_distance, [arith.shrui(half, nest.index(1))])
        nest.loop(0, height, TILE, lambda row: _in_registers(vectors, words, row, TILE, _cleaned))
        return [arith.shli(half, nest.index(1))]

    levels = (height - 1).bit_length() - (TILE - 1).bit_length()
    nest.loop(0, levels, 1, of_size, [nest.index(TILE)])


def _compare_rows(vectors: Vectors, words: ir.Value, height: int, half: ir.Value, *, backwards: bool) -> None:
    """Compare, in each two runs of `half` rows, row i of the one with row i of the other, or with its last but i."""
    one = nest.index(1)
    pairs = 1 << ((height - 1).bit_length() - 1)
    mask = arith.subi(half, one)

    def of_pair(pair: ir.Value) -> None:
        inside = arith.andi(pair, mask)
        begin = arith.shli(arith.subi(pair, inside), one)
        lower = arith.addi(begin, inside)
        upper = arith.addi(begin, arith.addi(half, arith.subi(mask, inside) if backwards else inside))

        def exchange() -> None:
            a, b = (vectors.load(words, [row, 0]) for row in (lower, upper))
            vectors.store(arith.minsi(a, b), words, [lower, 0])
            vectors.store(arith.maxsi(a, b), words, [upper, 0])

        if height & (height - 1) == 0:
            exchange()
        else:
            nest.when(arith.cmpi(arith.CmpIPredicate.ult, upper, nest.index(height)), exchange)

    nest.loop(0, pairs, 1, of_pair)


def _in_registers(
    vectors: Vectors, words: ir.Value, row: int | ir.Value, count: int, network: Callable[[list[ir.Value]], None]
) -> None:
    rows = [vectors.load(words, [nest.add(row, i), 0]) for i in range(count)]
    network(rows)
    for i, value in enumerate(rows):
        vectors.store(value, words, [nest.add(row, i), 0])


def _sorted(rows: list[ir.Value]) -> None:
    size = 2
    while size < 2 * len(rows):
        for begin in range(0, len(rows), size):
            for i in range(size // 2):
                _exchange(rows, begin + i, begin + size - 1 - i)
        _cleaned(rows, size // 4)
        size *= 2


def _cleaned(rows: list[ir.Value], distance: int = TILE // 2) -> None:
    """The rest of a merge, from a distance down to 1."""
    while distance:
        for begin in range(0, len(rows), 2 * distance):
            for i in range(begin, begin + distance):
                _exchange(rows, i, i + distance)
        distance //= 2


def _exchange(rows: list[ir.Value], lower: int, upper: int) -> None:
    if upper < len(rows):
        a, b = rows[lower], rows[upper]
        rows[lower], rows[upper] = arith.minsi(a, b), arith.maxsi(a, b)
