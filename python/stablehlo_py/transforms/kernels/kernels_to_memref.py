"""Kernels from tensors to buffers: each becomes a function of memrefs that reads its inputs and writes its outputs.

    func @k(%x: tensor<4xf32>) -> tensor<4xf32>   ->   func @k(%x: memref<4xf32>, %y: memref<4xf32>)

Only the edges are changed here, the rest is upstream's one-shot-bufferize. A result that updates an operand in place
(`inplace` in the registry) starts from the contents of its own output buffer: the program puts the operand there.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import bufferization, func, ir
from stablehlo_py.transforms.kernels.hlo_form_kernels import INPLACE, KERNEL
from stablehlo_py.transforms.kernels.hlo_to_linalg import CUSTOM_CALL

_RESHAPES = ("tensor.expand_shape", "tensor.collapse_shape")
SCRATCH = "kernel.scratch"  # bytes of each scratch buffer, which come after the outputs
SHARED = "kernel.shared"  # marks an allocation that all parts of a kernel share; on a kernel: bytes of such, in front of SCRATCH


class KernelsToMemref(Pass):
    """Give every kernel a signature of memrefs: inputs, then outputs; drop @main, which is a Program by now."""

    name: ClassVar[str] = "kernels-to-memref"
    is_trusted: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> None:
        for function in [f.operation for f in op.regions[0].blocks[0].operations]:
            if function.name != "func.func":
                continue
            if KERNEL in function.attributes:
                to_memref(function)
            elif len(function.regions[0].blocks) or CUSTOM_CALL in function.attributes:
                function.erase()


def to_memref(function: ir.Operation) -> None:
    """Replace a kernel on tensors by one on memrefs."""
    ty = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    in_place = inplace_pairs(function)
    block = function.regions[0].blocks[0]
    terminator = block.operations[len(block.operations) - 1].operation
    updated = {result for _, result in in_place}
    results = [v if i in updated else _before_reshapes(v) for i, v in enumerate(terminator.operands)]
    inputs, outputs = [_memref(t) for t in ty.inputs], [_memref(v.type) for v in results]
    with function.location:
        arguments = [block.add_argument(t, function.location) for t in (*inputs, *outputs)]
        sources, targets = arguments[: len(inputs)], arguments[len(inputs) :]
        with ir.InsertionPoint.at_block_begin(block):
            for i, (old, tensor_type) in enumerate(zip(list(block.arguments), ty.inputs, strict=False)):
                target = next((targets[r] for operand, r in in_place if operand == i), None)
                buffer = sources[i] if target is None else target
                new = bufferization.to_tensor(tensor_type, buffer, restrict=True, writable=target is not None)
                old.replace_all_uses_with(new)
        with ir.InsertionPoint(terminator):
            for i, target in enumerate(targets):
                # an argument that is returned as it is has been replaced by its tensor above
                value = terminator.operands[i] if isinstance(results[i].owner, ir.Block) else results[i]
                if _take_over(value, target):
                    continue
                bufferization.materialize_in_destination(None, value, target, restrict=True, writable=True)
            func.return_([])
        terminator.erase()
        for _ in inputs:
            block.erase_argument(0)
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*inputs, *outputs], []))
        function.attributes["sym_visibility"] = ir.StringAttr.get("public")


def _take_over(value: ir.Value, target: ir.Value) -> bool:
    """Let a result that a rule has written to a buffer of the kernel's own be written to its output instead."""
    read = made_by(value, "bufferization.to_tensor")
    alloc = read and made_by(read.operands[0], "memref.alloc")
    if read is None or alloc is None:
        return False
    buffer = read.operands[0]
    buffer.replace_all_uses_with(target)
    alloc.erase()
    return True


def _before_reshapes(value: ir.Value) -> ir.Value:
    """The value before reshapes of a result: the same bytes, and no copy where upstream cannot see that."""
    while (reshape := made_by(value, *_RESHAPES)) is not None:
        before = reshape.operands[0]
        if maker(before) is None:
            return value  # a kernel that only reshapes its argument: a copy
        value = before
    return value


def inplace_pairs(function: ir.Operation) -> list[tuple[int, int]]:
    """(operand, result) of the results that update an operand in place."""
    return number_pairs(function, INPLACE)


def numbers(function: ir.Operation, name: str) -> tuple[int, ...]:
    """A kernel's attribute that is a list of numbers; none where it has no such attribute."""
    return tuple(ir.DenseI64ArrayAttr(function.attributes[name])) if name in function.attributes else ()


def number_pairs(function: ir.Operation, name: str) -> list[tuple[int, int]]:
    """One of which each two belong together."""
    found = numbers(function, name)
    return list(zip(found[::2], found[1::2], strict=True))


def _memref(ty: ir.Type) -> ir.Type:
    tensor = ir.RankedTensorType(ty)
    return ir.MemRefType.get(tensor.shape, tensor.element_type, loc=ir.Location.unknown())
