"""mxu-fold-padding: a kernel takes another kernel's result as it is, where only its padding would be taken off and put on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit


@dataclass(frozen=True)
class MxuFoldPadding(Pass):
    """Hand a kernel's padded result to the next kernel as it is.

    kernel(pad(reshape(unpad(x)))) == kernel(x), where x is a kernel's result and both see the same shape in it.
    """

    name: ClassVar[str] = "mxu-fold-padding"

    def run(self, op: ir.Operation) -> None:
        for kernel in emit.operations_named(op, "mxu.kernel"):
            for number, operand in enumerate(kernel.operands):
                source = result_behind(operand)
                if source is not None:
                    kernel.operands[number] = source
                    _erase_dead(operand)


def result_behind(operand: ir.Value) -> ir.Value | None:
    """The result of a kernel that an operand is, behind padding and reshapes that undo each other."""
    value = operand
    producer = _producer(value)
    if producer is not None and producer.name == "mxu.pad":
        value = producer.operands[0]
    wanted = value.type
    producer = _producer(value)
    while producer is not None and producer.name == "stablehlo.reshape":
        value = producer.operands[0]
        producer = _producer(value)
    given = value.type
    if producer is not None and producer.name == "mxu.unpad":
        value = producer.operands[0]
        producer = _producer(value)
    same = value.type == operand.type and given == wanted
    if not same or producer is None or producer.name != "mxu.kernel" or value == operand:
        return None
    return value


def _erase_dead(value: ir.Value) -> None:
    """Erase the ops that nobody uses any more, from the last on."""
    producer = _producer(value)
    if producer is None or producer.name not in ("mxu.pad", "mxu.unpad", "stablehlo.reshape") or list(value.uses):
        return
    before = producer.operands[0]
    producer.erase()
    _erase_dead(before)


def _producer(value: ir.Value) -> ir.Operation | None:
    owner = value.owner
    return owner.operation if isinstance(owner, ir.Operation | ir.OpView) else None
