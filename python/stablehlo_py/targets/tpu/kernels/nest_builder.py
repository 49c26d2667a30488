"""Kernels that only move elements: loop nests over rows, shared by the cores, and the strided transfers in them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.kernel_builder import KernelBuilder, block_map
from stablehlo_py.targets.tpu.planning.layout import up
from stablehlo_py.targets.tpu.planning.move_groups import MOST_ROWS

STEPS = 8  # blocks that a core's rows are cut into where they allow it


@record
class Linear:
    """constant + sum of factor * variable."""

    terms: tuple[tuple[int, int], ...] = ()  # variable and factor
    constant: int = 0

    def times(self, by: int, plus: int = 0) -> Linear:
        return Linear(tuple((v, f * by) for v, f in self.terms), self.constant * by + plus)


class NestBuilder(KernelBuilder):
    """limit: bytes of VMEM for the blocks; out: the ref of the result."""

    limit: int
    out: ir.Value

    def begin(self) -> None:
        """The semaphores, before anything is moved."""
        self.loads, self.stores = self.semaphore(), self.semaphore()

    def run(self, nests: Sequence[Callable[[], None]]) -> None:
        """The nests one after the other, on each core its share."""
        self.point, self.core = self.cores()
        with self.point:
            for nest in nests:
                nest()

    def nest(
        self, loops: Sequence[int], blocked: Sequence[tuple[int, int]], body: Callable[[list[Linear], list[int]], None]
    ) -> None:
        """Loops of `loops` steps, and over blocks of (size, block); a rest that is no whole block has a nest of its own.

        body(positions, counts): the position of each loop and block, and the size of each block.
        """
        for rests in itertools.product((False, True), repeat=len(blocked)):
            sizes = [
                size % block if rest else size // block for (size, block), rest in zip(blocked, rests, strict=True)
            ]
            if not all(sizes):
                continue
            bounds = [*loops, *(1 if rest else trips for trips, rest in zip(sizes, rests, strict=True))]
            counts = [trips if rest else block for trips, rest, (_, block) in zip(sizes, rests, blocked, strict=True)]
            shared = max(range(len(bounds)), key=lambda i: bounds[i], default=-1) if self.core else -1
            cores = self.chip.cores if shared >= 0 and bounds[shared] > 1 else 1
            trips = [-(-n // cores) if i == shared else n for i, n in enumerate(bounds)]
            inner, indices = self.loop(trips or [1])
            self.here = [*self.core, *indices]
            first = len(self.core)
            positions = []
            for i, n in enumerate(bounds):
                # Where a core's trips do not go out evenly, the last core begins a step early and does that one again.
                core_terms = ((0, n - trips[i]),) if i == shared and cores > 1 else ()
                positions.append(Linear((*core_terms, (first + i, 1))))
            for i, ((size, block), rest) in enumerate(zip(blocked, rests, strict=True)):
                place = len(loops) + i
                positions[place] = Linear(constant=size // block * block) if rest else positions[place].times(block)
            with inner:
                body(positions, counts)

    def first(self, start: Sequence[int], along: Iterable[tuple[int, int, Linear]]) -> ir.Attribute:
        """The map to start + sum of step * position, with (dimension, step, position) in `along`."""
        sums = [Linear(constant=s) for s in start]
        for dim, step, position in along:
            moved = position.times(step)
            sums[dim] = Linear((*sums[dim].terms, *moved.terms), sums[dim].constant + moved.constant)
        names = [f"d{i}" for i in range(len(self.here))]
        texts = [" + ".join([str(s.constant), *(f"{names[v]} * {f}" for v, f in s.terms)]) for s in sums]
        return block_map(f"({', '.join(names)}) -> ({', '.join(texts)})")

    def transfer(
        self,
        large: ir.Value,
        small: ir.Value,
        map: ir.Attribute,
        dim: int,
        step: int,
        rows: int,
        lanes: int,
        at: int = 0,
    ) -> None:
        """Rows into `small` from row `at` on, or out of it where `large` is the kernel's result."""
        source, target = (small, large) if large == self.out else (large, small)
        semaphore = self.stores if large == self.out else self.loads
        ir.Operation.create(
            "mxu.dma_strided",
            operands=[source, target, semaphore, *self.here],
            attributes={
                "map": map,
                "dim": emit.i64(dim),
                "step": emit.i64(step),
                "count": emit.i64s([rows, lanes]),
                "at": emit.i64(at),
            },
        )

    def wait(self, semaphore: ir.Value) -> None:
        self.op("mxu.dma_wait", [semaphore])

    def rows_for(self, size: int, lane_bytes: int, loops: Sequence[int] = ()) -> int:
        """Rows of a block: some steps a core, `loops` around them counted, and two copies of the rows within the limit."""
        wanted = min(MOST_ROWS, up(-(-size * math.prod(loops) // (self.chip.cores * STEPS)), 32))
        most = max(8, self.limit // (2 * lane_bytes) // 8 * 8)
        return min(wanted, most, up(size, 8))
