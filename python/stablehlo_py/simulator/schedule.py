"""A whole program on the chip: its kernels one after the other, prefetches behind them, and what cores give each other.

A core has one stream of instructions, so kernels do not run beside each other; transfers that were started before a kernel
do, in the order of their starts, and share the HBM with it. A kernel starts when what it waits for is there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, record
from stablehlo_py.simulator import exchange, timed
from stablehlo_py.simulator.program import Program, read_kernel


@record
class Start:
    """Begin to bring `bytes` to fast memory, on each core its share where `shared`."""

    value: int
    bytes: int
    shared: bool
    space: str


@record
class Wait:
    """Until a started value is there."""

    value: int


@record
class Launch:
    """A kernel; inputs: the numbers of the values that it takes, output: of the one that it makes."""

    program: Program
    inputs: tuple[int, ...]
    output: int


Step = Start | Wait | Launch


@record
class KernelTime:
    """One kernel in its program, in cycles: `stall` before it for prefetches, `exchange` between cores, then its own time.

    own: its time with the prefetches that run behind it, brought: cycles of the HBM of these. prefetched: bytes that were
    brought for it. crossing: bytes that one core made and another reads. split: what the cores share.
    """

    launch: Launch
    alone: timed.Timed
    own: timed.Timed
    start: float
    stall: float
    exchange: float
    brought: float
    prefetched: int
    crossing: int
    split: str

    @property
    def slowed(self) -> float:
        """How much longer it takes than alone."""
        return self.own.cycles - self.alone.cycles

    @property
    def end(self) -> float:
        return self.start + self.own.cycles


def read_schedule(root: ir.Operation) -> tuple[Step, ...]:
    """The steps of all blocks under an op, in their order."""
    return tuple(_Reader().steps(root))


class _Reader:
    def __init__(self) -> None:
        self.numbers: dict[ir.Value, int] = {}

    def number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def steps(self, root: ir.Operation) -> list[Step]:
        found: list[Step] = []

        def visit(view: ir.Operation) -> ir.WalkResult:
            op = view.operation
            match op.name:
                case "mxu.kernel":
                    inputs = tuple(self.number(v) for v in op.operands)
                    found.append(Launch(read_kernel(op), inputs, self.number(op.results[0])))
                    return ir.WalkResult.SKIP
                case "mxu.bitcast":
                    self.numbers[op.results[0]] = self.number(op.operands[0])
                case "mxu.prefetch_start":
                    size = mxu.stored_bytes(tensor_type(op.operands[0].type))
                    shared = bool(mxu.integer(op.attributes["shared"]))
                    space = ir.StringAttr(op.attributes["space"]).value
                    found.append(Start(self.number(op.results[0]), size, shared, space))
                case "mxu.prefetch_wait":
                    self.numbers[op.results[0]] = self.number(op.operands[0])
                    found.append(Wait(self.number(op.operands[0])))
            return ir.WalkResult.ADVANCE

        root.walk(visit, ir.WalkOrder.PRE_ORDER)
        return found


@record(frozen=False)
class _Clock:
    """now, and the transfers on their way: (value, cycles of HBM left), the first one first."""

    now: float = 0.0
    queue: list[tuple[int, float]] = field(default_factory=list)

    def left(self) -> float:
        return sum(work for _, work in self.queue)

    def move(self, work: float) -> None:
        """So much of the work in the queue is done."""
        while self.queue and work > 0:
            value, first = self.queue[0]
            if first > work:
                self.queue[0] = (value, first - work)
                return
            work -= first
            self.queue.pop(0)


def time_schedule(steps: Sequence[Step], chip: Chip) -> list[KernelTime]:
    """The times of all kernels, one after the other."""
    clock = _Clock()
    times: list[KernelTime] = []
    made: dict[int, list[np.ndarray]] = {}
    stall = 0.0
    started: dict[int, int] = {}
    for step in steps:
        if isinstance(step, Start):
            started[step.value] = step.bytes
            clock.queue.append((step.value, prefetch_cycles(step, chip)))
        elif isinstance(step, Wait):
            waited = _until(clock, step.value)
            clock.now += waited
            stall += waited
        else:
            crossing, cycles = _exchange(step, made, chip)
            clock.now += cycles
            clock.move(cycles)
            before = clock.left()
            alone = timed.time_program(step.program, chip)
            own = timed.time_program(step.program, chip, background=before) if before else alone
            clock.move(before - own.left)
            start = clock.now
            clock.now += own.cycles
            brought = sum(started.get(number, 0) for number in set(step.inputs))
            split = exchange.split_name(made[step.output]) if chip.cores > 1 else ""
            times.append(
                KernelTime(step, alone, own, start, stall, cycles, before - own.left, brought, crossing, split)
            )
            stall = 0.0
    return times


def prefetch_cycles(step: Start, chip: Chip) -> float:
    """Of the HBM of a core: its share of an array, or its share of what all cores have together, or all of it."""
    cores = chip.cores if step.shared or step.space == "cmem" else 1
    return step.bytes / cores / chip.hbm_bytes_per_cycle


def _until(clock: _Clock, value: int) -> float:
    """Cycles until a value is there, with nothing else on the HBM; it is taken from the queue."""
    waited = 0.0
    while any(number == value for number, _ in clock.queue):
        waited += clock.queue.pop(0)[1]
    return waited


def _exchange(step: Launch, made: dict[int, list[np.ndarray]], chip: Chip) -> tuple[int, float]:
    """Bytes that cross between cores before a kernel, and the cycles that this takes.

    Only what lies in the VMEM of one core has to be sent; HBM and CMEM are the same for both.
    """
    if chip.cores == 1:
        return 0, 0.0
    crossing, sent = 0, 0
    for number, buffer in zip(step.inputs, step.program.inputs, strict=True):
        if number in made and buffer.space != "smem":
            read = exchange.touched(step.program, buffer, chip.cores)
            own = exchange.crossing_bytes(made[number], read, buffer)
            crossing += own
            sent += own if buffer.space == "vmem" else 0
    made[step.output] = exchange.touched(step.program, step.program.outputs[0], chip.cores)
    # Both directions at once.
    return crossing, sent / chip.cores / chip.core_bytes_per_second * chip.clock_hz
