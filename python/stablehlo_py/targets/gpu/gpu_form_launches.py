"""Turn functions on buffers into launches of GPU kernels: the first emitter that takes an op makes its kernel."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.targets.gpu.contraction import emit_contraction
from stablehlo_py.targets.gpu.launch import BUFFERS, Former, captures
from stablehlo_py.targets.gpu.loops import emit_copy, emit_loops
from stablehlo_py.targets.gpu.nest import Nest
from stablehlo_py.targets.gpu.row_programs import emit_row_program, emit_single_row
from stablehlo_py.targets.gpu.rows import emit_rows
from stablehlo_py.targets.gpu.serial import emit_serial
from stablehlo_py.targets.gpu.tensor_cores import emit_tensor_cores
from stablehlo_py.transforms.kernels.grouping import ROWS
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

# Asked in order; each says whether it took the nest, and the last takes all.
_EMITTERS = (emit_tensor_cores, emit_contraction, emit_rows, emit_loops)
_KEPT = ("func.return", *BUFFERS)


class GpuFormLaunches(Pass):
    """Turn linalg on buffers into gpu.launch_func, each kernel in a gpu.module of its own."""

    name: ClassVar[str] = "gpu-form-launches"

    def run(self, op: ir.Operation) -> None:
        op.attributes["gpu.container_module"] = ir.UnitAttr.get()
        for view in list(op.regions[0].blocks[0].operations):
            if view.operation.name == "func.func" and len(view.operation.regions[0].blocks) == 1:
                _Function(view.operation, op).form()


class _Function:
    """The work of one function, replaced by launches in order; what no parallel emitter takes, one thread does."""

    def __init__(self, function: ir.Operation, module: ir.Operation) -> None:
        self.function, self.former = function, Former(function, module)
        self.operations = [view.operation for view in function.regions[0].blocks[0].operations]
        self.serial: list[ir.Operation] = []
        self.fills: dict[ir.Value, tuple[Nest, ir.Value]] = {}  # buffers that are to hold one value, not stored yet

    def form(self) -> None:
        if not self.single_row():
            self.one_by_one()
        for op in reversed(self.operations):
            if op.name not in _KEPT:
                op.erase()

    def single_row(self) -> bool:
        """Whether the function reduces everything, and one block does it all."""
        kind = self.function.attributes.get(KERNEL)
        if kind is None or ir.StringAttr(kind).value != ROWS:
            return False
        work = [op for op in self.operations if op.name not in _KEPT]
        return not any(PARALLEL_LOOP in op.attributes for op in work) and emit_single_row(self.former, work)

    def one_by_one(self) -> None:
        for op in self.operations:
            if op.name == "linalg.generic":
                self.generic(Nest(op))
            elif op.name == "memref.copy":
                self.settle(op)
                emit_copy(self.former, op)
            elif PARALLEL_LOOP in op.attributes and op.name == "scf.for":
                self.settle(op)
                if not emit_row_program(self.former, op):
                    self.serial.append(op)
            elif op.name in _KEPT or op.name == "memref.dealloc":
                continue
            elif self.serial or not self.former.is_repeated(op):
                self.serial.append(op)
        self.settle(None)

    def generic(self, nest: Nest) -> None:
        """A fill waits for the op that reads it: a reduction starts from the value instead."""
        output = nest.operands[-1]
        if output in self.fills and nest.reduction and nest.covers_output and nest.operands.count(output) == 1:
            nest = Nest(nest.op, initial=self.fills.pop(output)[1])
        self.settle(nest.op)
        if nest.fill is not None:
            buffer, value = nest.fill
            self.fills[buffer] = nest, value
            return
        any(emit(self.former, nest) for emit in _EMITTERS)

    def settle(self, reader: ir.Operation | None) -> None:
        """Launch what must be done before `reader`: serial ops, and the fills that it or they may see; None for all."""
        while self.serial and self.former.is_repeated(self.serial[-1]):
            self.serial.pop()
        ops = [*self.serial, *([reader] if reader is not None else [])]
        seen = self._buffers(ops)
        for buffer, (nest, _) in list(self.fills.items()):
            if reader is None or buffer in seen:
                del self.fills[buffer]
                emit_loops(self.former, nest)
        if self.serial:
            emit_serial(self.former, self.serial)
            self.serial.clear()

    def _buffers(self, ops: list[ir.Operation]) -> set[ir.Value]:
        """The buffers that ops may touch, through views too."""
        waiting, seen = captures(ops), set()
        while waiting:
            value = waiting.pop()
            if value not in seen:
                seen.add(value)
                if (op := maker(value)) is not None:
                    waiting += op.operands
        return seen
