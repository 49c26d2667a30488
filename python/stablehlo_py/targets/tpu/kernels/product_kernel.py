"""The kernel of a product, with the elementwise ops that follow it on its blocks.

core_split c:                      # where there is more than one core
  loop b, i, j:                    # or b, j, i, as the plan says
    load the group's inputs[b,i,j]
    fill acc
    loop k:
      load lhs[b,i,k], rhs[b,k,j]; wait
      mask what lies behind the contracted size
      loop kk, nn:  push rhs[kk,nn]; acc[:,nn] += lhs[:,kk] . weights
    pop acc -> out; the group's vector code
    store out[b,i,j]; wait
"""

from __future__ import annotations

from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.kernel_builder import (
    KernelBuilder,
    accumulator_of,
    as_blocks,
    block_map,
    float_zero,
    physical_type,
    unpadded,
)
from stablehlo_py.targets.tpu.planning.group import FULL, LANE, Group


class ProductKernel(KernelBuilder):
    """From an mxu.tiled_contract, and the group of the fusion that it stands in."""

    def __init__(self, tiled: ir.Operation, group: Group | None = None) -> None:
        attributes = tiled.attributes
        super().__init__(chip(ir.StringAttr(attributes["chip"]).value))
        self.tiled, self.group = tiled, group
        self.b, self.m, self.n, self.k = (mxu.integer(a) for a in attributes["logical"])
        self.bm, self.bn, self.bk = (mxu.integer(a) for a in attributes["blocks"])
        self.spaces = [ir.StringAttr(a).value for a in attributes["spaces"]]
        self.split, self.order = (ir.StringAttr(attributes[name]).value for name in ("split", "order"))
        self.lhs_t, self.rhs_t = (bool(mxu.integer(attributes[name])) for name in ("lhs_t", "rhs_t"))
        self.lhs, self.rhs = (tensor_type(value.type) for value in tiled.operands)
        self.product = tensor_type(tiled.results[0].type)
        self.lhs_shape = (self.bk, self.bm) if self.lhs_t else (self.bm, self.bk)
        self.rhs_shape = (self.bn, self.bk) if self.rhs_t else (self.bk, self.bn)

    def build(self, label: str) -> ir.Value:
        """The kernel at the insertion point; its result is that of the fusion, or of the tiled_contract."""
        lhs_logical = [self.b, self.k, self.m] if self.lhs_t else [self.b, self.m, self.k]
        rhs_batch = self.rhs.shape[0]
        rhs_logical = [rhs_batch, self.n, self.k] if self.rhs_t else [rhs_batch, self.k, self.n]
        inputs = self.group.inputs if self.group else []
        kinds = [self.group.kinds[value] for value in inputs] if self.group else []
        blocks = [as_blocks(v, k, self.b, self.m, self.n, self.chip) for v, k in zip(inputs, kinds, strict=True)]
        logical = [lhs_logical, rhs_logical]
        for kind in kinds:
            last = self.chip.lanes if kind not in (FULL, LANE) else self.n
            logical.append([1, 1, self.n] if kind == LANE else [self.b, self.m, last])
        logical.append([self.b, self.m, self.n])
        element = tensor_type(self.group.root.results[0].type).element if self.group else self.product.element
        out = TensorType((self.b, self.m, self.n), element)
        kernel = self.create(
            label,
            [*self.tiled.operands, *blocks],
            [*self.spaces, *("hbm" for _ in blocks)],
            logical,
            physical_type(out, self.chip),
        )
        kernel.attributes["estimate"] = self.tiled.attributes["estimate"]
        self.body(element)
        if self.group is None:
            return kernel.results[0]
        return unpadded(kernel.results[0], out, tensor_type(self.group.root.results[0].type).shape)

    def body(self, element: ElementType) -> None:
        lhs, rhs, *extra, out = self.block.arguments
        self.lhs_block = None if self.spaces[0] == "vmem" else self.alloc("lhs", self.lhs_shape, self.lhs.element)
        self.rhs_block = None if self.spaces[1] == "vmem" else self.alloc("rhs", self.rhs_shape, self.rhs.element)
        self.turned = self.alloc("lhs.t", (self.bm, self.bk), self.lhs.element) if self.lhs_t else None
        acc = self.alloc("acc", (self.bm, self.bn), accumulator_of(self.lhs.element))
        popped = self.alloc("out" if self.group is None else "product", (self.bm, self.bn), self.product.element)
        self.inputs = self.input_buffers(self.group, (self.bm, self.bn)) if self.group else {}
        self.loads, store = self.semaphore(), self.semaphore()
        point, core = self.cores()
        cores = self.chip.cores if core else 1
        trips_m = -(-self.m // (self.bm * (cores if self.split == "m" else 1)))
        trips_n = -(-self.n // (self.bn * (cores if self.split == "n" else 1)))
        # Affine maps of (c, b, i, j, k), without the core where there is one only.
        self.names = ", ".join(["c"] * len(core) + ["b", "i", "j"])
        batches = -(-self.b // cores) if self.split == "b" else self.b
        self.batch = f"c * {batches} + b" if core and self.split == "b" else "b"
        self.row = f"c * {trips_m} + i" if core and self.split == "m" else "i"
        self.column = f"c * {trips_n} + j" if core and self.split == "n" else "j"
        with point:
            bounds = [batches, trips_m, trips_n] if self.order == "mn" else [batches, trips_n, trips_m]
            outer, indices = self.loop(bounds)
        b, i, j = indices if self.order == "mn" else (indices[0], indices[2], indices[1])
        here = [*core, b, i, j]
        with outer:
            self.load_inputs(extra, here)
            self.op("mxu.fill", [acc], value=float_zero())
            inner, (k,) = self.loop([-(-self.k // self.bk)])
            with inner:
                self.sums(lhs, rhs, acc, [*here, k])
            self.op("mxu.pop", [acc, popped])
            result = popped
            if self.group is not None and self.group.product is not None:
                if self.inputs:
                    self.op("mxu.dma_wait", [self.input_semaphore])
                buffers = {self.group.product.results[0]: popped} | self.inputs
                result = self.vector_code(self.group, (self.bm, self.bn), buffers)
            self.store(result, out, store, here, f"({self.names}) -> ({self.batch}, {self.row}, {self.column})")

    def load_inputs(self, extra: list[ir.Value], here: list[ir.Value]) -> None:
        """The transfers of the group's inputs start before the product and are waited for behind it."""
        if not self.inputs or self.group is None:
            return
        self.input_semaphore = self.semaphore()
        for (value, small), large in zip(self.inputs.items(), extra, strict=True):
            kind = self.group.kinds[value]
            block = {
                FULL: f"{self.batch}, {self.row}, {self.column}",
                LANE: f"0, 0, {self.column}",
            }.get(kind, f"{self.batch}, {self.row}, 0")
            self.load(large, small, self.input_semaphore, here, f"({self.names}) -> ({block})")

    def sums(self, lhs: ir.Value, rhs: ir.Value, acc: ir.Value, here: list[ir.Value]) -> None:
        """One step along the contracted dimension."""
        lhs_map = f"({self.names}, k) -> (" + (
            f"{self.batch}, k, {self.row})" if self.lhs_t else f"{self.batch}, {self.row}, k)"
        )
        b = self.batch if self.rhs.shape[0] == self.b else "0"
        rhs_map = f"({self.names}, k) -> (" + (f"{b}, {self.column}, k)" if self.rhs_t else f"{b}, k, {self.column})")
        lhs_block = self.fetch(lhs, self.lhs_block, self.lhs_shape, here, lhs_map)
        rhs_block = self.fetch(rhs, self.rhs_block, self.rhs_shape, here, rhs_map)
        if self.lhs_block is not None or self.rhs_block is not None:
            self.op("mxu.dma_wait", [self.loads])
        if self.k % self.bk:
            self.mask(lhs_block, 0 if self.lhs_t else 1, here, lhs_map)
            self.mask(rhs_block, 1 if self.rhs_t else 0, here, rhs_map)
        if self.turned is not None:
            self.op("mxu.transpose", [lhs_block, self.turned])
            lhs_block = self.turned
        self.passes(lhs_block, rhs_block, acc)

    def fetch(
        self, large: ir.Value, small: ir.Value | None, shape: tuple[int, int], here: list[ir.Value], map: str
    ) -> ir.Value:
        """The block of an operand: brought by a transfer, or a view where the operand is in VMEM."""
        if small is not None:
            self.load(large, small, self.loads, here, map)
            return small
        result = self.ref(TensorType(shape, tensor_type(mxu.ref_tensor(large.type)).element), "vmem")
        attributes = {"map": block_map(map)}
        return ir.Operation.create(
            "mxu.view", results=[result], operands=[large, *here], attributes=attributes
        ).results[0]

    def mask(self, block: ir.Value, dim: int, here: list[ir.Value], map: str) -> None:
        self.op("mxu.mask", [block, *here], dim=emit.i64(dim), limit=emit.i64(self.k), map=block_map(map))

    def passes(self, lhs_block: ir.Value, rhs_block: ir.Value, acc: ir.Value) -> None:
        """All weight tiles of the block, k slowest: each column of tiles takes its sums in the order of k."""
        dim = self.chip.weight_tile
        inner, (k, n) = self.loop([self.bk // dim, self.bn // dim])
        tile = TensorType((dim, dim), self.rhs.element)
        with inner:
            weights = ir.Operation.create(
                "mxu.push",
                results=[mxu.WeightsType.get(ir.TypeAttr.get(tile.mlir))],
                operands=[rhs_block, k, n],
                attributes={"transposed": emit.flag(self.rhs_t)},
            ).results[0]
            self.op("mxu.matmul", [lhs_block, weights, acc, k, n], passes=self.tiled.attributes["passes"])
