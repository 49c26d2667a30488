"""Run kernels on buffers through the GPU target and the PTX simulator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py import mlir
from stablehlo_py.machine.gpu import gpu_chip
from stablehlo_py.mlir import ir
from stablehlo_py.simulator import ptx
from stablehlo_py.targets.gpu.lower_kernels import Plan, lower_to_nvvm, plans_of, ptx_of


def simulate(plan: Plan, kernels: dict[str, str], arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments' contents after all launches; arrays hold what they have before."""
    memory = ptx.Memory()
    addresses: dict[str, int] = {}
    arguments = iter(arrays)
    for buffer in plan.buffers:
        if buffer.kind == "argument":
            addresses[buffer.name] = memory.put(next(arguments))
        elif buffer.data is not None:
            addresses[buffer.name] = memory.put(buffer.data)
        else:
            addresses[buffer.name] = memory.allocate(buffer.bytes)
    for launch in plan.launches:
        ptx.run(
            kernels[launch.kernel],
            launch.kernel,
            launch.grid,
            launch.block,
            [addresses[a] for a in launch.args],
            memory,
        )
    return [memory.get(addresses[f"argument{i}"], a.shape, a.dtype) for i, a in enumerate(arrays)]


def run_function(source: str, arrays: Sequence[np.ndarray], *, chip: str = "sm_80") -> list[np.ndarray]:
    """Compile a module with one function of memrefs and simulate it."""
    with mlir.new_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
        lower_to_nvvm(module.operation)
        module.operation.verify()
        (plan,) = plans_of(module.operation).values()
        return simulate(plan, ptx_of(module.operation, gpu_chip(chip)), arrays)
