"""Which kernels can be split: all their linalg ops run over the same outermost loop, whose steps are independent.

What one op leaves for another must be found at the same step, so that a part of the steps needs nothing of the others.
Else, where there is much to do, each op is a launch of its own (loop_phases.py).
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import made_by, maker, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir, memref
from stablehlo_py.transforms.kernels import loop_phases
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernel_parallel import COLUMNS, EXTENT, RANGE, SETUP, i64

LEAST_COLUMNS = 512  # fewer are a few lines of each row, too little to split


class KernelMarkParallel(Pass):
    """Mark kernels whose linalg ops all run over the same independent outermost loop."""

    name: ClassVar[str] = "kernel-mark-parallel"
    is_trusted: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> bool:
        changed = False
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes and RANGE not in function.operation.attributes:
                copies = operations_named(function.operation, "linalg.copy")
                if len(copies) == 1 and _is_alone(copies[0]):
                    _without_leading_ones(copies[0])
                    changed = True
                _mark(function.operation)
        return changed


def _mark(function: ir.Operation) -> None:
    loops = only_linalg(function)
    if not loops:
        return
    extent = common_extent(loops)
    if extent is not None and extent > 1:
        function.attributes[EXTENT] = i64(extent)
    elif (columns := common_columns(function, loops)) is not None:
        function.attributes[COLUMNS], function.attributes[EXTENT] = ir.UnitAttr.get(), i64(columns)
    else:
        loop_phases.mark(function, loops)


def _is_alone(op: ir.Operation) -> bool:
    return sum(o.operation.name.startswith("linalg.") for o in op.block.operations) == 1


def _without_leading_ones(copy: ir.Operation) -> None:
    """Let the outermost loop of a copy be one of several steps, as far as there is one."""
    ty = ir.MemRefType(copy.operands[1].type)
    ones = next((d for d, n in enumerate(ty.shape) if n != 1), 0)
    if ones == 0:
        return
    groups = [list(range(ones + 1)), *([d] for d in range(ones + 1, ty.rank))]
    with ir.InsertionPoint(copy), copy.location:
        for i in range(2):
            old = ir.MemRefType(copy.operands[i].type)
            strides, offset = old.get_strides_and_offset()
            layout = ir.StridedLayoutAttr.get(offset, strides[ones:])
            plain = isinstance(old.layout, ir.AffineMapAttr)
            new = ir.MemRefType.get(old.shape[ones:], old.element_type, None if plain else layout)
            copy.operands[i] = memref.collapse_shape(new, copy.operands[i], groups)


def only_linalg(function: ir.Operation) -> list[ir.Operation]:
    """The linalg ops of a kernel; none if it does anything else."""
    operations = [o.operation for o in function.regions[0].blocks[0].operations]
    found = [o for o in operations if o.name.startswith("linalg.")]
    return [] if any(o not in found and not o.name.startswith(SETUP) for o in operations) else found


def common_extent(loops: list[ir.Operation]) -> int | None:
    """The extent of the outermost loop that all linalg ops of a kernel share, or None."""
    extents = set()
    users: dict[ir.Value, list[ir.Operation]] = {}
    for op in loops:
        sizes = loop_phases.loop_extents(op)
        if not sizes or not loop_phases.is_parallel(op, 0):
            return None
        extents.add(sizes[0])
        for buffer in op.operands:
            users.setdefault(buffer, []).append(op)
    if len(extents) != 1:
        return None
    if len(loops) > 1 and any(op.name == "linalg.copy" for op in loops) and not _at_own_rows(loops):
        return None
    for buffer, ops in users.items():
        shared = len(ops) > 1 and any(_writes(op, buffer) for op in ops)
        if shared and not all(_first_index_is_outer(op, buffer) for op in ops):
            return None
        if not shared or maker(buffer) is None:
            continue
        if made_by(buffer, "memref.alloc", "memref.alloca") is None:
            return None  # a view: another name may reach the same memory
    return extents.pop()


def _at_own_rows(loops: list[ir.Operation]) -> bool:
    """Whether copies and fills write the rows of arguments, or of columns of them, and read what none of them writes."""
    if any(op.name not in ("linalg.copy", "linalg.fill") for op in loops):
        return False
    written = {_argument(op.operands[1], whole_rows=True) for op in loops}
    read = {_argument(op.operands[0], whole_rows=False) for op in loops if op.name == "linalg.copy"}
    return None not in written | read and not written & read


def _argument(buffer: ir.Value, *, whole_rows: bool) -> ir.Value | None:
    """The argument that a buffer is, or is a part of; whole_rows: all of its rows, some columns of each."""
    while (view := maker(buffer)) is not None:
        if view.name != "memref.subview":
            return None
        if whole_rows and ir.MemRefType(view.operands[0].type).shape[0] != ir.MemRefType(buffer.type).shape[0]:
            return None
        buffer = view.operands[0]
    return buffer


def common_columns(function: ir.Operation, loops: list[ir.Operation]) -> int | None:
    """The extent of the innermost loop that all linalg ops of a kernel share where all write one row of results.

    So do reductions of the leading dimensions: each column is computed apart from the others.
    """
    operations = function.regions[0].blocks[0].operations
    if len(loops) < 2 or any(o.operation.name.startswith("memref.alloc") for o in operations):
        return None
    written = {buffer for op in loops for buffer in list(op.operands) if _writes(op, buffer)}
    extents = {_row_extent(op, written) for op in loops}
    extent = extents.pop()
    return extent if not extents and extent is not None and extent >= LEAST_COLUMNS else None


def _row_extent(op: ir.Operation, written: set[ir.Value]) -> int | None:
    """The extent of the innermost loop, if that is parallel and all that is written is used at its place only."""
    if op.name == "linalg.fill":
        shape = ir.MemRefType(op.operands[1].type).shape
        return shape[0] if len(shape) == 1 else None
    if op.name != "linalg.generic":
        return None
    maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    last = maps[0].n_dims - 1
    iterators = ir.ArrayAttr(op.attributes["iterator_types"])
    if last < 0 or "parallel" not in str(iterators[last]) or any("parallel" in str(i) for i in list(iterators)[:last]):
        return None
    extent = None
    for buffer, places in zip(op.operands, maps, strict=True):
        at = list(places.results)
        columns = len(at) == 1 and isinstance(at[0], ir.AffineDimExpr) and at[0].position == last
        if buffer in written:
            if not columns:
                return None
            extent = ir.MemRefType(buffer.type).shape[0]
    return extent


def _writes(op: ir.Operation, buffer: ir.Value) -> bool:
    return buffer in list(op.operands)[-1:] if op.name == "linalg.fill" else buffer in _outputs(op)


def _outputs(op: ir.Operation) -> list[ir.Value]:
    sizes = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    return list(op.operands)[sizes[0] :]


def _first_index_is_outer(op: ir.Operation, buffer: ir.Value) -> bool:
    if op.name in ("linalg.fill", "linalg.copy"):
        return True
    maps = ir.ArrayAttr(op.attributes["indexing_maps"])
    for operand, attribute in zip(op.operands, maps, strict=True):
        if operand == buffer:
            places = ir.AffineMapAttr(attribute).value.results
            if not len(places) or not isinstance(places[0], ir.AffineDimExpr) or places[0].position != 0:
                return False
    return True
