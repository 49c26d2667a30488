"""What the GPU target makes of a program: PTX per kernel, and which of them run on which buffers. Plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from stablehlo_py.records import field, record
from stablehlo_py.runtime import program as runtime

Dim3 = tuple[int, int, int]


@record
class PlanBuffer:
    """A buffer of a kernel function: an `argument` in order, a `temporary`, or a `constant` with data."""

    name: str
    kind: str
    bytes: int
    data: np.ndarray | None = field(default=None, compare=False)


@record
class Launch:
    """One kernel over a grid of blocks; args are names of buffers."""

    kernel: str
    grid: Dim3
    block: Dim3
    args: tuple[str, ...]

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, d)) for d in (self.grid, self.block))
        return f"{self.kernel}<<<{grid}, {block}>>>({', '.join(self.args)})"


@record
class Plan:
    """One kernel function of the Program: its buffers (arguments first) and its launches in order."""

    buffers: tuple[PlanBuffer, ...]
    launches: tuple[Launch, ...]

    def bound(self, prefix: str, arguments: Sequence[str]) -> list[Launch]:
        """The launches on the buffers of a program: arguments as given, the rest under `prefix`."""
        given = iter(arguments)
        names = {b.name: next(given) if b.kind == "argument" else f"{prefix}.{b.name}" for b in self.buffers}
        return [Launch(s.kernel, s.grid, s.block, tuple(names[a] for a in s.args)) for s in self.launches]


@record
class GpuProgram:
    """kernels: name to PTX. plans: what a launch of the Program does, by the name of its kernel function."""

    chip: str
    kernels: dict[str, str]
    plans: dict[str, Plan]
    program: runtime.Program

    @property
    def launches(self) -> list[Launch]:
        """All launches in order, those in loops and branches once; buffers are named as in the Program's listing."""
        found: list[Launch] = []
        for command in _flat(self.program.commands):
            if isinstance(command, runtime.Launch):
                name = self.program.kernels[command.kernel].name
                found += self.plans[name].bound(name, [self._name(n) for n in command.buffers])
        return found

    def _name(self, buffer: int) -> str:
        """a0, c0 and r0 for arguments, constants and results, t7 for temporaries."""
        found = self.program.buffers[buffer]
        return f"t{buffer}" if found.kind == "temporary" else f"{found.kind[0]}{found.index}"

    def as_text(self) -> str:
        """The Program and its launches as comments, then the PTX of all kernels as one module, which ptxas takes."""
        plan = [f"// {line}" for line in self.program.as_text().splitlines()]
        plan += [f"// launch {launch}" for launch in self.launches]
        return "\n".join([*plan, _one_module(list(self.kernels.values()))]) + "\n"


_HEADER = re.compile(r".*?\.address_size 64\n", re.S)
_SHARED_PARTS = re.compile(r"^\.global [^\n]*;\n|^\.func .*?(?:^;\n|^}\n)", re.S | re.M)


def _one_module(texts: Sequence[str]) -> str:
    """PTX modules as one: a single header, and what several of them bring along (tables, device functions) once."""
    seen: set[str] = set()

    def once(found: re.Match[str]) -> str:
        new = found[0] not in seen
        seen.add(found[0])
        return found[0] if new else ""

    parts = [_SHARED_PARTS.sub(once, text) for text in texts]
    return "\n".join([*parts[:1], *(_HEADER.sub("", part, count=1) for part in parts[1:])])


def _flat(commands: Sequence[runtime.Command]) -> Iterator[runtime.Command]:
    for command in commands:
        yield command
        if isinstance(command, runtime.While):
            yield from _flat(command.condition)
            yield from _flat(command.body)
        elif isinstance(command, runtime.Case):
            for branch in command.branches:
                yield from _flat(branch)
