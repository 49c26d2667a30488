"""The kernel of a group without a product: rows of all inputs in, vector code, rows of the result out.

core_split c:                      # where there is more than one core
  loop i:
    load inputs[i]; wait
    vector code on a block of rows
    store out[i]; wait
"""

from __future__ import annotations

import math

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.errors import CompileError
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu.kernels.kernel_builder import KernelBuilder, as_blocks, physical_type, unpadded
from stablehlo_py.targets.tpu.planning.box import same_tiles
from stablehlo_py.targets.tpu.planning.group import FULL, LANE, MOVES, SCALAR, Group
from stablehlo_py.targets.tpu.planning.layout import up

ROW_UNIT = 32  # rows of whole tiles of every element type
STEPS = 8  # blocks that a core's rows are cut into where they allow it: the first load and the last store stand alone


class VectorKernel(KernelBuilder):
    """From the group of a fusion."""

    def __init__(self, group: Group, chip: Chip, vmem_limit: int, split: str = "m") -> None:
        super().__init__(chip)
        self.group = group
        self.b, self.m = batch_and_rows(group)
        # The batch may have become one range of rows since the split was chosen, or the other way round.
        if split == "b" and self.b == 1:
            split = "m"
        if split == "m" and self.b > 1 and self.m <= ROW_UNIT:
            split = "b"
        self.split = split
        self.block_rows = _block_rows(group, self.m, chip.cores if self.split == "m" else 1, chip, vmem_limit)

    def build(self, label: str) -> ir.Value:
        """The kernel at the insertion point; its result is that of the fusion."""
        group, b, m, n = self.group, self.b, self.m, self.group.n
        kinds = [group.kinds[value] for value in group.inputs]
        blocks = [as_blocks(v, k, b, m, n, self.chip) for v, k in zip(group.inputs, kinds, strict=True)]
        logical = [[1, 1, n] if k == LANE else [b, m, n if k == FULL else self.chip.lanes] for k in kinds]
        result = tensor_type(group.root.results[0].type)
        out = TensorType((b, m, n), result.element)
        spaces = ["hbm"] * len(blocks)
        kernel = self.create(label, blocks, spaces, [*logical, [b, m, n]], physical_type(out, self.chip))
        self.body()
        return unpadded(kernel.results[0], out, result.shape)

    def body(self) -> None:
        *extra, out = self.block.arguments
        shape = (self.block_rows, up(self.group.n, self.chip.lanes))
        buffers = self.input_buffers(self.group, shape)
        loads, store = self.semaphore(), self.semaphore()
        point, core = self.cores()
        cores = self.chip.cores if core else 1
        trips = -(-self.m // (self.block_rows * (cores if self.split == "m" else 1)))
        batches = -(-self.b // cores) if self.split == "b" else self.b
        names = "(c, b, i)" if core else "(b, i)"
        row = f"c * {trips} + i" if core and self.split == "m" else "i"
        batch = f"c * {batches} + b" if core and self.split == "b" else "b"
        with point:
            inner, (b, i) = self.loop([batches, trips])
        here = [*core, b, i]
        with inner:
            for large, (value, small) in zip(extra, buffers.items(), strict=True):
                block = "(0, 0, 0)" if self.group.kinds[value] == LANE else f"({batch}, {row}, 0)"
                self.load(large, small, loads, here, f"{names} -> {block}")
            if buffers:
                self.op("mxu.dma_wait", [loads])
            result = self.vector_code(self.group, shape, dict(buffers))
            self.store(result, out, store, here, f"{names} -> ({batch}, {row}, 0)")


def batch_and_rows(group: Group) -> tuple[int, int]:
    """How the rows are cut: as in the kernel that a whole input comes from, so that it can be taken as it is.

    Else all rows are one range, where that is the same in memory.
    """
    for value in group.inputs:
        source = value
        while (reshape := made_by(source, "stablehlo.reshape")) is not None:
            source = reshape.operands[0]
        shape = tensor_type(source.type).shape
        if made_by(source, "mxu.unpad", "mxu.kernel") is None or group.kinds[value] != FULL:
            continue
        if len(shape) == 3 and shape[2] == group.n and shape[0] * shape[1] == group.rows:
            return shape[0], shape[1]
    result = tensor_type(group.root.results[0].type)
    if same_tiles(result.shape, (group.rows, group.n), result.element):
        return 1, group.rows
    return math.prod(result.shape[:-2]), result.shape[-2]


def _block_rows(group: Group, rows: int, cores: int, chip: Chip, vmem_limit: int) -> int:
    """Rows of a block: some steps for each core, and all buffers within the limit."""
    made = [op.results[0] for op in group.members if op.name not in MOVES and group.kinds[op.results[0]] != SCALAR]
    columns = up(group.n, chip.lanes)
    # Two copies of what transfers touch: the inputs and the result.
    values = [*group.inputs, *group.inputs, *made, group.root.results[0]]
    row_bytes = sum(
        (columns if group.kinds[v] == FULL else chip.lanes) * tensor_type(v.type).element.bits // 8
        for v in values
        if group.kinds[v] != LANE
    )
    lane_bytes = sum(2 * columns * 4 for v in values if group.kinds[v] == LANE)
    unit = ROW_UNIT
    wanted = up(-(-rows // (cores * STEPS)), unit)
    most = (vmem_limit - lane_bytes) // row_bytes
    most = most // unit * unit if most >= unit else most // chip.sublanes * chip.sublanes
    if most < chip.sublanes:
        raise CompileError(
            f"{len(values)} values of rows of {group.n} elements do not fit into {vmem_limit} bytes of VMEM",
            hint="give the kernel a larger VMEM limit",
        )
    return min(wanted, most)
