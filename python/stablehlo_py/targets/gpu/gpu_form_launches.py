"""Turn functions on buffers into launches of GPU kernels: one emitter after the other may take an op, the general one last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu.launch import _REPEATED, _VIEWS, BUFFERS, Former, place
from stablehlo_py.targets.gpu.loops import emit_copy, emit_loops

_HOST = frozenset({*BUFFERS, *_VIEWS, "memref.dealloc", "func.return", "gpu.launch_func"})


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
    """Replace the work of one function by launches, in order."""
    former = Former(function, module)
    for view in list(function.regions[0].blocks[0].operations):
        op = view.operation
        if op.name in _HOST or op.name.startswith(_REPEATED):
            continue
        if op.name == "linalg.generic":
            emit_loops(former, op)
        elif op.name == "memref.copy":
            emit_copy(former, op)
        else:
            raise UnsupportedOp(op.name, "no emitter takes it", target="gpu", where=place(op))
        op.erase()
