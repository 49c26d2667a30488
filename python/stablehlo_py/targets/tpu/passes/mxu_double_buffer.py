"""mxu-double-buffer: buffers get a second copy, so that the next transfer runs behind the work."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit

# What gets a second copy, as (op, operand number), the first row first.
TWICE = (
    (("mxu.dma_start", 1), ("mxu.dma_strided", 1)),
    (("mxu.dma_start", 0), ("mxu.dma_strided", 0)),
    (("mxu.fill", 0),),
)


class MxuDoubleBuffer(Pass):
    """Give buffers two copies as far as VMEM goes: those that are loaded, then stored, then accumulators.

    vmem_limit: bytes for the blocks of one kernel; 0 takes the chip's own limit.
    """

    name: ClassVar[str] = "mxu-double-buffer"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for kernel in emit.operations_named(op, "mxu.kernel"):
            machine = chip(ir.StringAttr(kernel.attributes["chip"]).value)
            double_buffer(kernel, machine.vmem_for_blocks(self.vmem_limit))


def double_buffer(kernel: ir.Operation, limit: int) -> None:
    """Two copies for targets and sources of transfers and for accumulators, while all fit into `limit` bytes."""
    allocations = emit.operations_named(kernel, "mxu.alloc")
    sizes = [_bytes(allocation) for allocation in allocations]
    copies = [1] * len(allocations)
    total = sum(sizes)
    for use in TWICE:
        for i, allocation in enumerate(allocations):
            uses = [(u.owner.operation.name, u.operand_number) for u in allocation.results[0].uses]
            if any(u in use for u in uses) and total + sizes[i] <= limit:
                total += sizes[i] if copies[i] == 1 else 0
                copies[i] = 2
    offset = 0
    for allocation, count, size in zip(allocations, copies, sizes, strict=True):
        allocation.attributes["buffers"] = emit.i64(count)
        allocation.attributes["offset"] = emit.i64(offset)
        offset += count * size


def _bytes(allocation: ir.Operation) -> int:
    ty = tensor_type(mxu.ref_tensor(allocation.results[0].type))
    return mxu.stored_bytes(ty)
