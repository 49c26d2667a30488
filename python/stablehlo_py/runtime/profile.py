"""Where the time of a program goes: its kernels one by one, timed by the executor that runs command by command."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from stablehlo_py.records import record
from stablehlo_py.runtime.executor import KERNEL, Executor, PythonExecutor
from stablehlo_py.runtime.parts import awake_parts_of
from stablehlo_py.runtime.program import Command, Launch, walk


@record
class KernelTime:
    """One kernel over one call of the program: how often it ran, its seconds in all, the bytes of its buffers.

    parts: how many threads share it where the program is not profiled, if they are awake.
    """

    name: str
    calls: int
    seconds: float
    bytes: int
    parts: int


@record
class Event:
    """One run of a kernel: when it began, in seconds from the start of the program, and how long it took."""

    name: str
    start: float
    seconds: float


@record
class Profile:
    """kernels: slowest first. events: every run in order. seconds: of one call, on one thread."""

    kernels: tuple[KernelTime, ...]
    events: tuple[Event, ...]
    seconds: float

    def chrome_trace(self) -> dict[str, object]:
        """The events as chrome://tracing and Perfetto read them; times in microseconds."""
        rows = [
            {"name": e.name, "ph": "X", "ts": e.start * 1e6, "dur": e.seconds * 1e6, "pid": 0, "tid": 0}
            for e in self.events
        ]
        return {"traceEvents": rows, "displayTimeUnit": "ns"}


def profile(
    executor: Executor, addresses: Sequence[int], arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]
) -> Profile:
    """Run a program once to warm up and once timed, each kernel by itself on the calling thread."""
    program = executor.program
    timed = _TimedExecutor(program, addresses, executor.host_calls, plan=executor.plan, owner=executor.owner, threads=1)
    timed.run(arguments, results)
    timed.events.clear()
    started = time.perf_counter()
    timed.began = started
    timed.run(arguments, results)
    seconds = time.perf_counter() - started
    sizes, parts = {}, dict[str, int]()
    for kernel in range(len(program.kernels)):
        sizes[program.kernels[kernel].name] = timed.bytes.get(kernel, 0)
    for launch in _launches(program.commands):
        name = program.kernels[launch.kernel].name
        parts[name] = max(parts.get(name, 1), awake_parts_of(program, launch, executor.threads))
    totals: dict[str, list[float]] = {}
    for event in timed.events:
        totals.setdefault(event.name, []).append(event.seconds)
    kernels = [KernelTime(name, len(runs), sum(runs), sizes[name], parts[name]) for name, runs in totals.items()]
    return Profile(tuple(sorted(kernels, key=lambda k: -k.seconds)), tuple(timed.events), seconds)


class _TimedExecutor(PythonExecutor):
    """Notes each launch."""

    def load(self, kernel_addresses: Sequence[int]) -> None:
        self.events: list[Event] = []
        self.bytes: dict[int, int] = {}
        self.began = 0.0
        self._kernels = [self._timed(i, KERNEL(address)) for i, address in enumerate(kernel_addresses)]
        for command in _launches(self.program.commands):
            kernel = self.program.kernels[command.kernel]
            used = command.buffers[: kernel.inputs + kernel.outputs]
            self.bytes[command.kernel] = sum(self.program.buffers[b].bytes for b in used)

    def _timed(self, number: int, kernel: Callable[[int, int, int], None]) -> Callable[[int, int, int], None]:
        name = self.program.kernels[number].name

        def call(buffers: int, begin: int, end: int) -> None:
            start = time.perf_counter()
            kernel(buffers, begin, end)
            self.events.append(Event(name, start - self.began, time.perf_counter() - start))

        return call


def _launches(commands: tuple[Command, ...]) -> list[Launch]:
    return [command for command in walk(commands) if isinstance(command, Launch)]
