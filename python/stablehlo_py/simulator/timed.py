"""How long an mxu program takes: its commands under the hazards of its buffers, through the event simulation.

A program's order gives the order on each unit (vector code is scheduled a little ahead). A command starts as soon as its
unit is free and its hazards are gone: the block that it reads has arrived, the copy of the buffer that it overwrites has
been read. So one copy of a buffer means no overlap; two mean that the next transfer runs behind the current work.

All cores of a split do the same work on blocks of the same size (only the last has clipped ones), so the first stands for
all; bandwidths are given per core.

Regular loop nests are not run to their end: in the steady state the time is linear in each trip count, so a few trips of
each loop give the time of all, provided that the same resource holds the short run up as the whole. `exact=True` runs
everything.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from stablehlo_py.machine.tpu import Chip
from stablehlo_py.records import field, record, replace
from stablehlo_py.simulator import events, units
from stablehlo_py.simulator import program as p

FULL_STEPS = 256  # programs with at most so many innermost steps are run whole
FEW_STEPS = 3000  # and those with at most so many when the first short runs are not like the whole
SHORT_TRIPS = 3  # trips of a long loop that are run, and one more to find the time of a trip
CLEAR = 0.9  # the second busiest resource is at most so busy, for a run cut short to stand for the whole


@record
class Timed:
    """Cycles of a kernel on one core, with its launch; busy: cycles that each unit works, as if alone.

    whole: spans are those of the whole kernel, not of a run cut short. left: of the work of the HBM in the background, in
    cycles, what the kernel has not left time for.
    """

    cycles: float
    busy: dict[str, float]
    hbm_bytes: float
    spans: tuple[events.Span, ...]
    whole: bool = True
    left: float = 0.0

    def seconds(self, chip: Chip) -> float:
        return self.cycles / chip.clock_hz


def time_program(program: p.Program, chip: Chip, *, exact: bool = False, background: float = 0.0) -> Timed:
    """The time of a kernel on `chip`, with `background` cycles of transfers for others that may run behind it."""
    launch = chip.calibration.launch_seconds * chip.clock_hz
    # While a kernel is launched, nothing else is in the way of the background.
    left = max(0.0, background - launch)
    loops = [node for node in program.nodes() if isinstance(node, p.Loop) and not node.is_passes]
    steps = math.prod(loop.trips for loop in loops)
    if exact or steps <= FULL_STEPS:
        commands = _Commands(program, chip, {}).commands
        end, left, spans = _run(commands, chip, left)
        return Timed(launch + end, *_work(commands), tuple(spans), left=left)
    alone = _extrapolate(program, chip, loops, launch)
    if not left:
        return alone
    # As much background as there can be, and of what it costs the share that there is.
    busy = _extrapolate(program, chip, loops, launch, background=4 * alone.cycles)
    most = 4 * alone.cycles - busy.left
    share = min(1.0, left / most) if most > 0 else 0.0
    slower = max(0.0, busy.cycles - alone.cycles)
    return replace(alone, cycles=alone.cycles + share * slower, left=left - share * most)


def _run(
    commands: Sequence[events.Command], chip: Chip, background: float
) -> tuple[float, float, Sequence[events.Span]]:
    """When the commands end, what is left of the background then, and the spans of all."""
    if not background:
        spans = events.simulate(commands, chip.calibration.overlap_rate)
        return _end(spans), 0.0, spans
    behind = events.Command(events.PREFETCH, background, (), "prefetch")
    spans = events.simulate([*commands, behind], chip.calibration.overlap_rate)
    end = _end(spans[:-1])
    left = max(0.0, spans[-1].end - end)  # it is alone from then on
    last = events.Span(behind, 0.0, min(end, spans[-1].end))
    return end, left, [*spans[:-1], last]


def _work(commands: Sequence[events.Command]) -> tuple[dict[str, float], float]:
    """Cycles of work on each unit, and the bytes that go over the HBM."""
    busy: dict[str, float] = dict.fromkeys(events.UNITS, 0.0)
    moved = 0.0
    for command in commands:
        busy[events.UNITS[command.unit]] += command.work
        if command.unit in events.HBM_UNITS:
            moved += command.bytes
    return busy, moved


def _end(spans: Sequence[events.Span]) -> float:
    return max((span.end for span in spans), default=0.0)


def _extrapolate(program: p.Program, chip: Chip, loops: list[p.Loop], launch: float, background: float = 0.0) -> Timed:
    """The whole from runs cut short, or by a whole run where none that is short is like it."""
    trips = SHORT_TRIPS
    long = [(loop, d) for loop in loops for d, bound in enumerate(loop.bounds) if bound > SHORT_TRIPS + 1]
    steps = math.prod(loop.trips for loop in loops)
    while any(loop.bounds[d] > trips + 1 for loop, d in long) and (trips <= 2 * SHORT_TRIPS or steps > FEW_STEPS):
        result = _from_corners(program, chip, long, trips, background)
        if result is not None:
            return replace(result, cycles=launch + result.cycles)
        trips *= 2
    return time_program(program, chip, exact=True, background=background + launch if background else 0.0)


def _from_corners(
    program: p.Program, chip: Chip, long: list[tuple[p.Loop, int]], trips: int, background: float
) -> Timed | None:
    """Multilinear in the trip counts of the long loops: a run for each corner of (trips, one more).

    None where the short runs are not held up by what holds up the whole.
    """
    few = [min(trips, loop.bounds[d] - 1) for loop, d in long]
    weights: list[float] = []
    corners: list[list[events.Command]] = []
    work: list[tuple[dict[str, float], float]] = []
    held_up: set[str] = set()
    for corner in itertools.product((0, 1), repeat=len(long)):
        cut = {(id(loop), d): few[i] + corner[i] for i, (loop, d) in enumerate(long)}
        beyond = [loop.bounds[d] - few[i] for i, (loop, d) in enumerate(long)]
        weights.append(math.prod(b if up else 1.0 - b for b, up in zip(beyond, corner, strict=True)))
        corners.append(_Commands(program, chip, cut).commands)
        work.append(_work(corners[-1]))
        resource, clear = _bottleneck(work[-1][0])
        held_up.add(resource)
        if not clear or len(held_up) > 1:
            return None
    # Work is linear in the trips without any condition.
    busy, moved = _weighted(weights, work)
    if held_up != {_bottleneck(busy)[0]}:
        return None
    runs = [_run(commands, chip, background) for commands in corners]
    cycles = sum(weight * end for weight, (end, _, _) in zip(weights, runs, strict=True))
    # Short runs of several nests after each other may mislead; never below the work of the busiest resource.
    cycles = max(cycles, _busiest(busy))
    done = sum(weight * (background - left) for weight, (_, left, _) in zip(weights, runs, strict=True))
    return Timed(cycles, busy, moved, tuple(runs[-1][2]), whole=False, left=max(0.0, background - done))


def _weighted(weights: list[float], work: list[tuple[dict[str, float], float]]) -> tuple[dict[str, float], float]:
    busy = {
        unit: sum(weight * own[unit] for weight, (own, _) in zip(weights, work, strict=True)) for unit in events.UNITS
    }
    return busy, sum(weight * moved for weight, (_, moved) in zip(weights, work, strict=True))


def _busiest(busy: dict[str, float]) -> float:
    """Cycles of the resource with most work; both directions of transfers share the HBM."""
    hbm = sum(busy[events.UNITS[unit]] for unit in events.HBM_UNITS)
    return max(hbm, *busy.values())


def _bottleneck(busy: dict[str, float]) -> tuple[str, bool]:
    """The busiest resource (both directions of transfers share the HBM), and whether it is so by far."""
    work = dict(busy)
    work["HBM"] = sum(work.pop(events.UNITS[unit]) for unit in events.HBM_UNITS)
    first, second = sorted(work, key=lambda unit: -work[unit])[:2]
    return first, work[second] <= CLEAR * work[first]


@record(frozen=False)
class _Copy:
    """One copy of a buffer: who wrote it last and who has read it since."""

    writer: int | None = None
    readers: list[int] = field(default_factory=list)
    holds: tuple[int, ...] | None = None  # the block that a transfer brought

    def hazards(self) -> tuple[int, ...]:
        return (*self.readers, self.writer) if self.writer is not None else tuple(self.readers)


class _Commands:
    """Walks a program once and lists its commands; `trips` cuts loops short: the first trips and the last."""

    def __init__(self, program: p.Program, chip: Chip, trips: dict[tuple[int, int], int]) -> None:
        self.program, self.chip, self.trips = program, chip, trips
        self.commands: list[events.Command] = []
        self.index = [0] * program.index_count
        self.copies = {buffer: [_Copy() for _ in range(buffer.copies)] for buffer in program.allocations}
        self.current = dict.fromkeys(program.allocations, 0)
        self.accumulators = {node.acc for node in program.nodes() if isinstance(node, p.Matmul)}
        self.body(program.body)

    def add(self, unit: int, work: float, after: Sequence[int], label: str, moved: int = 0, delay: float = 0.0) -> int:
        self.commands.append(events.Command(unit, work, tuple(after), label, moved, delay))
        return len(self.commands) - 1

    def copy(self, buffer: p.Buffer) -> _Copy:
        if buffer not in self.copies:  # a view of an argument that is in VMEM: always there
            self.copies[buffer], self.current[buffer] = [_Copy()], 0
        return self.copies[buffer][self.current[buffer]]

    def next_copy(self, buffer: p.Buffer) -> _Copy:
        self.copy(buffer)
        self.current[buffer] = (self.current[buffer] + 1) % len(self.copies[buffer])
        return self.copy(buffer)

    def body(self, nodes: tuple[p.Node, ...]) -> None:
        for node in nodes:
            self.node(node)

    def node(self, node: p.Node) -> None:
        match node:
            case p.Loop() if node.is_passes:
                self.passes(node)
            case p.Loop():
                self.loop(node)
            case p.CoreSplit():
                self.index[node.index] = 0
                self.body(node.body)
            case p.DmaStart():
                self.transfer(node)
            case p.Mask():
                self.mask(node)
            case p.DmaStrided():
                self.strided(node)
            case p.Fill() if node.target in self.accumulators:
                # The first sums are written, not added, so nothing has to be set; they only need a free copy.
                self.next_copy(node.target)
            case p.Fill():
                cycles = units.vector_cycles(_elements(node.target), self.chip)
                self.work(events.VPU, cycles, [], node.target, f"fill {node.target.name}")
            case p.Place():
                # Each register of the source that is touched is turned, and merged into one of the target.
                lanes = max(abs(node.lanes[1]), abs(node.lanes[3])) * node.lanes[4]
                cycles = units.cross_lane_cycles(node.source.shape[0] * max(lanes, self.chip.lanes), self.chip)
                self.work(events.XLU, cycles, [node.source], node.target, f"place {node.target.name}", part=True)
            case p.Pop():
                rows, columns = node.acc.shape
                cycles = units.pop_cycles(rows, columns, self.chip)
                drain = units.fill_drain_cycles(self.chip)
                self.work(events.VPU, cycles, [node.acc], node.target, f"pop {node.target.name}", delay=drain)
            case p.Vector():
                elements = _elements(node.target)
                unit, cycles = events.VPU, units.vector_cycles(elements, self.chip)
                if node.function in units.EXTENDED:
                    unit, cycles = events.EUP, units.extended_cycles(elements, node.function, self.chip)
                self.work(unit, cycles, list(node.sources), node.target, node.function)
            case p.Reduce():
                # Registers of a row are reduced by the vector unit, the last one across its lanes by the cross-lane unit.
                cycles = units.vector_cycles(_elements(node.source), self.chip)
                cycles += units.cross_lane_cycles(_elements(node.target), self.chip)
                self.work(events.XLU, cycles, [node.source], node.target, f"reduce {node.function}")
            case p.Transpose() | p.Relayout():
                cycles = units.cross_lane_cycles(_elements(node.source), self.chip)
                self.work(events.XLU, cycles, [node.source], node.target, type(node).__name__.lower())
            case p.Push() | p.Matmul():
                self.single(node)
            case p.DmaWait() | p.Barrier() | p.View() | p.ReadIndex():
                pass  # hazards say what waits for what; a view moves nothing; the scalar unit is not modelled
            case _:
                raise ValueError(f"no time is known for {type(node).__name__}")

    def mask(self, node: p.Mask) -> None:
        """Only the part of an edge block from the tile on that the limit falls into."""
        size = node.target.shape[node.dim]
        number = node.block(*(self.index[i] for i in node.indices))[-len(node.target.shape) :][node.dim]
        behind = (number + 1) * size - node.limit
        if behind <= 0:
            return
        tile = self.chip.lanes if node.dim == len(node.target.shape) - 1 else self.chip.sublanes
        touched = min(size, -(-behind // tile) * tile) * _elements(node.target) // size
        cycles = units.vector_cycles(touched, self.chip)
        self.work(events.VPU, cycles, [node.target], node.target, f"mask {node.target.name}")

    def loop(self, node: p.Loop) -> None:
        ranges = []
        for d, bound in enumerate(node.bounds):
            count = self.trips.get((id(node), d), bound)
            ranges.append(range(bound) if count >= bound else [*range(count - 1), bound - 1])
        for values in itertools.product(*ranges):
            for number, value in zip(node.indices, values, strict=True):
                self.index[number] = value
            self.body(node.body)

    def work(
        self,
        unit: int,
        cycles: float,
        sources: list[p.Buffer],
        target: p.Buffer,
        label: str,
        *,
        delay: float = 0.0,
        part: bool = False,
    ) -> None:
        """A command that reads buffers and writes one: the next copy of it, or the current one where it also reads it.

        One that writes a part goes on with the current copy until that is read.
        """
        reads = [self.copy(source) for source in sources]
        stay = target in sources or (part and not self.copy(target).readers)
        target_copy = self.copy(target) if stay else self.next_copy(target)
        after = [r.writer for r in reads if r.writer is not None]
        number = self.add(unit, cycles, [*after, *target_copy.hazards()], label, delay=delay)
        for read in reads:
            read.readers.append(number)
        target_copy.writer, target_copy.readers = number, []
        if target not in sources:
            target_copy.holds = None

    def transfer(self, node: p.DmaStart) -> None:
        block = node.block(*(self.index[i] for i in node.indices))
        if node.inward and self.copy(node.small).holds == block:
            return
        moved = _moved_bytes(node, block)
        unit, work = self.way(node, moved)
        if not node.inward:
            copy = self.copy(node.small)
            after = [] if copy.writer is None else [copy.writer]
            copy.readers.append(self.add(unit, work, after, f"store {node.small.name}", moved))
            return
        copy = self.next_copy(node.small)
        number = self.add(unit, work, copy.hazards(), f"load {node.small.name}", moved)
        copy.writer, copy.readers, copy.holds = number, [], block

    def strided(self, node: p.DmaStrided) -> None:
        """Several may fill one copy of a buffer: it is left for the next one when it has been read."""
        moved = units.strided_bytes(
            node.count, node.large.shape, node.dim, node.step, node.small.element, self.chip, store=not node.inward
        )
        unit, work = self.way(node, moved)
        copy = self.copy(node.small)
        if not node.inward:
            after = [] if copy.writer is None else [copy.writer]
            copy.readers.append(self.add(unit, work, after, f"store {node.small.name}", moved))
            return
        if copy.readers:
            copy = self.next_copy(node.small)
        number = self.add(unit, work, copy.hazards(), f"load {node.small.name}", moved)
        copy.writer, copy.readers, copy.holds = number, [], None

    def way(self, node: p.DmaStart | p.DmaStrided, moved: int) -> tuple[int, float]:
        """The queue of a transfer and its cycles alone."""
        issue = self.chip.dma_issue_cycles
        if node.large.space == "hbm":
            return events.DMA_IN if node.inward else events.DMA_OUT, issue + moved / self.chip.hbm_bytes_per_cycle
        speeds = {"cmem": self.chip.cmem_bytes_per_second, "vmem": self.chip.vmem_bytes_per_second}
        work = issue + moved * self.chip.clock_hz / speeds[node.large.space]
        return events.LOCAL_IN if node.inward else events.LOCAL_OUT, work

    def passes(self, loop: p.Loop) -> None:
        push, matmul = loop.body
        assert isinstance(push, p.Push) and isinstance(matmul, p.Matmul)  # by is_passes
        self.matmuls(push, matmul, loop.trips)

    def matmuls(self, push: p.Push, matmul: p.Matmul, tiles: int) -> None:
        lhs, rhs, acc = self.copy(matmul.lhs), self.copy(push.source), self.copy(matmul.acc)
        rows = matmul.lhs.shape[0]
        cycles = units.pass_cycles(rows, tiles, self.chip, push.source.element, matmul.passes)
        cycles /= self.chip.calibration.mxu_efficiency
        after = [w for w in (lhs.writer, rhs.writer) if w is not None]
        number = self.add(events.MXU, cycles, [*after, *acc.hazards()], f"matmul {matmul.acc.name}")
        lhs.readers.append(number)
        rhs.readers.append(number)
        acc.writer, acc.readers = number, []

    def single(self, node: p.Push | p.Matmul) -> None:
        """A push and a matmul that stand alone: the push is remembered, the matmul takes both."""
        if isinstance(node, p.Push):
            self.pushed = node
            return
        self.matmuls(self.pushed, node, 1)


def _elements(buffer: p.Buffer) -> int:
    return math.prod(buffer.shape)


def _moved_bytes(node: p.DmaStart, block: tuple[int, ...]) -> int:
    """What a transfer moves: the block, without what is outside the array."""
    whole = node.large.shape
    outer = len(whole) - len(node.small.shape)
    count = 1
    for d, number in enumerate(block):
        size = node.small.shape[d - outer] if d >= outer else 1
        rest = whole[d] - number * size
        if rest <= 0:
            return 0
        count *= rest if rest < size else size
    return count * node.small.element.bits // 8
