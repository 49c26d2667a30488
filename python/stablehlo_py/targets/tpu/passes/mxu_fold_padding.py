"""mxu-fold-padding: a kernel takes another kernel's result as it is, where only its padding would be taken off and put on."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.rewire import erase_unused
from stablehlo_py.core.types import tensor_type
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.planning.box import same_tiles


class MxuFoldPadding(Pass):
    """Hand a kernel's padded result to the next kernel as it is.

    kernel(pad(reshape(unpad(x)))) == kernel(x), where x is a kernel's result and both see the same shape in it, or
    kernel(bitcast(x)), where the reshape moves nothing in memory.
    """

    name: ClassVar[str] = "mxu-fold-padding"

    def run(self, op: ir.Operation) -> None:
        for kernel in emit.operations_named(op, "mxu.kernel"):
            for number, operand in enumerate(kernel.operands):
                source = result_behind(operand)
                if source is not None:
                    with ir.InsertionPoint(kernel), kernel.location:
                        kernel.operands[number] = bitcast(source, operand)
                    erase_unused(operand, "mxu.pad", "mxu.unpad", "stablehlo.reshape")


def result_behind(operand: ir.Value) -> ir.Value | None:
    """The result of a kernel that an operand is, behind padding and reshapes that undo each other."""
    value = operand
    producer = maker(value)
    if producer is not None and producer.name == "mxu.pad":
        value = producer.operands[0]
    wanted = value.type
    producer = maker(value)
    while producer is not None and producer.name == "stablehlo.reshape":
        value = producer.operands[0]
        producer = maker(value)
    given = value.type
    if producer is not None and producer.name == "mxu.unpad":
        value = producer.operands[0]
        producer = maker(value)
    if producer is None or producer.name != "mxu.kernel" or value == operand:
        return None
    if value.type == operand.type and given == wanted:
        return value
    before, after, inside, outside = (tensor_type(t) for t in (given, wanted, value.type, operand.type))
    same_bytes = inside.size == outside.size and inside.shape[-1] == outside.shape[-1]
    return value if same_bytes and same_tiles(before.shape, after.shape, before.element) else None


def bitcast(value: ir.Value, wanted: ir.Value) -> ir.Value:
    """The value in the wanted physical shape."""
    return value if value.type == wanted.type else emit.op("mxu.bitcast", [value], tensor_type(wanted.type))
