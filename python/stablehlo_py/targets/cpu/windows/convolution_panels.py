"""The kernel's part for the lanes of some panels, packed in the order in which tiles read it.

    for each step of the sums:  the lanes of the panel side by side

Where lanes are neighbours in the kernel, several panels are packed at once: what lies side by side in memory is read
together, by which a kernel larger than the caches takes a quarter of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import transposed
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import Form, rows_to_lanes, sums_of_lanes, widened
from stablehlo_py.targets.cpu.windows.convolution_plan import Tile, merged
from stablehlo_py.targets.cpu.windows.convolutions import Loop

Index = int | ir.Value
AHEAD = 16  # steps of the sums, each in a place of its own in memory, that are asked for before they are packed
TOGETHER_BYTES = 256  # of neighbours in the kernel that are packed at once


class KernelPanels:
    """A scratch buffer for up to `together` panels of `size` elements.

    counts: see the emitter's. between: from one feature of a group that shares a lane to the next, in the kernel.
    """

    def __init__(
        self,
        kernel: ir.Value,
        form: Form,
        tile: Tile,
        summed: Sequence[Loop],
        counts: dict[str, Index],
        *,
        between: int,
        panels: int,
        most_bytes: int,
    ) -> None:
        self.kernel, self.form, self.tile, self.counts = kernel, form, tile, counts
        self.element = form.packed
        self.vectors = Vectors(self.element, tile.lanes)
        self.stored = Vectors(ir.MemRefType(kernel.type).element_type, tile.lanes)
        self.row = tile.vectors * tile.lanes
        self.summed = [replace(loop, x=0) for loop in summed]
        self.between = between
        self.depth = math.prod(loop.extent for loop in summed)
        self.size = self.depth * self.row
        self.together = 1
        if tile.lane.w == 1 and not form.offsets:
            fit = most_bytes // (self.size * form.bytes)
            self.together = max(1, min(panels, -(-TOGETHER_BYTES // (self.row * form.bytes)), fit))
        self.buffer = nest.scratch([self.together * self.size], self.element)

    @property
    def loops(self) -> list[Loop]:
        """The loops over the sums. Those whose extent a phase decides are known as such when it begins, not before."""
        return merged(self.summed, self.counts)

    def pack(self, first: Callable[[Index], Index], count: Index) -> None:
        """Pack `count` panels; first: where the lanes of each begin in the kernel, for the first step of the sums."""

        def pack(rest: Sequence[Loop], place: Index, target: Index) -> None:
            if not rest:
                self._rows(place, multiply(target, self.row), first, count)
                return
            loop, *inner = rest
            if self._is_turned_run(rest):
                self._run(add(first(0), place), multiply(target, self.row), loop.extent)
                return
            steps = math.prod(loop.extent for loop in inner)
            nest.loop(
                0,
                self.counts.get(loop.name, loop.extent),
                1,
                lambda n: pack(inner, add(place, multiply(n, loop.w)), add(target, multiply(n, steps))),
            )

        pack(self.loops, 0, 0)

    def offset_sums(self) -> list[ir.Value]:
        """-128 times the sum of each lane of the panel: what the 128 that the image is moved by adds to the sums."""
        tile, form = self.tile, self.form

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            places = [add(multiply(k, self.row), v * tile.lanes) for v in range(tile.vectors)]
            packed = [self.vectors.load(self.buffer, [place]) for place in places]
            return [sums_of_lanes(form, lanes, total) for lanes, total in zip(packed, sums, strict=True)]

        zero = self.vectors.zero()
        sums = nest.loop(0, self.depth, 1, step, [zero] * tile.vectors)
        seven = self.vectors.splat(arith.constant(self.element, 7))
        return [arith.subi(zero, arith.shli(total, seven)) for total in sums]

    def _rows(self, place: Index, target: Index, first: Callable[[Index], Index], count: Index) -> None:
        """One step of the sums for each panel."""
        if self.together == 1:
            self._row(add(first(0), place), target)
            return
        nest.loop(0, count, 1, lambda n: self._row(add(first(n), place), add(target, multiply(n, self.size))))

    def _row(self, place: Index, target: Index) -> None:
        tile, form = self.tile, self.form
        first, to = Address.of(self.kernel, [place]), Address.of(self.buffer, [target])
        if tile.lane.w == 1 and self.summed:
            first.prefetch(self.summed[-1].w * AHEAD * first.size)
        for v, offset in enumerate(tile.lane_offsets):
            if form.group > 1:
                rows = [first.moved(offset + n * self.between).load(self.stored.type) for n in range(form.group)]
                to.moved(v * tile.lanes).store(rows_to_lanes(form, rows))
                continue
            if tile.lane.w == 1:
                to.moved(v * tile.lanes).store(self._vector(first.moved(offset), tile.used))
                continue

            def element(n: ir.Value, offset: int = offset, v: int = v) -> None:
                place = first.moved(multiply(add(n, offset), tile.lane.w))
                one = place.load(ir.VectorType.get([1], self.stored.element))
                to.moved(add(n, v * tile.lanes)).store(widened(replace(form, lanes=1), one))

            nest.loop(0, tile.used, 1, element)

    def _is_turned_run(self, loops: Sequence[Loop]) -> bool:
        """Whether what is left to pack is a matrix with the lanes outermost."""
        loop, tile = loops[0], self.tile
        whole = len(loops) == 1 and loop.w == 1 and loop.name not in self.counts
        return whole and tile.lane.w > 1 and loop.extent >= tile.lanes == tile.used

    def _run(self, place: Index, target: Index, count: int) -> None:
        """`count` neighbours of each lane: squares are turned in registers, the last of which may overlap."""
        tile, lanes = self.tile, self.tile.lanes

        def square(at: Index, v: Index) -> None:
            offset = nest.minimum(v, tile.lane_offsets[-1])
            first = Address.of(self.kernel, [add(add(place, at), multiply(offset, tile.lane.w))])
            rows = [self._vector(first.moved(n * tile.lane.w)) for n in range(lanes)]
            to = Address.of(self.buffer, [add(add(target, multiply(at, self.row)), v)])
            for n, column in enumerate(transposed(rows)):
                to.moved(n * self.row).store(column)

        nest.in_vectors(count, lanes, lambda at: nest.once_or_loop(self.row, lanes, lambda v: square(at, v)))

    def _vector(self, first: Address, used: int | None = None) -> ir.Value:
        """Neighbours in the kernel as they are multiplied; the first `used` of them, if not all."""
        mask = None if used is None or used == self.stored.lanes else self.stored.mask(used)
        return widened(self.form, first.load(self.stored.type, mask))
