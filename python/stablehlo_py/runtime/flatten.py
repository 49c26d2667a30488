"""A Program as the int64 words that the native executor runs (native/runtime/executor.h has the encoding).

Part 0 of a launch in parts has the scratch that the plan gives it, part p the p-th piece behind the planned arena. The
pieces serve all launches, as one after the other runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stablehlo_py.records import record
from stablehlo_py.runtime.parts import awake_parts_of, chunk_of, parts_of, parts_of_bytes
from stablehlo_py.runtime.plan import Plan
from stablehlo_py.runtime.program import Case, Command, Copy, Fill, Host, Launch, Program, View, While, aligned, walk

LAUNCH, COPY, FILL, WHILE, CASE, HOST, SPLIT, VIEW = range(8)
ORIGINS = {"argument": 0, "result": 1, "constant": 2, "temporary": 3, "view": 4}


@record(eq=False)
class FlatProgram:
    """Code, the origin (kind, number or offset) of each slot, and the bytes of the arena with the scratch of parts.

    Host commands are numbered in the order of `walk`.
    """

    code: np.ndarray
    origins: np.ndarray
    arena_bytes: int


def flatten(program: Program, plan: Plan, threads: int = 1) -> FlatProgram:
    """The words of a program whose launches run in at most `threads` parts."""
    flat = _Flat(program, plan, threads)
    words = flat.block(program.commands)
    if "view" in {buffer.kind for buffer in program.buffers}:
        # a view comes before what reads it: which slots are its own is known when all have been given
        flat = _Flat(program, plan, threads, flat.slots_of_views())
        words = flat.block(program.commands)
    code = np.array(words, np.int64)
    return FlatProgram(code, np.array(flat.origins, np.int64).reshape(-1, 2), arena_bytes(program, plan, threads))


def arena_bytes(program: Program, plan: Plan, threads: int) -> int:
    """The planned arena, and behind it a piece of scratch for each part but the first."""
    parts = max(
        (awake_parts_of(program, c, threads) for c in walk(program.commands) if isinstance(c, Launch)), default=1
    )
    return aligned(plan.arena_bytes) + (parts - 1) * _piece(program, threads)


def _piece(program: Program, threads: int) -> int:
    """The bytes of scratch that one part of any launch needs."""
    launches = (c for c in walk(program.commands) if isinstance(c, Launch) and awake_parts_of(program, c, threads) > 1)
    return max((sum(aligned(program.buffers[b].bytes) for b in _scratch(program, c)) for c in launches), default=0)


def _scratch(program: Program, launch: Launch) -> tuple[int, ...]:
    return launch.buffers[len(launch.buffers) - program.kernels[launch.kernel].scratch :]


class _Flat:
    def __init__(
        self, program: Program, plan: Plan, threads: int, views: Mapping[int, Sequence[int]] | None = None
    ) -> None:
        self.program, self.plan, self.threads = program, plan, threads
        self.views = views or {}
        self.behind, self.piece = aligned(plan.arena_bytes), _piece(program, threads)
        self.origins: list[tuple[int, int]] = []
        self.slots: dict[tuple[int, ...], int] = {}  # equal runs of buffers share their slots
        self.hosts = 0

    def slot(self, *buffers: int) -> int:
        """Where a run of pointers to these buffers starts."""
        if buffers not in self.slots:
            self.slots[buffers] = len(self.origins)
            self.origins += map(self.origin, buffers)
        return self.slots[buffers]

    def part_slots(self, launch: Launch, parts: int) -> tuple[int, int]:
        """Where the pointers of part 0 start, and how far it is from part to part: 0 when all have the same."""
        scratch = _scratch(self.program, launch)
        if not scratch:
            return self.slot(*launch.buffers), 0
        start, shared = len(self.origins), launch.buffers[: -len(scratch)]
        self.origins += map(self.origin, launch.buffers)
        for part in range(1, parts):
            self.origins += map(self.origin, shared)
            offset = self.behind + (part - 1) * self.piece
            for buffer in scratch:
                self.origins.append((ORIGINS["temporary"], offset))
                offset += aligned(self.program.buffers[buffer].bytes)
        return start, len(launch.buffers)

    def origin(self, buffer: int) -> tuple[int, int]:
        found = self.program.buffers[buffer]
        if found.kind == "view":
            return ORIGINS[found.kind], buffer
        return ORIGINS[found.kind], self.plan.offsets[buffer] if found.kind == "temporary" else found.index

    def slots_of_views(self) -> dict[int, list[int]]:
        """The slots of each view, by its buffer."""
        found: dict[int, list[int]] = {}
        for slot, (kind, number) in enumerate(self.origins):
            if kind == ORIGINS["view"]:
                found.setdefault(number, []).append(slot)
        return found

    def block(self, commands: tuple[Command, ...]) -> list[int]:
        code: list[int] = []
        for command in commands:
            match command:
                case Launch(kernel, buffers, begin, end):
                    parts = awake_parts_of(self.program, command, self.threads)
                    if parts == 1:
                        code += (LAUNCH, kernel, self.slot(*buffers), begin, end)
                    else:
                        asleep = parts_of(self.program, command, self.threads)
                        chunk = chunk_of(self.program, command, parts)
                        code += (SPLIT, kernel, *self.part_slots(command, parts), begin, end, parts, asleep, chunk)
                case Copy(source, target, count, source_offset, target_offset):
                    code += (COPY, self.slot(source), self.slot(target), count, source_offset, target_offset)
                    code += parts_of_bytes(count, self.threads)
                case Fill(target, count, value):
                    code += (FILL, self.slot(target), count, value, *parts_of_bytes(count, self.threads))
                case View(target, source, offset, indices):
                    own = self.views.get(target, ())
                    code += (VIEW, self.slot(source), offset, len(indices), len(own))
                    for index in indices:
                        width = -index.width if index.signed else index.width
                        code += (self.slot(index.buffer), width, index.limit, index.stride)
                    code += own
                case Host(_, inputs, outputs):
                    code += (HOST, self.hosts, self.slot(*inputs, *outputs))
                    self.hosts += 1
                case While(condition, predicate, body):
                    inner = [self.block(condition), self.block(body)]
                    code += (WHILE, self.slot(predicate), *map(len, inner), *inner[0], *inner[1])
                case Case(index, branches):
                    inner = [self.block(branch) for branch in branches]
                    code += (CASE, self.slot(index), len(inner), *map(len, inner))
                    for branch in inner:
                        code += branch
        return code
