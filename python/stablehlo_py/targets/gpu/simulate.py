"""Run a GpuProgram without a GPU: the Program's commands on simulated device memory, every launch from its PTX."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.runtime import program as runtime
from stablehlo_py.simulator import ptx
from stablehlo_py.targets.gpu.program import GpuProgram, Plan


def simulate(compiled: GpuProgram, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results for the given arguments."""
    return _Device(compiled, arrays).run()


def simulate_plan(plan: Plan, kernels: dict[str, str], memory: ptx.Memory, arguments: Sequence[int]) -> None:
    """The launches of one kernel function on buffers at the given addresses."""
    given = iter(arguments)
    addresses: dict[str, int] = {}
    for buffer in plan.buffers:
        if buffer.kind == "argument":
            addresses[buffer.name] = next(given)
        elif buffer.data is not None:
            addresses[buffer.name] = memory.put(buffer.data)
        else:
            addresses[buffer.name] = memory.allocate(buffer.bytes)
    for launch in plan.launches:
        text = kernels[launch.kernel]
        ptx.run(text, launch.kernel, launch.grid, launch.block, [addresses[a] for a in launch.args], memory)


class _Device:
    def __init__(self, compiled: GpuProgram, arrays: Sequence[np.ndarray]) -> None:
        self.compiled, self.program = compiled, compiled.program
        self.memory = ptx.Memory()
        self.addresses: list[int] = []
        for buffer in self.program.buffers:
            if buffer.kind == "argument":
                self.addresses.append(self.memory.put(np.asarray(arrays[buffer.index])))
            elif buffer.kind == "constant":
                self.addresses.append(self.memory.put(runtime.constant_bytes(self.program.constants[buffer.index])))
            else:
                self.addresses.append(self.memory.allocate(buffer.bytes))

    def run(self) -> list[np.ndarray]:
        self.commands(self.program.commands)
        results = {b.index: self.addresses[b.id] for b in self.program.buffers if b.kind == "result"}
        types = enumerate(self.program.results)
        return [self.memory.get(results[i], t.shape, t.numpy) for i, t in types]

    def scalar(self, buffer: int, dtype: str) -> int:
        return int(self.memory.get(self.addresses[buffer], (), np.dtype(dtype)))

    def commands(self, commands: Sequence[runtime.Command]) -> None:
        for command in commands:
            match command:
                case runtime.Launch(kernel, buffers):
                    plan = self.compiled.plans[self.program.kernels[kernel].name]
                    simulate_plan(plan, self.compiled.kernels, self.memory, [self.addresses[b] for b in buffers])
                case runtime.Copy(source, target, size, source_offset, target_offset):
                    data = self.memory.get(self.addresses[source] + source_offset, (size,), np.dtype(np.uint8))
                    self.memory.set(self.addresses[target] + target_offset, data)
                case runtime.Fill(target, size, value):
                    self.memory.set(self.addresses[target], np.full(size, value, np.uint8))
                case runtime.While(condition, predicate, body):
                    self.commands(condition)
                    while self.scalar(predicate, "u1"):
                        self.commands(body)
                        self.commands(condition)
                case runtime.Case(index, branches):
                    number = self.scalar(index, "i4")
                    self.commands(branches[number if 0 <= number < len(branches) else len(branches) - 1])
                case _:
                    raise ptx.PtxError(f"{type(command).__name__} is not simulated")
