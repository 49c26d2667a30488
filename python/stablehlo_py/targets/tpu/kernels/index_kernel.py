"""Kernels whose transfers begin where numbers in SMEM say: rows gathered by index, dynamic slices and their updates.

gather            loop i: v = index[i]; load table[v]; store out[i]
dynamic slice     v = start; loop rows: load x[v + row]; store out[row]
dynamic update    copy x; barrier; v = start; loop rows: load update[row]; store out[v + row]
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Gather, view
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.kernel_builder import padded, physical_type, unpadded
from stablehlo_py.targets.tpu.kernels.nest_builder import Linear, NestBuilder
from stablehlo_py.targets.tpu.planning.layout import up
from stablehlo_py.targets.tpu.planning.moves import unmapped_types

INDEXED = ("stablehlo.gather", "stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")
INDEX_ELEMENTS = ("i8", "ui8", "i16", "ui16", "i32", "ui32")


@record
class Start:
    """Where along a dimension: the scalar that says so, and the largest value that it may take."""

    dim: int
    value: ir.Value
    limit: int


def unmapped(operation: ir.Operation, chip: Chip, limit: int) -> str | None:
    """Why the chip does not do it; None where it does."""
    op = view(operation)
    if reason := unmapped_types(op):
        return reason
    table = op.operand_types[0]
    indices = op.operand_types[1:2] if op.name == "stablehlo.gather" else op.operand_types[-len(table.shape) :]
    if any(ty.element.name not in INDEX_ELEMENTS for ty in indices):
        return f"the scalar unit has no registers of {indices[0].element}"
    if table.rank < 2:
        return "it begins between lanes"
    if up(table.shape[-1], chip.lanes) * table.element.bytes * 32 * 2 > limit:
        return "its rows do not fit into VMEM"
    if op.name == "stablehlo.gather":
        return _unmapped_gather(Gather(operation), chip)
    sizes = op.type.shape if op.name == "stablehlo.dynamic_slice" else op.operand_types[1].shape
    return None if sizes[-1] == table.shape[-1] else "it begins between lanes"


def _unmapped_gather(op: Gather, chip: Chip) -> str | None:
    """Whole entries along one leading dimension, one index each."""
    dims, table, indices = op.dims, op.operand_types[0], op.operand_types[1]
    vector = indices.shape[dims.index_vector_dim] if dims.index_vector_dim < indices.rank else 1
    rest = table.shape[1:]
    whole = op.slice_sizes[1:] == rest and op.slice_sizes[0] == 1
    taken = dims.start_index_map == (0,) and dims.collapsed_slice_dims == (0,) and not dims.operand_batching_dims
    last = dims.index_vector_dim >= indices.rank - 1
    trailing = dims.offset_dims == tuple(range(op.type.rank - len(rest), op.type.rank))
    if not (whole and taken and last and trailing and vector == 1):
        return "it gathers other than whole entries of the first dimension"
    if 4 * indices.size > chip.smem_bytes // 2:
        return f"its {indices.size} indices do not fit into SMEM"
    return None


class IndexKernel(NestBuilder):
    """From an op that `unmapped` lets through."""

    def __init__(self, operation: ir.Operation, chip: Chip, vmem_limit: int) -> None:
        super().__init__(chip)
        self.operation, self.limit = operation, vmem_limit
        result = tensor_type(operation.results[0].type)
        self.shape, self.element = result.shape, result.element

    def build(self, label: str) -> ir.Value:
        """The kernel at the insertion point; its result is that of the op."""
        if self.operation.name == "stablehlo.gather":
            return self.gather(label)
        return self.dynamic(label)

    def kernel(
        self, label: str, arrays: Sequence[ir.Value], scalars: Sequence[ir.Value], shape: tuple[int, ...]
    ) -> ir.Operation:
        """arrays in HBM, scalars in SMEM."""
        operands = [*(padded(v, self.chip) for v in arrays), *scalars]
        spaces = ["hbm"] * len(arrays) + ["smem"] * len(scalars)
        logical = [list(tensor_type(v.type).shape) for v in (*arrays, *scalars)] + [list(shape)]
        out = physical_type(TensorType(shape, self.element), self.chip)
        kernel = self.create(label, operands, spaces, logical, out)
        self.begin()
        self.arrays = list(self.block.arguments)[: len(arrays)]
        self.scalars = list(self.block.arguments)[len(arrays) : -1]
        self.out = self.block.arguments[len(self.block.arguments) - 1]
        return kernel

    def read(self, scalars: ir.Value, place: Sequence[Linear], limit: int) -> Linear:
        """An element of a ref in SMEM, as a position of the transfers that follow."""
        map = self.first([0] * len(place), [(d, 1, p) for d, p in enumerate(place)])
        value = ir.Operation.create(
            "mxu.read_index",
            results=[ir.IndexType.get()],
            operands=[scalars, *self.here],
            attributes={"map": map, "limit": emit.i64(limit)},
        ).results[0]
        self.here = [*self.here, value]
        return Linear(((len(self.here) - 1, 1),))

    # --- gather

    def gather(self, label: str) -> ir.Value:
        table, indices = self.operation.operands
        ty, count = tensor_type(table.type), tensor_type(indices.type).size
        flat = emit.reshape(indices, (1, count))
        shape = (count, *ty.shape[1:])
        out = self.kernel(label, [table], [flat], shape).results[0]
        nest = self.gathered_rows if ty.rank == 2 else self.gathered_planes
        self.run([lambda: nest(count, ty)])
        return unpadded(out, TensorType(shape, self.element), self.shape)

    def gathered_rows(self, count: int, table: TensorType) -> None:
        """As many rows at a time as a register has."""
        lanes = up(table.shape[-1], self.chip.lanes)
        rows = self.chip.sublanes * max(1, 4 // self.element.bytes)
        block = self.alloc("rows", (rows, lanes), self.element)

        def body(at: list[Linear], counts: list[int]) -> None:
            outside = self.here
            for row in range(counts[0]):
                self.here = outside
                place = Linear(at[0].terms, at[0].constant + row)
                value = self.read(self.scalars[0], [Linear(), place], table.shape[0] - 1)
                map = self.first([0, 0], [(0, 1, value)])
                self.transfer(self.arrays[0], block, map, 0, 1, 1, lanes, at=row)
            self.here = outside
            self.wait(self.loads)
            self.transfer(self.out, block, self.first([0, 0], [(0, 1, at[0])]), 0, 1, counts[0], lanes)
            self.wait(self.stores)

        self.nest([], [(count, rows)], body)

    def gathered_planes(self, count: int, table: TensorType) -> None:
        *outer, rows, last = table.shape[1:]
        lanes = up(last, self.chip.lanes)
        most = self.rows_for(rows, lanes * self.element.bytes, [count, *outer])
        block = self.alloc("rows", (up(most, 8), lanes), self.element)

        def body(at: list[Linear], counts: list[int]) -> None:
            value = self.read(self.scalars[0], [Linear(), at[0]], table.shape[0] - 1)
            inside = [(d + 1, 1, p) for d, p in enumerate(at[1:])]
            zero, dim = [0] * table.rank, table.rank - 2
            self.transfer(self.arrays[0], block, self.first(zero, [(0, 1, value), *inside]), dim, 1, counts[0], lanes)
            self.wait(self.loads)
            self.transfer(self.out, block, self.first(zero, [(0, 1, at[0]), *inside]), dim, 1, counts[0], lanes)
            self.wait(self.stores)

        self.nest([count, *outer], [(rows, most)], body)

    # --- dynamic slices and updates

    def dynamic(self, label: str) -> ir.Value:
        update = self.operation.name == "stablehlo.dynamic_update_slice"
        arrays = list(self.operation.operands)[: 2 if update else 1]
        whole = tensor_type(arrays[0].type).shape
        sizes = tensor_type(arrays[1].type).shape if update else self.shape
        # A start of a dimension that is taken whole can only be 0.
        starts = [
            Start(d, value, n - size)
            for d, (value, n, size) in enumerate(
                zip(list(self.operation.operands)[len(arrays) :], whole, sizes, strict=True)
            )
            if n != size
        ]
        scalars = [emit.reshape(start.value, (1, 1)) for start in starts]
        kernel = self.kernel(label, arrays, scalars, self.shape)
        if update:
            self.run([lambda: self.rows_of(self.arrays[0], whole, (), ())])
            self.run([lambda: self.rows_of(self.arrays[1], sizes, (), starts)])
        else:
            self.run([lambda: self.rows_of(self.arrays[0], sizes, starts, ())])
        return unpadded(kernel.results[0], TensorType(self.shape, self.element), self.shape)

    def rows_of(
        self, source: ir.Value, sizes: Sequence[int], source_starts: Sequence[Start], target_starts: Sequence[Start]
    ) -> None:
        """A box of `sizes` from the source to the result, each at its starts."""
        lanes = up(sizes[-1], self.chip.lanes)
        rows = self.rows_for(sizes[-2], 2 * lanes * self.element.bytes, sizes[:-2])
        block = self.alloc("rows", (up(rows, 8), lanes), self.element)

        def body(at: list[Linear], counts: list[int]) -> None:
            inside = [(d, 1, p) for d, p in enumerate(at)]
            known = {}
            for number, start in enumerate((*source_starts, *target_starts)):
                known[start.dim] = self.read(self.scalars[number], [Linear(), Linear()], start.limit)
            moved = [(dim, 1, position) for dim, position in known.items()]
            zero, dim = [0] * len(sizes), len(sizes) - 2
            inward = self.first(zero, [*inside, *(moved if source_starts else [])])
            self.transfer(source, block, inward, dim, 1, counts[0], lanes)
            self.wait(self.loads)
            outward = self.first(zero, [*inside, *(moved if target_starts else [])])
            self.transfer(self.out, block, outward, dim, 1, counts[0], lanes)
            self.wait(self.stores)

        self.nest(sizes[:-2], [(sizes[-2], rows)], body)
