"""Kernels do not allocate: what one-shot-bufferize allocates becomes stack when small, else a scratch argument.

A static allocation inside loops is one buffer made once: each step writes it before reading it, so the steps can share.
"""

from __future__ import annotations

import math
from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir, linalg, memref
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernel_parallel import RANGE, set_inputs
from stablehlo_py.transforms.kernels.kernels_to_memref import SCRATCH, SHARED

BUFFERS_FIRST = "kernel.buffers_first"  # marks a kernel that allocates before its loops, and copies nothing
STACK_BYTES = 1024  # an allocation up to this size may live on the stack
MAKES = {"memref.alloc": ("memref.alloca",), "memref.dealloc": (), "memref.copy": ("linalg.copy", "linalg.yield")}
STACK_TOTAL = 4096  # what one kernel may take in all


class KernelScratch(Pass):
    """Turn allocations in kernels into stack slots and scratch arguments, and copies into loops."""

    name: ClassVar[str] = "kernel-scratch"
    is_trusted: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> Made:
        made: tuple[str, ...] | None = None
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes:
                found = _allocations_and_copies(function.operation)
                by_name = {name: [op for op in found if op.name == name] for name in {op.name for op in found}}
                for dealloc in by_name.get("memref.dealloc", ()):
                    dealloc.erase()
                place_allocations(function.operation, by_name.get("memref.alloc", []))
                copies_to_loops(by_name.get("memref.copy", []))
                if found:
                    made = (*(made or ()), *(name for gone in by_name for name in MAKES[gone]))
        return False if made is None else made


def _allocations_and_copies(function: ir.Operation) -> list[ir.Operation]:
    """In a kernel that says so they stand in front: to look at each op in its loops would take as long as to write two."""
    if BUFFERS_FIRST not in function.attributes:
        return operations_named(function, *MAKES)
    return [op for view in function.regions[0].blocks[0].operations if (op := view.operation).name in MAKES]


def place_allocations(function: ir.Operation, allocations: list[ir.Operation]) -> None:
    """Replace the memref.alloc ops of a kernel."""
    block = function.regions[0].blocks[0]
    on_stack, scratch, shared = 0, [], []
    for alloc in sorted(allocations, key=lambda alloc: SHARED not in alloc.attributes):
        ty = ir.MemRefType(alloc.results[0].type)
        if not ty.has_static_shape:
            raise CompileError(f"a kernel needs a buffer of unknown size ({ty})", where=str(alloc.location))
        size = math.prod(ty.shape) * element_bytes(ty.element_type)
        is_shared = SHARED in alloc.attributes
        if not is_shared and size <= STACK_BYTES and on_stack + size <= STACK_TOTAL:
            on_stack += size
            with ir.InsertionPoint.at_block_begin(block), alloc.location:
                new = memref.alloca(ty, [], [], alignment=64)
        else:
            plain = ir.MemRefType.get(ty.shape, ty.element_type, loc=alloc.location)
            new = block.add_argument(plain, alloc.location)
            (shared if is_shared else scratch).append(size)
        alloc.results[0].replace_all_uses_with(new)
        alloc.erase()
    added = len(shared) + len(scratch)
    if added and RANGE in function.attributes:
        place = len(block.arguments) - added - 2
        for bound in (block.arguments[place], block.arguments[place + 1]):  # the bounds stay last
            bound.replace_all_uses_with(block.add_argument(bound.type, function.location))
        for _ in range(2):
            block.erase_argument(place)
    if added:
        set_inputs(function)
    if shared:
        function.attributes[SHARED] = ir.DenseI64ArrayAttr.get(shared)
    function.attributes[SCRATCH] = ir.DenseI64ArrayAttr.get(scratch)


def copies_to_loops(copies: list[ir.Operation]) -> None:
    """memref.copy of anything but whole buffers calls a runtime function that is not there; linalg.copy does not."""
    for copy in copies:
        source, target = copy.operands
        with ir.InsertionPoint(copy), copy.location:
            linalg.copy([], [source], [target])
        copy.erase()


def element_bytes(ty: ir.Type) -> int:
    """Bytes of one element in memory."""
    if isinstance(ty, ir.ComplexType):
        return 2 * element_bytes(ty.element_type)
    if isinstance(ty, ir.IndexType):
        return 8
    width = ir.IntegerType(ty).width if isinstance(ty, ir.IntegerType) else ir.FloatType(ty).width
    return (width + 7) // 8
