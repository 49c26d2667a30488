"""Turn functions on buffers into launches of GPU kernels: the first emitter that takes an op makes its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu.launch import BUFFERS, REPEATED, VIEWS, Former
from stablehlo_py.targets.gpu.loops import emit_copy, emit_loops
from stablehlo_py.targets.gpu.serial import emit_serial

_PARALLEL = {"linalg.generic": emit_loops, "memref.copy": emit_copy}
_IGNORED = ("memref.dealloc", "func.return")


@dataclass(frozen=True)
class GpuFormLaunches(Pass):
    """Turn linalg on buffers into gpu.launch_func, each kernel in a gpu.module of its own."""

    name: ClassVar[str] = "gpu-form-launches"

    def run(self, op: ir.Operation) -> None:
        op.attributes["gpu.container_module"] = ir.UnitAttr.get()
        for view in list(op.regions[0].blocks[0].operations):
            if view.operation.name == "func.func" and len(view.operation.regions[0].blocks) == 1:
                form_launches(view.operation, op)


def form_launches(function: ir.Operation, module: ir.Operation) -> None:
    """Replace the work of one function by launches, in order; what no parallel emitter takes, one thread does."""
    former = Former(function, module)
    operations = [view.operation for view in function.regions[0].blocks[0].operations]
    serial: list[ir.Operation] = []

    def flush() -> None:
        while serial and _is_repeated(serial[-1]):
            serial.pop()
        if serial:
            emit_serial(former, serial)
            serial.clear()

    for op in operations:
        if op.name in _PARALLEL:
            flush()
            _PARALLEL[op.name](former, op)
        elif op.name in _IGNORED or op.name in BUFFERS:
            continue
        elif serial or not _is_repeated(op):
            serial.append(op)
    flush()
    for op in reversed(operations):
        if op.name not in BUFFERS and op.name != "func.return":
            op.erase()


def _is_repeated(op: ir.Operation) -> bool:
    return op.name in VIEWS or op.name.startswith(REPEATED)
