"""The event simulation: commands on units, each unit in order, with shared bandwidth while they run.

Two things make a command slower than alone: transfers in both directions share the HBM, and a matrix unit and a transfer
that run at the same time share the ports of VMEM. So work is fluid: between two events all rates are constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MXU, VPU, XLU, DMA_IN, DMA_OUT, DMA_CMEM = range(6)
UNITS = ("MXU", "VPU", "XLU", "DMA in", "DMA out", "DMA cmem")
HBM_UNITS = (DMA_IN, DMA_OUT)


@dataclass(frozen=True)
class Command:
    """`work` cycles on `unit` as if alone, after the commands in `after` (numbers) have ended."""

    unit: int
    work: float
    after: tuple[int, ...]
    label: str = ""
    bytes: int = 0


@dataclass(frozen=True)
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
    heads = [0] * len(UNITS)
    running: dict[int, int] = {}  # unit -> command
    left: dict[int, float] = {}  # unit -> work that remains
    start = [0.0] * len(commands)
    end: list[float | None] = [None] * len(commands)
    now = 0.0
    while True:
        _issue(commands, queues, heads, running, left, start, end, now)
        if not running:
            break
        now = _advance(running, left, end, now, overlap_rate)
    if any(e is None for e in end):
        raise RuntimeError("the commands wait for each other")
    return [Span(c, start[i], end[i]) for i, c in enumerate(commands)]  # type: ignore[arg-type]


def _issue(
    commands: Sequence[Command],
    queues: list[list[int]],
    heads: list[int],
    running: dict[int, int],
    left: dict[int, float],
    start: list[float],
    end: list[float | None],
    now: float,
) -> None:
    """Start on every idle unit its next command, where all that it waits for has ended."""
    for unit, queue in enumerate(queues):
        if unit in running or heads[unit] == len(queue):
            continue
        number = queue[heads[unit]]
        if all(end[before] is not None for before in commands[number].after):
            heads[unit] += 1
            running[unit], left[unit], start[number] = number, commands[number].work, now


def _advance(
    running: dict[int, int], left: dict[int, float], end: list[float | None], now: float, overlap_rate: float
) -> float:
    """Go on to the next end of a command."""
    sharing = (DMA_IN in running) + (DMA_OUT in running)
    contended = overlap_rate if sharing and MXU in running else 1.0
    rates = {}
    for unit in running:
        rate = 1.0
        if unit == MXU:
            rate = contended
        elif unit in HBM_UNITS:
            rate = contended / sharing
        rates[unit] = rate
    step = min(left[unit] / rates[unit] for unit in running)
    now += step
    for unit in list(running):
        left[unit] -= step * rates[unit]
        if left[unit] <= 1e-9 * (1.0 + now):
            end[running.pop(unit)] = now
    return now
