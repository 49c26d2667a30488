"""Where the rows of a convolution's tile are in the image and in the result.

The rows of a tile may be the places of several loops in their order: the last of one row of the image and the first of the
next. Where those lie evenly, one stride says where; else a table of a step's places does, written once for all its tiles.
"""

from __future__ import annotations

import math
from collections.abc import Collection

from stablehlo_py.mlir import ir
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import add, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address, as_offset
from stablehlo_py.targets.cpu.windows.convolution_plan import Split, Tile, merged
from stablehlo_py.targets.cpu.windows.convolutions import Loop

Index = int | ir.Value


class RowPlaces:
    """The places of one step of the parallel loop. extent: how many there are at most.

    counts: of the loops named in `uneven`, the steps that they have in a phase.
    """

    def __init__(self, tile: Tile, split: Split, counts: dict[str, Index], uneven: Collection[str]) -> None:
        self.rows, self.counts = tile.rows, counts
        self.loops = [replace(loop, extent=split.extent(loop)) for loop in tile.row_loops]
        self.extent = math.prod(loop.extent for loop in self.loops)
        apart = uneven if len(self.loops) > 1 else ()
        self.image = _Places([replace(loop, w=0) for loop in self.loops], self.extent, counts, apart)
        self.result = _Places([replace(loop, x=loop.o, w=0) for loop in self.loops], self.extent, counts, apart)

    @property
    def limit(self) -> Index:
        """How many there are in this phase."""
        total: Index = 1
        for loop in self.loops:
            total = multiply(total, self.counts.get(loop.name, loop.extent))
        return total

    @property
    def are_neighbours(self) -> bool:
        """Whether the rows of a tile lie side by side in the result."""
        return self.result.stride == 1

    def fill(self) -> None:
        """Write the tables."""
        for places in (self.image, self.result):
            places.fill()

    def of_image(self, start: Address, first: Index) -> list[Address]:
        """Where the rows of the tile from `first` on begin; one where they are the same for all."""
        return self.image.of_rows(start, first, self.rows if self.image.stride != 0 else 1)

    def of_result(self, start: Address, first: Index) -> list[Address]:
        return self.result.of_rows(start, first, self.rows)


class _Places:
    """stride: from one to the next; None where they do not lie evenly, and a table has them."""

    def __init__(self, loops: list[Loop], extent: int, counts: dict[str, Index], apart: Collection[str]) -> None:
        self.loops, self.counts = merged(loops, apart), counts
        self.stride = self.loops[0].x if len(self.loops) == 1 else None if self.loops else 0
        self.table = nest.scratch([extent], ir.IntegerType.get_signless(64)) if self.stride is None else None

    def fill(self) -> None:
        if self.table is None:
            return

        def write(loops: list[Loop], offset: Index, number: Index) -> None:
            if not loops:
                nest.store(as_offset(nest.index(offset)), self.table, [number])
                return
            loop, *rest = loops
            steps: Index = 1
            for inner in rest:
                steps = multiply(steps, self.counts.get(inner.name, inner.extent))
            nest.loop(
                0,
                self.counts.get(loop.name, loop.extent),
                1,
                lambda n: write(rest, add(offset, multiply(n, loop.x)), add(number, multiply(n, steps))),
            )

        write(self.loops, 0, 0)

    def of_rows(self, start: Address, first: Index, rows: int) -> list[Address]:
        if self.table is None:
            start = start.moved(multiply(first, self.stride or 0))
            return [start.moved(r * (self.stride or 0)) for r in range(rows)]
        return [start.moved(nest.load(self.table, [add(first, r)])) for r in range(rows)]
