"""What the GPU target makes of a program: PTX per kernel, buffers, and the launches in order. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Buffer:
    """Device memory by name: `argument` and `result` in the order of the signature, `temporary`, or `constant` with data."""

    name: str
    kind: str
    bytes: int
    data: np.ndarray | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}, {self.bytes} bytes"


@dataclass(frozen=True)
class Launch:
    """One kernel over a grid of blocks; args are names of buffers."""

    kernel: str
    grid: Dim3
    block: Dim3
    args: tuple[str, ...]

    def __str__(self) -> str:
        grid, block = ("x".join(map(str, d)) for d in (self.grid, self.block))
        return f"launch {self.kernel}<<<{grid}, {block}>>>({', '.join(self.args)})"


@dataclass(frozen=True)
class GpuProgram:
    """kernels: name to PTX. Launches run in order on one stream."""

    chip: str
    kernels: dict[str, str]
    buffers: tuple[Buffer, ...]
    launches: tuple[Launch, ...]

    def of_kind(self, kind: str) -> list[Buffer]:
        return [b for b in self.buffers if b.kind == kind]

    def as_text(self) -> str:
        """The plan as comments, then the PTX of every kernel."""
        plan = [f"// {line}" for line in (f"chip {self.chip}", *map(str, self.buffers), *map(str, self.launches))]
        return "\n".join([*plan, *(text.rstrip() for text in self.kernels.values())]) + "\n"
