"""Memory planning: when each buffer is live, where each temporary stands in the arena, and a check of both."""

from __future__ import annotations

import bisect
from collections import Counter

import numpy as np

from stablehlo_py.records import field, record
from stablehlo_py.runtime.program import (
    Case,
    Command,
    Program,
    View,
    While,
    aligned,
    check_program,
    reads,
    sources,
    writes,
)


class PlanError(Exception):
    """A plan or a program that would compute garbage: a fault of whoever made it, never of a user's input."""


@record
class Liveness:
    """first and last position of each buffer, both inclusive and -1 when it is unused; `exposed` are read before written.

    Positions number the commands, outer before inner; While has one more at its end. `defined` are surely written.
    """

    first: tuple[int, ...]
    last: tuple[int, ...]
    exposed: frozenset[int]
    defined: frozenset[int]

    def used(self, buffer: int) -> bool:
        return self.first[buffer] >= 0


@record
class Plan:
    """The arena: its size and the offset of each temporary (-1 for other buffers and unused ones)."""

    liveness: Liveness
    offsets: tuple[int, ...]
    arena_bytes: int
    lower_bound: int = 0  # the most bytes that are live at once: no plan can be smaller


@record(frozen=False)
class _Block:
    """What a list of commands does to buffers: reads before any sure write, sure writes, and all accesses counted."""

    exposed: set[int] = field(default_factory=set)
    defined: set[int] = field(default_factory=set)
    count: Counter[int] = field(default_factory=Counter)

    def read(self, buffers: tuple[int, ...]) -> None:
        self.exposed.update(buffer for buffer in buffers if buffer not in self.defined)
        self.count.update(buffers)

    def write(self, buffers: tuple[int, ...]) -> None:
        self.defined.update(buffers)
        self.count.update(buffers)

    def follow(self, inner: _Block, surely: bool) -> None:
        """Put a block behind this one; `surely` when it runs at least once."""
        self.exposed |= inner.exposed - self.defined
        self.count.update(inner.count)
        if surely:
            self.defined |= inner.defined


class _Walk:
    """Numbers the commands and stretches live ranges over loops."""

    def __init__(self, program: Program) -> None:
        self.program, self.sources = program, sources(program)
        self.first, self.last = [-1] * len(program.buffers), [-1] * len(program.buffers)
        self.position = 0
        self.loops: list[tuple[int, int, _Block]] = []

    def touch(self, buffers: tuple[int, ...]) -> None:
        for buffer in buffers:
            if self.first[buffer] < 0:
                self.first[buffer] = self.position
            self.last[buffer] = self.position

    def run(self, commands: tuple[Command, ...]) -> _Block:
        block = _Block()
        for command in commands:
            if isinstance(command, While):
                self.loop(command, block)
                continue
            read, written = reads(self.program, command), writes(self.program, command)
            if isinstance(command, View):
                read += tuple(b for b in (command.source,) if self.program.buffers[b].kind == "view")
            else:
                # what is written into a part leaves the rest: the whole is used
                read += tuple(b for buffer in read + written for b in self.sources.get(buffer, ()))
            self.touch(read + written)
            block.read(read)
            block.write(written)
            self.position += 1
            if isinstance(command, Case):
                branches = [self.run(branch) for branch in command.branches]
                defined = set.intersection(*(branch.defined for branch in branches))
                for branch in branches:
                    block.follow(branch, surely=False)
                block.defined |= defined
        return block

    def loop(self, command: While, block: _Block) -> None:
        begin = self.position
        self.position += 1
        once = self.run(command.condition)
        predicate = (command.predicate, *self.sources.get(command.predicate, ()))
        self.touch(predicate)
        once.read(predicate)
        sure = set(once.defined)
        once.follow(self.run(command.body), surely=True)
        self.loops.append((begin, self.position, once))
        self.position += 1
        # The body may never run, so only what the condition writes is sure afterwards.
        block.follow(_Block(once.exposed, sure, once.count), surely=True)


def analyse_liveness(program: Program) -> Liveness:
    """Live ranges over the command tree.

    A buffer lives from its first to its last access. One that a loop uses lives over the whole loop, unless the loop
    alone uses it and every iteration writes it before reading it.
    """
    walk = _Walk(program)
    whole = walk.run(program.commands)
    for begin, end, once in walk.loops:  # inner loops come before the ones around them
        for buffer, count in once.count.items():
            if buffer in once.exposed or count < whole.count[buffer]:
                walk.first[buffer] = min(walk.first[buffer], begin)
                walk.last[buffer] = max(walk.last[buffer], end)
    results = {buffer.id for buffer in program.buffers if buffer.kind == "result"}
    for buffer in results:
        walk.last[buffer] = walk.position if walk.first[buffer] >= 0 else -1
    return Liveness(tuple(walk.first), tuple(walk.last), frozenset(whole.exposed), frozenset(whole.defined))


def plan_memory(program: Program) -> Plan:
    """Place the temporaries: the largest first, each into the smallest gap that is free over its whole live range."""
    liveness = analyse_liveness(program)
    offsets = [-1] * len(program.buffers)
    live = [buffer for buffer in program.buffers if buffer.kind == "temporary" and liveness.used(buffer.id)]
    live.sort(key=lambda buffer: (-buffer.bytes, liveness.first[buffer.id], buffer.id))
    # Placed buffers in the order of their offsets, as columns: first, last, start, end.
    placed, count, arena = np.zeros((4, max(len(live), 1)), np.int64), 0, 0
    for buffer in live:
        first, last = liveness.first[buffer.id], liveness.last[buffer.id]
        size = aligned(max(buffer.bytes, 1))
        firsts, lasts, starts, ends = placed[:, :count]
        both = np.flatnonzero((firsts <= last) & (lasts >= first))
        start = _best_fit(starts[both], ends[both], size)
        at = int(np.searchsorted(starts, start))
        placed[:, at + 1 : count + 1] = placed[:, at:count]
        placed[:, at] = first, last, start, start + size
        count += 1
        offsets[buffer.id] = start
        arena = max(arena, start + size)
    return Plan(liveness, tuple(offsets), arena, _most_live(placed[:, :count]))


def _best_fit(starts: np.ndarray, ends: np.ndarray, size: int) -> int:
    """Where `size` bytes fit tightest between pieces sorted by start, or behind them all."""
    if not len(starts):
        return 0
    tops = np.maximum.accumulate(ends)
    lows = np.concatenate(([0], tops))
    gaps = starts - lows[:-1]
    fitting = np.flatnonzero(gaps >= size)
    if not len(fitting):
        return int(tops[-1])
    return int(lows[fitting[np.argmin(gaps[fitting])]])


def _most_live(placed: np.ndarray) -> int:
    """The largest sum of sizes over any position."""
    firsts, lasts, starts, ends = placed
    if not firsts.size:
        return 0
    change = np.zeros(int(lasts.max()) + 2, np.int64)
    np.add.at(change, firsts, ends - starts)
    np.add.at(change, lasts + 1, starts - ends)
    return int(np.cumsum(change).max())


def check_plan(program: Program, plan: Plan) -> None:
    """Raise unless no two live temporaries overlap, every read has a writer before it and every result is written."""
    check_program(program)
    liveness = analyse_liveness(program)
    for buffer in program.buffers:
        if buffer.id in liveness.exposed and buffer.kind in ("temporary", "result", "view") and buffer.bytes:
            raise PlanError(f"{buffer.kind} {buffer.id} is read before anything writes it")
        if buffer.kind == "result" and buffer.bytes and buffer.id not in liveness.defined:
            raise PlanError(f"result {buffer.index} is not written on every path")
        if buffer.kind != "temporary" or not liveness.used(buffer.id):
            continue
        offset = plan.offsets[buffer.id]
        if offset < 0 or offset % buffer.alignment or offset + buffer.bytes > plan.arena_bytes:
            raise PlanError(f"temporary {buffer.id} of {buffer.bytes} bytes stands at {offset} of {plan.arena_bytes}")
    _check_overlap(program, plan, liveness)


def _check_overlap(program: Program, plan: Plan, liveness: Liveness) -> None:
    """Sweep over positions; the live pieces, sorted by offset, never overlap, so neighbours are enough to look at."""
    pieces = [b for b in program.buffers if b.kind == "temporary" and b.bytes and liveness.used(b.id)]
    starting = sorted(pieces, key=lambda b: liveness.first[b.id])
    ending = sorted(pieces, key=lambda b: liveness.last[b.id])
    live: list[tuple[int, int, int]] = []  # offset, end, id
    gone = 0
    for buffer in starting:
        while liveness.last[ending[gone].id] < liveness.first[buffer.id]:
            other, gone = ending[gone], gone + 1
            offset = plan.offsets[other.id]
            del live[bisect.bisect_left(live, (offset, offset + other.bytes, other.id))]
        offset = plan.offsets[buffer.id]
        piece = (offset, offset + buffer.bytes, buffer.id)
        at = bisect.bisect_left(live, piece)
        for neighbour in live[max(at - 1, 0) : at + 1]:
            if neighbour[0] < piece[1] and piece[0] < neighbour[1]:
                raise PlanError(f"temporaries {neighbour[2]} and {buffer.id} are live at once and overlap")
        live.insert(at, piece)
