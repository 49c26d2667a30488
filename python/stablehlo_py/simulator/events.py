"""The event simulation: commands on units, with shared bandwidth while they run.

Two things make a command slower than alone: transfers in both directions share the HBM, and a matrix unit and a transfer
that run at the same time share the ports of VMEM. So work is fluid: between two events all rates are constant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.records import record

MXU, VPU, XLU, EUP, DMA_IN, DMA_OUT, LOCAL_IN, LOCAL_OUT, PREFETCH = range(9)
UNITS = ("MXU", "VPU", "XLU", "EUP", "DMA in", "DMA out", "local in", "local out", "prefetch")
HBM_UNITS = (DMA_IN, DMA_OUT)  # of a kernel; PREFETCH is what runs behind it for later ones
# How far a unit looks for a command that can start: the compiler's schedule of vector code puts what is ready first;
# transfers and products stay in order.
LOOK_AHEAD = (1, 4, 4, 4, 1, 1, 1, 1, 1)


@record
class Command:
    """`work` cycles on `unit` as if alone, `delay` cycles after the commands in `after` (numbers) have ended."""

    unit: int
    work: float
    after: tuple[int, ...]
    label: str = ""
    bytes: int = 0
    delay: float = 0.0


@record
class Span:
    """When a command ran."""

    command: Command
    start: float
    end: float


def simulate(commands: Sequence[Command], overlap_rate: float = 1.0) -> list[Span]:
    """The spans of all commands; a command's `after` may name only earlier commands."""
    queues: list[list[int]] = [[] for _ in UNITS]
    for number, command in enumerate(commands):
        queues[command.unit].append(number)
    for queue in queues:
        queue.reverse()  # the next command is the last of the list
    running: dict[int, int] = {}  # unit -> command
    left: dict[int, float] = {}  # unit -> work that remains
    start = [0.0] * len(commands)
    end: list[float | None] = [None] * len(commands)
    now = 0.0
    while True:
        ready = _issue(commands, queues, running, left, start, end, now)
        if not running and ready == math.inf:
            break
        now = _advance(running, left, end, now, ready, overlap_rate)
    if any(queues):
        raise RuntimeError("the commands wait for each other")
    return [Span(c, start[i], end[i]) for i, c in enumerate(commands)]  # type: ignore[arg-type]


def _issue(
    commands: Sequence[Command],
    queues: list[list[int]],
    running: dict[int, int],
    left: dict[int, float],
    start: list[float],
    end: list[float | None],
    now: float,
) -> float:
    """Start on every idle unit its next command that can; when the next one can start."""
    next_ready = math.inf
    for unit, queue in enumerate(queues):
        if unit in running or not queue:
            continue
        for place in range(len(queue) - 1, max(-1, len(queue) - 1 - LOOK_AHEAD[unit]), -1):
            command = commands[queue[place]]
            ended = [end[before] for before in command.after]
            if None in ended:
                continue
            ready = max(ended, default=0.0) + command.delay  # type: ignore[type-var]
            if ready > now:
                next_ready = min(next_ready, ready)
                continue
            number = queue.pop(place)
            running[unit], left[unit], start[number] = number, command.work, now
            break
    return next_ready


def _advance(
    running: dict[int, int],
    left: dict[int, float],
    end: list[float | None],
    now: float,
    ready: float,
    overlap_rate: float,
) -> float:
    """Go on to the next end of a command, or to `ready`, when another can start."""
    sharing = (DMA_IN in running) + (DMA_OUT in running) + (PREFETCH in running)
    contended = overlap_rate if sharing and MXU in running else 1.0
    rates = {}
    for unit in running:
        rate = 1.0
        if unit == MXU:
            rate = contended
        elif unit in (*HBM_UNITS, PREFETCH):
            rate = contended / sharing
        rates[unit] = rate
    step = min((left[unit] / rates[unit] for unit in running), default=math.inf)
    now, step = (ready, ready - now) if ready - now < step else (now + step, step)
    for unit in list(running):
        left[unit] -= step * rates[unit]
        if left[unit] <= 1e-9 * (1.0 + now):
            end[running.pop(unit)] = now
    return now
