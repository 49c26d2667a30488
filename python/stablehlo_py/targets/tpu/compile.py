"""compile_tpu(module, options): a program for a TPU-like chip, run by the simulator.

The pipeline `tpu` turns products into mxu kernels. The host runs the rest; the report says what and why. Kernels compute on
the functional simulator, and the timed simulator says how long they would take.
"""

from __future__ import annotations

import collections
import math
from dataclasses import dataclass, replace

import numpy as np

from stablehlo_py.core import pipeline
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.stablehlo import Convolution, DotGeneral
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import CHIPS, chip
from stablehlo_py.mlir import ir
from stablehlo_py.simulator import timed
from stablehlo_py.simulator.program import Program, read_kernel
from stablehlo_py.targets.tpu import emit, mxu_convolutions
from stablehlo_py.targets.tpu.host import Host
from stablehlo_py.targets.tpu.mxu_contractions import MxuContractions, unmapped
from stablehlo_py.targets.tpu.mxu_double_buffer import MxuDoubleBuffer
from stablehlo_py.targets.tpu.mxu_tiles import MxuTiles


@dataclass(frozen=True)
class TpuOptions:
    """chip: see machine.tpu.CHIPS. precision: `default` multiplies f32 as bf16, `highest` keeps f32."""

    chip: str = "v5e"
    precision: str = "default"
    vmem_limit: int = 0

    def __post_init__(self) -> None:
        if self.chip not in CHIPS:
            raise CompileError(f"chip {self.chip!r} is not known", hint=f"known are {', '.join(CHIPS)}")
        if self.precision not in ("default", "highest"):
            raise CompileError(f"precision {self.precision!r} is not known", hint="it is default or highest")


@dataclass(frozen=True)
class KernelReport:
    """One kernel: its label, what it does, its time and how much of the matrix units' time it uses."""

    label: str
    shape: tuple[int, int, int, int]  # b, m, n, k
    cycles: float
    seconds: float
    utilisation: float
    vmem_peak: int
    hbm_bytes: float
    busy: dict[str, float]


@dataclass(frozen=True)
class Report:
    """kernels in the order of the program; host: how often each op runs there; notes: in words."""

    chip: str
    kernels: tuple[KernelReport, ...]
    host: dict[str, int]
    notes: tuple[str, ...]

    @property
    def cycles(self) -> float:
        """Of all kernels, one after the other; the host's time is not in it."""
        return sum(kernel.cycles for kernel in self.kernels)


class TpuProgram:
    """A compiled program: call it with arrays; `as_text` is its IR, `report()` what the chip would do with it."""

    def __init__(self, module: ir.Module, options: TpuOptions, notes: tuple[str, ...]) -> None:
        self.module, self.options, self._notes = module, options, notes
        with module.context:
            self._host = Host(module)
            self._kernels = [read_kernel(op) for op in emit.operations_named(module.operation, "mxu.kernel")]
            self._host_ops = collections.Counter(_host_ops(module.operation))

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with self.module.context:
            return self._host(*arrays)

    def as_text(self) -> str:
        return str(self.module)

    @property
    def kernels(self) -> tuple[Program, ...]:
        return tuple(self._kernels)

    def report(self) -> Report:
        """Time of each kernel on the chip, and what the host keeps."""
        kernels = tuple(_kernel_report(kernel) for kernel in self._kernels)
        return Report(self.options.chip, kernels, dict(self._host_ops), self._notes)


def compile_tpu(module: ir.Module, options: TpuOptions | None = None) -> TpuProgram:
    """Compile a copy of `module` for the chip of the options."""
    options = options or TpuOptions()
    with module.context, ir.Location.unknown():
        mxu.load(module.context)
        copy = ir.Module.create()
        for operation in module.body.operations:
            copy.body.append(operation.operation.clone())
        notes = tuple(_notes(copy.operation))
        pipeline.run(_with_options(pipeline.load("tpu"), options), copy.operation)
        copy.operation.verify()
    return TpuProgram(copy, options, notes)


def _with_options(pipe: pipeline.Pipeline, options: TpuOptions) -> pipeline.Pipeline:
    """The pipeline with the options of the passes that take some."""
    given = {
        MxuContractions.name: f"precision={options.precision}",
        MxuTiles.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuDoubleBuffer.name: f"vmem-limit={options.vmem_limit}",
    }
    stages = tuple(
        replace(stage, steps=tuple(replace(s, options=given.get(s.name, s.options)) for s in stage.steps))
        for stage in pipe.stages
    )
    return replace(pipe, stages=stages)


def _notes(module: ir.Operation) -> list[str]:
    """What the chip will not do, and why, for each product that stays with the host."""
    notes = []
    for dot in emit.operations_named(module, "stablehlo.dot_general"):
        reason = unmapped(DotGeneral(dot))
        if reason is not None:
            notes.append(f"stablehlo.dot_general at {dot.location} runs on the host: {reason}")
    for convolution in emit.operations_named(module, "stablehlo.convolution"):
        reason = mxu_convolutions.unmapped(Convolution(convolution))
        if reason is not None:
            notes.append(f"stablehlo.convolution at {convolution.location} runs on the host: {reason}")
    return notes


def _host_ops(module: ir.Operation) -> list[str]:
    """The ops that the host runs."""
    names: list[str] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "mxu.kernel":
            return ir.WalkResult.SKIP
        if operation.name.startswith(("stablehlo.", "chlo.")) and operation.name != "stablehlo.return":
            names.append(operation.name)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return names


def _kernel_report(kernel: Program) -> KernelReport:
    machine = chip(kernel.chip)
    result = timed.time_program(kernel, machine)
    b, m, n = kernel.outputs[0].logical
    k = math.prod(kernel.inputs[0].logical) // (b * m)
    ideal = b * m * n * k / (machine.macs_per_cycle * machine.cores)
    return KernelReport(
        label=kernel.label,
        shape=(b, m, n, k),
        cycles=result.cycles,
        seconds=result.seconds(machine),
        utilisation=ideal / result.cycles,
        vmem_peak=kernel.bytes_in("vmem"),
        hbm_bytes=result.hbm_bytes * machine.cores,
        busy=result.busy,
    )
