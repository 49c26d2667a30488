"""compile_tpu(module, options): a program for a TPU-like chip, run by the simulator.

The pipeline `tpu` turns products into mxu kernels. The host runs the rest; the report says what and why. Kernels compute on
the functional simulator, and the timed simulator says how long they would take.
"""

from __future__ import annotations

import collections
from collections.abc import Iterator

import numpy as np

from stablehlo_py.core import pipeline
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify_program import kernel_blocks, kernels_of, live_values
from stablehlo_py.dialects.stablehlo import Convolution, DotGeneral
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import CHIPS, chip
from stablehlo_py.mlir import ir
from stablehlo_py.reading.places import place
from stablehlo_py.records import record, replace
from stablehlo_py.simulator.program import Program, read_kernel
from stablehlo_py.simulator.schedule import read_schedule, time_schedule
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.host import Host
from stablehlo_py.targets.tpu.passes import mxu_convolutions
from stablehlo_py.targets.tpu.passes.mxu_contractions import MxuContractions, unmapped
from stablehlo_py.targets.tpu.passes.mxu_double_buffer import MxuDoubleBuffer
from stablehlo_py.targets.tpu.passes.mxu_kernels import MxuKernels
from stablehlo_py.targets.tpu.passes.mxu_layouts import MxuLayouts
from stablehlo_py.targets.tpu.passes.mxu_memory_spaces import MxuMemorySpaces
from stablehlo_py.targets.tpu.passes.mxu_moves import INDEXED, ROOTS, MxuMoves, is_constant, reason_for_host
from stablehlo_py.targets.tpu.passes.mxu_schedule import MxuSchedule
from stablehlo_py.targets.tpu.passes.mxu_split_cores import MxuSplitCores
from stablehlo_py.targets.tpu.passes.mxu_tiles import MxuTiles
from stablehlo_py.targets.tpu.planning.box import same_tiles
from stablehlo_py.targets.tpu.report import ArrayReport, Report, WhatIf, kernel_report


@record
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


class TpuProgram:
    """A compiled program: call it with arrays; `as_text` is its IR, `report()` what the chip would do with it."""

    def __init__(self, source: ir.Module, module: ir.Module, options: TpuOptions, notes: tuple[str, ...]) -> None:
        self._source, self.module, self.options, self._notes = source, module, options, notes
        with module.context:
            programs = {op: read_kernel(op) for op in emit.operations_named(module.operation, "mxu.kernel")}
            self._host = Host(module, programs)
            self._kernels = list(programs.values())
            self._schedule = read_schedule(module.operation)
            self._arrays = list(_arrays(module.operation))
            self._host_ops = collections.Counter(_host_ops(module.operation))

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        with self.module.context:
            return self._host(*arrays)

    def as_text(self) -> str:
        return str(self.module)

    @property
    def kernels(self) -> tuple[Program, ...]:
        return tuple(self._kernels)

    def report(self, *, what_if: bool = False) -> Report:
        """Time of each kernel on the chip, and what the host keeps; what_if adds the same program on the other chips."""
        machine = chip(self.options.chip)
        return Report(
            chip=machine.name,
            peak_flops=machine.peak_flops,
            hbm_bytes_per_second=machine.hbm_bytes_per_second * machine.cores,
            vmem_limit=machine.vmem_for_blocks(self.options.vmem_limit),
            kernels=tuple(map(kernel_report, time_schedule(self._schedule, machine), self._arrays)),
            host=dict(self._host_ops),
            notes=self._notes,
            what_if=tuple(self._on(name) for name in CHIPS) if what_if else (),
        )

    def _on(self, name: str) -> WhatIf:
        other = compile_tpu(self._source, replace(self.options, chip=name, vmem_limit=0)).report()
        return WhatIf(name, other.cycles, other.seconds, other.utilisation)


def compile_tpu(module: ir.Module, options: TpuOptions | None = None) -> TpuProgram:
    """Compile a copy of `module` for the chip of the options."""
    options = options or TpuOptions()
    with module.context, ir.Location.unknown():
        mxu.load(module.context)
        source, copy = _copy(module), _copy(module)
        notes = tuple(_notes(copy.operation))
        pipeline.run(_with_options(pipeline.load("tpu"), options), copy.operation)
        copy.operation.verify()
        notes += _move_notes(copy.operation, options)
    return TpuProgram(source, copy, options, tuple(dict.fromkeys(notes)))  # a function inlined twice says it twice


def _copy(module: ir.Module) -> ir.Module:
    copy = ir.Module.create()
    for operation in module.body.operations:
        copy.body.append(operation.operation.clone())
    return copy


def _with_options(pipe: pipeline.Pipeline, options: TpuOptions) -> pipeline.Pipeline:
    """The pipeline with the options of the passes that take some."""
    given = {
        MxuContractions.name: f"precision={options.precision}",
        MxuLayouts.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuSplitCores.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuTiles.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuKernels.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuMoves.name: f"chip={options.chip} vmem-limit={options.vmem_limit}",
        MxuDoubleBuffer.name: f"vmem-limit={options.vmem_limit}",
        MxuSchedule.name: f"vmem-limit={options.vmem_limit}",
        MxuMemorySpaces.name: f"vmem-limit={options.vmem_limit}",
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
            notes.append(f"stablehlo.dot_general{_at(dot)} runs on the host: {reason}")
    for convolution in emit.operations_named(module, "stablehlo.convolution"):
        reason = mxu_convolutions.unmapped(Convolution(convolution))
        if reason is not None:
            notes.append(f"stablehlo.convolution{_at(convolution)} runs on the host: {reason}")
    return notes


def _at(op: ir.Operation) -> str:
    where = place(op)
    return f" at {where}" if where else ""


def _move_notes(module: ir.Operation, options: TpuOptions) -> tuple[str, ...]:
    """Why the host moves the elements that it moves."""
    machine = chip(options.chip)
    limit = machine.vmem_for_blocks(options.vmem_limit)
    notes = []
    for op in emit.operations_named(module, *ROOTS, *INDEXED):
        reason = reason_for_host(op, machine, limit)
        if reason is not None:
            notes.append(f"{op.name}{_at(op)} runs on the host: {reason}")
    return tuple(notes)


def _arrays(module: ir.Operation) -> Iterator[tuple[ArrayReport, ...]]:
    """What is in fast memory at each kernel."""
    lives: dict[ir.Value, list[ArrayReport]] = {}
    for block in kernel_blocks(module):
        kernels = kernels_of(block)
        for live in live_values(block):
            name = ir.StringAttr(
                (live.value.owner.operation if live.made else kernels[live.last]).attributes["label"]
            ).value
            array = ArrayReport(
                name if live.made else f"for {name}", live.space, live.offset, live.bytes, not live.made
            )
            for kernel in kernels[live.first : live.last + 1]:
                lives.setdefault(kernel.results[0], []).append(array)
    for kernel in emit.operations_named(module, "mxu.kernel"):
        yield tuple(lives.get(kernel.results[0], ()))


def _is_free(operation: ir.Operation) -> bool:
    """Nothing to be done while the program runs: constants are made before it, and some reshapes move nothing."""
    if operation.name == "stablehlo.return":
        return True
    if operation.results and all(is_constant(result) for result in operation.results):
        return True
    if operation.name != "stablehlo.reshape":
        return False
    before, after = tensor_type(operation.operands[0].type), tensor_type(operation.results[0].type)
    return same_tiles(before.shape, after.shape, before.element)


def _host_ops(module: ir.Operation) -> list[str]:
    """The ops that the host runs."""
    names: list[str] = []

    def visit(operation: ir.Operation) -> ir.WalkResult:
        if operation.name == "mxu.kernel":
            return ir.WalkResult.SKIP
        if operation.name.startswith(("stablehlo.", "chlo.")) and not _is_free(operation.operation):
            names.append(operation.name)
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return names
