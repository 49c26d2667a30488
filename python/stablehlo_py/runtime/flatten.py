"""A Program as the int64 words that the native executor runs (native/runtime/executor.h has the encoding)."""

from __future__ import annotations

import numpy as np

from stablehlo_py.runtime.plan import Plan
from stablehlo_py.runtime.program import Case, Command, Copy, Fill, Host, Launch, Program, While

LAUNCH, COPY, FILL, WHILE, CASE, HOST = range(6)
ORIGINS = {"argument": 0, "result": 1, "constant": 2, "temporary": 3}


def flatten(program: Program, plan: Plan) -> tuple[np.ndarray, np.ndarray]:
    """Code, and the origin (kind, number or offset) of each slot; host commands are numbered in the order of `walk`."""
    flat = _Flat(program, plan)
    code = flat.block(program.commands)
    return np.array(code, np.int64), np.array(flat.origins, np.int64).reshape(-1, 2)


class _Flat:
    def __init__(self, program: Program, plan: Plan) -> None:
        self.program, self.plan = program, plan
        self.origins: list[tuple[int, int]] = []
        self.slots: dict[tuple[int, ...], int] = {}  # equal runs of buffers share their slots
        self.hosts = 0

    def slot(self, *buffers: int) -> int:
        """Where a run of pointers to these buffers starts."""
        if buffers not in self.slots:
            self.slots[buffers] = len(self.origins)
            self.origins += map(self.origin, buffers)
        return self.slots[buffers]

    def origin(self, buffer: int) -> tuple[int, int]:
        found = self.program.buffers[buffer]
        return ORIGINS[found.kind], self.plan.offsets[buffer] if found.kind == "temporary" else found.index

    def block(self, commands: tuple[Command, ...]) -> list[int]:
        code: list[int] = []
        for command in commands:
            match command:
                case Launch(kernel, buffers, begin, end):
                    code += (LAUNCH, kernel, self.slot(*buffers), begin, end)
                case Copy(source, target, count, source_offset, target_offset):
                    code += (COPY, self.slot(source), self.slot(target), count, source_offset, target_offset)
                case Fill(target, count, value):
                    code += (FILL, self.slot(target), count, value)
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
