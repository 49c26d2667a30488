"""The transform of a tile by Winograd's filters, in passes along its axes.

    for each line along the axes of the first pass:   load its elements, transform them, keep what they become
    for each line along the axes of the next:         the same with what was kept
    ...                                               what the last pass makes of a line is given to `finish`

Axes whose elements fit into registers together are one pass: both of F(2, 3). Others have one each: a tile of F(4, 3) along
two axes has 36 elements, and loops over its lines are a fifth of the code that it takes with all of them at once, most of
which are in memory in between anyway.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.types import row_major
from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.windows.winograd import Line, Place, along

Index = int | ir.Value
Grid = tuple[Address, Sequence[Index]]  # where a tile begins, and elements from one place to the next along each axis
TOGETHER = 16  # vectors of a tile that are transformed in registers


def passes_of(reads: Sequence[int]) -> list[tuple[int, ...]]:
    """The axes of each pass. reads: what a tile has along each axis."""
    passes: list[tuple[int, ...]] = []
    for axis, read in enumerate(reads):
        if passes and math.prod(reads[n] for n in passes[-1]) * read <= TOGETHER:
            passes[-1] = (*passes[-1], axis)
        else:
            passes.append((axis,))
    return passes


class Passes:
    """lines: what is done along each axis; before, after: places along each, in front of the transform and behind it.

    passes: their axes, an axis without a transform in any of them, or in several; kept: of what is kept from one to the next.
    """

    def __init__(
        self,
        lines: Sequence[Line],
        before: Sequence[int],
        after: Sequence[int],
        passes: Sequence[tuple[int, ...]],
        kept: ir.VectorType,
    ) -> None:
        self.lines, self.passes, self.kept = lines, passes, kept
        sizes, self.sizes = list(before), [list(before)]
        for axes in passes[:-1]:
            sizes = [after[n] if n in axes else size for n, size in enumerate(sizes)]
            self.sizes.append(sizes)
        (lanes,) = kept.shape
        self.between = [nest.scratch([math.prod(sizes) * lanes], kept.element_type) for sizes in self.sizes[1:]]

    def emit(
        self,
        source: Grid,
        load: Callable[[Address], ir.Value],
        finish: Callable[[dict[Place, ir.Value], list[Index]], None],
        number: int = 0,
    ) -> None:
        """The passes from this number on, of a tile at `source` where `load` finds its vectors.

        finish(results, place): those of one line along the axes of the last pass, by their places from `place` on.
        """
        axes, sizes = self.passes[number], self.sizes[number]
        is_last = number + 1 == len(self.passes)

        def keep(results: dict[Place, ir.Value], place: list[Index]) -> None:
            grid = self._kept(number)
            first = _moved(grid, place)
            for at, value in results.items():
                _moved((first, grid[1]), at).store(value)

        def line(place: list[Index]) -> None:
            first = _moved(source, place)
            counts = [size if n in axes else 1 for n, size in enumerate(sizes)]
            read = {at: load(_moved((first, source[1]), at)) for at in itertools.product(*map(range, counts))}
            (finish if is_last else keep)(along(read, axes, self.lines), place)

        def lines(place: list[Index]) -> None:
            if len(place) == len(sizes):
                line(place)
            elif len(place) in axes:
                lines([*place, 0])
            else:
                nest.once_or_loop(sizes[len(place)], 1, lambda n: lines([*place, n]))

        lines([])
        if not is_last:
            self.emit(self._kept(number), lambda at: at.load(self.kept), finish, number + 1)

    def _kept(self, number: int) -> Grid:
        (lanes,) = self.kept.shape
        return Address.of(self.between[number], [0]), row_major(self.sizes[number + 1], lanes)


def _moved(grid: Grid, place: Sequence[Index]) -> Address:
    return grid[0].moved(nest.place_of(place, grid[1]))
