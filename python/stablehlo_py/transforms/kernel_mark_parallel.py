"""Which kernels can be split: all their linalg ops run over the same outermost loop, whose steps are independent.

What one op leaves for another must be found at the same step, so that a part of the steps needs nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.transforms.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernel_parallel import EXTENT, RANGE, SETUP, i64


@dataclass(frozen=True)
class KernelMarkParallel(Pass):
    """Mark kernels whose linalg ops all run over the same independent outermost loop."""

    name: ClassVar[str] = "kernel-mark-parallel"

    def run(self, op: ir.Operation) -> None:
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes and RANGE not in function.operation.attributes:
                extent = common_extent(function.operation)
                if extent is not None:
                    function.operation.attributes[EXTENT] = i64(extent)


def common_extent(function: ir.Operation) -> int | None:
    """The extent of the outermost loop that all linalg ops of a kernel share, or None."""
    operations = [o.operation for o in function.regions[0].blocks[0].operations]
    loops = [o for o in operations if o.name.startswith("linalg.")]
    others = [o for o in operations if o not in loops and not o.name.startswith(SETUP)]
    if not loops or others:
        return None
    extents = set()
    users: dict[ir.Value, list[ir.Operation]] = {}
    for op in loops:
        extent = _outer_extent(op)
        if extent is None:
            return None
        extents.add(extent)
        for buffer in op.operands:
            users.setdefault(buffer, []).append(op)
    if len(extents) != 1:
        return None
    for buffer, ops in users.items():
        shared = len(ops) > 1 and any(_writes(op, buffer) for op in ops)
        if shared and not all(_first_index_is_outer(op, buffer) for op in ops):
            return None
        if isinstance(buffer.owner, ir.Block) or not shared:
            continue
        if buffer.owner.operation.name != "memref.alloc" and buffer.owner.operation.name != "memref.alloca":
            return None  # a view: another name may reach the same memory
    return extents.pop()


def _outer_extent(op: ir.Operation) -> int | None:
    if op.name == "linalg.fill":
        shape = ir.MemRefType(op.operands[1].type).shape
        return shape[0] if shape else None
    if "iterator_types" not in op.attributes or "indexing_maps" not in op.attributes:
        return None
    iterators = ir.ArrayAttr(op.attributes["iterator_types"])
    if not len(iterators) or "parallel" not in str(iterators[0]):
        return None
    for buffer, attribute in zip(op.operands, ir.ArrayAttr(op.attributes["indexing_maps"]), strict=True):
        if not isinstance(buffer.type, ir.MemRefType):
            continue
        places = ir.AffineMapAttr(attribute).value.results
        for place, size in zip(places, ir.MemRefType(buffer.type).shape, strict=True):
            if isinstance(place, ir.AffineDimExpr) and place.position == 0:
                return size
    return None


def _writes(op: ir.Operation, buffer: ir.Value) -> bool:
    return buffer in list(op.operands)[-1:] if op.name == "linalg.fill" else buffer in _outputs(op)


def _outputs(op: ir.Operation) -> list[ir.Value]:
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    return list(op.operands)[sizes[0] :]


def _first_index_is_outer(op: ir.Operation, buffer: ir.Value) -> bool:
    if op.name == "linalg.fill":
        return True
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    for operand, attribute in zip(op.operands, maps, strict=True):
        if operand == buffer:
            places = ir.AffineMapAttr(attribute).value.results
            if not len(places) or not isinstance(places[0], ir.AffineDimExpr) or places[0].position != 0:
                return False
    return True
