"""The report of a program: what each kernel costs on the chip and where its time goes, as plain data.

Kernels run one after the other; a kernel in a loop is counted once. The host's time is not known and not in any sum.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.records import record
from stablehlo_py.simulator import timed
from stablehlo_py.simulator.program import Buffer, Loop, Matmul, Program
from stablehlo_py.simulator.schedule import KernelTime

LONGEST_TIMELINE = 2000  # commands of one kernel that a timeline shows


@record
class BufferReport:
    """A buffer in VMEM: bytes of one copy."""

    name: str
    shape: tuple[int, ...]
    element: str
    bytes: int
    copies: int
    offset: int


@record
class SpanReport:
    """One command: cycles from the start of its kernel's work."""

    unit: str
    label: str
    start: float
    end: float


@record
class ArrayReport:
    """An array in fast memory while a kernel runs: bytes that a core holds of it; brought: from HBM, else left by a kernel."""

    name: str
    space: str
    offset: int
    bytes: int
    brought: bool


@record
class KernelReport:
    """One kernel. shape: b, m, n, k, without a product k = 0. macs: of the product, and with padding.

    cycles and seconds are those of the kernel alone; slowed: how much longer it takes for the prefetches behind it, stall:
    how long it waits before for its own, exchange: how long cores send each other what it reads of the other's (`crossing`
    bytes). start: in the program. bound: the busiest resource. prefetch_bytes: what was brought to fast memory for it.
    """

    label: str
    shape: tuple[int, int, int, int]
    element: str
    cycles: float
    seconds: float
    launch_cycles: float
    utilisation: float
    macs: int
    padded_macs: int
    array_bytes: int
    padded_bytes: int
    hbm_bytes: float
    prefetch_bytes: int
    vmem_peak: int
    resident_bytes: int
    bound: str
    busy: dict[str, float]
    buffers: tuple[BufferReport, ...]
    spans: tuple[SpanReport, ...]
    whole_timeline: bool
    start_seconds: float
    stall_seconds: float
    slowed_seconds: float
    exchange_seconds: float
    crossing_bytes: int
    split: str
    arrays: tuple[ArrayReport, ...]

    @property
    def end_seconds(self) -> float:
        return self.start_seconds + self.seconds + self.slowed_seconds

    @property
    def padding_waste(self) -> float:
        """Share of the multiplications that are with padding."""
        return 1 - self.macs / self.padded_macs if self.padded_macs else 0.0

    @property
    def intensity(self) -> float:
        """Operations for each byte of HBM, what was brought before the kernel included; infinite where there are none."""
        moved = self.hbm_bytes + self.prefetch_bytes
        return 2 * self.macs / moved if moved else math.inf


@record
class WhatIf:
    """The same program on another chip."""

    chip: str
    cycles: float
    seconds: float
    utilisation: float


@record
class Report:
    """kernels in the order of the program; host: how often each op runs there; notes: in words."""

    chip: str
    peak_flops: float
    hbm_bytes_per_second: float
    vmem_limit: int
    kernels: tuple[KernelReport, ...]
    host: dict[str, int]
    notes: tuple[str, ...]
    what_if: tuple[WhatIf, ...] = ()

    @property
    def cycles(self) -> float:
        return sum(kernel.cycles for kernel in self.kernels)

    @property
    def prefetch_seconds(self) -> float:
        """Time of the HBM for what is brought to fast memory before the kernels that need it."""
        return sum(kernel.prefetch_bytes for kernel in self.kernels) / self.hbm_bytes_per_second

    @property
    def exposed_seconds(self) -> float:
        """What of it the kernels do not hide: they wait for it, or are slowed down by it."""
        return sum(kernel.stall_seconds + kernel.slowed_seconds for kernel in self.kernels)

    @property
    def exchange_seconds(self) -> float:
        """In which cores send each other parts of arrays."""
        return sum(kernel.exchange_seconds for kernel in self.kernels)

    @property
    def crossing_bytes(self) -> int:
        """What one core makes and another one reads."""
        return sum(kernel.crossing_bytes for kernel in self.kernels)

    @property
    def seconds(self) -> float:
        """Of all kernels with what they wait for."""
        return max((kernel.end_seconds for kernel in self.kernels), default=0.0)

    @property
    def utilisation(self) -> float:
        """Of the matrix units' peak, over all kernels."""
        flops = sum(2 * kernel.macs for kernel in self.kernels)
        return flops / (self.seconds * self.peak_flops) if self.kernels else 0.0

    def as_json(self) -> dict[str, Any]:  # Any: JSON
        """Plain lists and dicts, with the derived numbers; without timelines."""
        data = dataclasses.asdict(self)
        for kernel, row in zip(self.kernels, data["kernels"], strict=True):
            del row["spans"], row["whole_timeline"]
            intensity = kernel.intensity if kernel.intensity < math.inf else None
            row |= {"padding_waste": kernel.padding_waste, "intensity": intensity}
        totals = {"cycles": self.cycles, "seconds": self.seconds, "utilisation": self.utilisation}
        totals |= {"prefetch_seconds": self.prefetch_seconds, "exposed_seconds": self.exposed_seconds}
        totals |= {"exchange_seconds": self.exchange_seconds, "crossing_bytes": self.crossing_bytes}
        return {"model": "a model of a TPU: nothing here ran on one", **totals, **data}

    def as_text(self) -> str:
        """A table for a terminal."""
        lines = [
            f"{self.chip}: {len(self.kernels)} kernels, {self.cycles:,.0f} cycles, {self.seconds * 1e6:,.1f} us,"
            f" {100 * self.utilisation:.1f}% of the matrix units' peak (a model: nothing ran on a TPU)",
            f"{'kernel':<12}{'b x m x n x k':<22}{'us':>8}{'wait us':>9}{'MXU':>8}{'padding':>9}{'HBM MB':>8}{'VMEM KB':>9}"
            f"{'  split':<9}  bound by",
        ]
        for k in self.kernels:
            shape = "x".join(map(str, k.shape))
            lines.append(
                f"{k.label:<12}{shape:<22}{k.seconds * 1e6:>8.2f}{(k.stall_seconds + k.slowed_seconds) * 1e6:>9.2f}"
                f"{100 * k.utilisation:>7.1f}%{100 * k.padding_waste:>8.1f}%{k.hbm_bytes / 1e6:>8.2f}"
                f"{k.vmem_peak / 1e3:>9.0f}  {k.split or '-':<7}  {k.bound}"
            )
        lines.append(
            f"brought to fast memory behind kernels: {self.prefetch_seconds * 1e6:.1f} us of the HBM,"
            f" {self.exposed_seconds * 1e6:.1f} us of them not hidden"
        )
        if any(k.split for k in self.kernels):
            lines.append(
                f"made by one core and read by another: {self.crossing_bytes / 1e6:.2f} MB,"
                f" {self.exchange_seconds * 1e6:.1f} us to send from VMEM to VMEM"
            )
        if self.host:
            ops = ", ".join(f"{name.removeprefix('stablehlo.')} x{count}" for name, count in sorted(self.host.items()))
            lines.append(f"on the host: {ops}")
        lines += [f"note: {note}" for note in self.notes]
        lines += [f"on {w.chip}: {w.seconds * 1e6:,.1f} us, {100 * w.utilisation:.1f}%" for w in self.what_if]
        return "\n".join(lines)

    def chrome_trace(self) -> dict[str, Any]:  # Any: JSON
        """Events for chrome://tracing and ui.perfetto.dev; a microsecond there is a microsecond here."""
        events: list[dict[str, Any]] = []
        names: dict[str, int] = {}
        for kernel in self.kernels:
            begin = kernel.start_seconds * 1e6
            scale = kernel.seconds * 1e6 / kernel.cycles
            launch = kernel.launch_cycles
            for span in kernel.spans:
                thread = names.setdefault(span.unit, len(names) + 1)
                start, end = (begin + (launch / 2 + t) * scale for t in (span.start, span.end))
                events.append(
                    {
                        "name": span.label,
                        "cat": kernel.label,
                        "ph": "X",
                        "ts": start,
                        "dur": end - start,
                        "pid": 1,
                        "tid": thread,
                    }
                )
        for unit, thread in names.items():
            events.append({"name": "thread_name", "ph": "M", "pid": 1, "tid": thread, "args": {"name": unit}})
        return {"traceEvents": events, "displayTimeUnit": "ns"}


def kernel_report(time: KernelTime, arrays: tuple[ArrayReport, ...]) -> KernelReport:
    """What is to be said about one kernel; arrays: what is in fast memory meanwhile."""
    kernel, result = time.launch.program, time.alone
    machine = chip(kernel.chip)
    b, m, n = _three(kernel.outputs[0].logical)
    is_product = any(isinstance(node, Matmul) for node in kernel.nodes())
    k = math.prod(kernel.inputs[0].logical) // (b * m) if is_product else 0
    macs = b * m * n * k
    arguments = (*kernel.inputs, *kernel.outputs)
    drawn = time.own if time.own.whole else result
    shown = drawn.spans[:LONGEST_TIMELINE]
    element = kernel.inputs[0].element
    rate = machine.int8_rate if element.bits <= 8 else 1.0
    return KernelReport(
        label=kernel.label,
        shape=(b, m, n, k),
        element=element.name,
        cycles=result.cycles,
        seconds=result.seconds(machine),
        launch_cycles=machine.calibration.launch_seconds * machine.clock_hz,
        utilisation=macs / (machine.macs_per_cycle * machine.cores * rate * result.cycles),
        macs=macs,
        padded_macs=_padded_macs(kernel, machine),
        array_bytes=sum(math.prod(a.logical) * a.element.bits // 8 for a in arguments),
        padded_bytes=sum(a.bytes for a in arguments),
        hbm_bytes=result.hbm_bytes * machine.cores,
        prefetch_bytes=time.prefetched,
        vmem_peak=kernel.bytes_in("vmem"),
        resident_bytes=sum(a.bytes for a in arrays if a.space == "vmem"),
        bound=_bound(result.busy, result.cycles - machine.calibration.launch_seconds * machine.clock_hz),
        busy=result.busy,
        buffers=tuple(_buffer(a) for a in kernel.allocations),
        spans=tuple(SpanReport(_unit(s.command.unit), s.command.label, s.start, s.end) for s in shown),
        whole_timeline=drawn.whole and len(shown) == len(drawn.spans),
        start_seconds=time.start / machine.clock_hz,
        stall_seconds=time.stall / machine.clock_hz,
        slowed_seconds=time.slowed / machine.clock_hz,
        exchange_seconds=time.exchange / machine.clock_hz,
        crossing_bytes=time.crossing,
        split=time.split,
        arrays=arrays,
    )


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """A shape as batch, rows and columns."""
    rows, columns = shape[-2:]
    return math.prod(shape[:-2]), rows, columns


def _unit(number: int) -> str:
    return timed.events.UNITS[number]


def _buffer(buffer: Buffer) -> BufferReport:
    return BufferReport(buffer.name, buffer.shape, buffer.element.name, buffer.bytes, buffer.copies, buffer.offset)


def _bound(busy: dict[str, float], work_cycles: float) -> str:
    """The resource that is busy longest; `latency` where none is busy for half of the time."""
    work = dict(busy)
    work["HBM"] = sum(work.pop(_unit(unit)) for unit in timed.events.HBM_UNITS)
    first = max(work, key=lambda unit: work[unit])
    return first if work[first] >= 0.5 * work_cycles else "latency"


def _padded_macs(kernel: Program, machine: Chip) -> int:
    """Multiplications of the whole kernel on all cores, those with padding among them."""

    def count(nodes: Sequence[Any], trips: int) -> int:  # Any: nodes of all kinds
        total = 0
        for node in nodes:
            if isinstance(node, Matmul):
                total += trips * node.lhs.shape[0] * math.prod(node.tile)
            elif isinstance(node, Loop):
                total += count(node.body, trips * node.trips)
            elif hasattr(node, "body"):
                total += count(node.body, trips * machine.cores)
        return total

    return count(kernel.body, 1)
