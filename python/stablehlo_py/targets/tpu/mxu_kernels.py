"""mxu-kernels: a planned product becomes a kernel, a loop nest of transfers, weight pushes, matmuls and pops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import ElementType, TensorType, element_type, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.layout import natural_layout


@dataclass(frozen=True)
class MxuKernels(Pass):
    """Turn each mxu.tiled_contract into an mxu.kernel with one copy of each buffer."""

    name: ClassVar[str] = "mxu-kernels"

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for number, tiled in enumerate(emit.operations_named(op, "mxu.tiled_contract")):
            with ir.InsertionPoint(tiled), tiled.location:
                emit.replace(tiled, _Product(tiled).kernel(f"matmul.{number}").results[0])


class _Product:
    """The kernel of one product.

    core_split c:                      # where there is more than one core
      loop b, i, j:                    # or b, j, i, as the plan says
        fill acc
        loop k:
          load lhs[b,i,k], rhs[b,k,j]; wait
          mask what lies behind the contracted size
          loop kk, nn:  push rhs[kk,nn]; acc[:,nn] += lhs[:,kk] . weights
        pop acc -> out; store out[b,i,j]; wait
    """

    def __init__(self, tiled: ir.Operation) -> None:
        self.tiled = tiled
        attributes = tiled.attributes
        self.b, self.m, self.n, self.k = (mxu.integer(a) for a in attributes["logical"])
        self.bm, self.bn, self.bk = (mxu.integer(a) for a in attributes["blocks"])
        self.lhs_space, self.rhs_space = (ir.StringAttr(a).value for a in attributes["spaces"])
        self.split = ir.StringAttr(attributes["split"]).value
        self.order = ir.StringAttr(attributes["order"]).value
        self.chip: Chip = chip(ir.StringAttr(attributes["chip"]).value)
        self.lhs_t, self.rhs_t = (bool(mxu.integer(attributes[name])) for name in ("lhs_t", "rhs_t"))
        self.lhs, self.rhs = (tensor_type(value.type) for value in tiled.operands)
        self.out = tensor_type(tiled.results[0].type)
        self.acc_element = element_type("f32" if self.lhs.element.is_float else "i32")
        self.lhs_shape = (self.bk, self.bm) if self.lhs_t else (self.bm, self.bk)
        self.rhs_shape = (self.bn, self.bk) if self.rhs_t else (self.bk, self.bn)
        self.offset = 0

    def kernel(self, label: str) -> ir.Operation:
        lhs_logical = [self.b, self.k, self.m] if self.lhs_t else [self.b, self.m, self.k]
        rhs_logical = [self.b, self.n, self.k] if self.rhs_t else [self.b, self.k, self.n]
        logical = [lhs_logical, rhs_logical, [self.b, self.m, self.n]]
        operands = list(self.tiled.operands)
        kernel = ir.Operation.create(
            "mxu.kernel",
            results=[self.out.mlir],
            operands=operands,
            attributes={
                "label": emit.text(label),
                "chip": emit.text(self.chip.name),
                "logical": ir.ArrayAttr.get([emit.i64s(shape) for shape in logical]),
                "operandSegmentSizes": emit.segments(len(operands), mxu.MAX_INPUTS),
            },
            regions=1,
        )
        refs = [self.ref(self.lhs, self.lhs_space), self.ref(self.rhs, self.rhs_space), self.ref(self.out, "hbm")]
        block = ir.Block.create_at_start(kernel.regions[0], refs)
        with ir.InsertionPoint(block):
            self.body(*block.arguments)
        return kernel

    def ref(self, tensor: TensorType, space: str) -> mxu.RefType:
        layout = natural_layout(tensor.shape, tensor.element, machine=self.chip).tiles
        return emit.ref_type(tensor, space, layout)

    def alloc(self, label: str, shape: tuple[int, int], element: ElementType) -> ir.Value:
        """A buffer in VMEM behind the ones before it."""
        tensor = TensorType(shape, element)
        attributes = {"label": emit.text(label), "offset": emit.i64(self.offset), "buffers": emit.i64(1)}
        self.offset += shape[0] * shape[1] * element.bits // 8
        created = ir.Operation.create("mxu.alloc", results=[self.ref(tensor, "vmem")], attributes=attributes)
        return created.results[0]

    def semaphore(self) -> ir.Value:
        return ir.Operation.create("mxu.make_semaphore", results=[mxu.SemaphoreType.get()]).results[0]

    def body(self, lhs: ir.Value, rhs: ir.Value, out: ir.Value) -> None:
        self.lhs_block = None if self.lhs_space == "vmem" else self.alloc("lhs", self.lhs_shape, self.lhs.element)
        self.rhs_block = None if self.rhs_space == "vmem" else self.alloc("rhs", self.rhs_shape, self.rhs.element)
        self.turned = self.alloc("lhs.t", (self.bm, self.bk), self.lhs.element) if self.lhs_t else None
        acc = self.alloc("acc", (self.bm, self.bn), self.acc_element)
        block = self.alloc("out", (self.bm, self.bn), self.out.element)
        loads, store = self.semaphore(), self.semaphore()
        index = ir.IndexType.get()
        cores = self.chip.cores
        core: list[ir.Value] = []
        point = ir.InsertionPoint.current
        if cores > 1:
            split = ir.Operation.create("mxu.core_split", attributes={"cores": emit.i64(cores)}, regions=1)
            core_block = ir.Block.create_at_start(split.regions[0], [index])
            core = [core_block.arguments[0]]
            point = ir.InsertionPoint(core_block)
        with point:
            self.grid(core, lhs, rhs, out, acc, block, loads, store)
        if cores > 1:
            ir.Operation.create("mxu.barrier")

    def grid(
        self,
        core: list[ir.Value],
        lhs: ir.Value,
        rhs: ir.Value,
        out: ir.Value,
        acc: ir.Value,
        block: ir.Value,
        loads: ir.Value,
        store: ir.Value,
    ) -> None:
        cores = self.chip.cores if core else 1
        trips_m = -(-self.m // (self.bm * (cores if self.split == "m" else 1)))
        trips_n = -(-self.n // (self.bn * (cores if self.split == "n" else 1)))
        trips_k = -(-self.k // self.bk)
        bounds = [self.b, trips_m, trips_n] if self.order == "mn" else [self.b, trips_n, trips_m]
        outer, indices = self.loop(bounds)
        b, i, j = indices if self.order == "mn" else (indices[0], indices[2], indices[1])
        # Affine maps of (core, b, i, j, k), without the core where there is one only.
        names = ["c"] * len(core) + ["b", "i", "j"]
        row = f"c * {trips_m} + i" if core and self.split == "m" else "i"
        column = f"c * {trips_n} + j" if core and self.split == "n" else "j"
        with outer:
            self.op("mxu.fill", [acc], value=ir.FloatAttr.get(ir.F32Type.get(), 0.0))
            inner, (k,) = self.loop([trips_k])
            with inner:
                names_k, values_k = [*names, "k"], [*core, b, i, j, k]
                lhs_map = _map(names_k, f"b, k, {row}" if self.lhs_t else f"b, {row}, k")
                rhs_map = _map(names_k, f"b, {column}, k" if self.rhs_t else f"b, k, {column}")
                lhs_block = self.fetch(lhs, self.lhs_block, self.lhs_shape, loads, values_k, lhs_map)
                rhs_block = self.fetch(rhs, self.rhs_block, self.rhs_shape, loads, values_k, rhs_map)
                if self.lhs_block is not None or self.rhs_block is not None:
                    self.op("mxu.dma_wait", [loads])
                if self.k % self.bk:
                    self.mask(lhs_block, 0 if self.lhs_t else 1, values_k, lhs_map)
                    self.mask(rhs_block, 1 if self.rhs_t else 0, values_k, rhs_map)
                if self.turned is not None:
                    self.op("mxu.transpose", [lhs_block, self.turned])
                    lhs_block = self.turned
                self.passes(lhs_block, rhs_block, acc)
            self.op("mxu.pop", [acc, block])
            out_map = _map(names, f"b, {row}, {column}")
            self.op("mxu.dma_start", [block, out, store, *core, b, i, j], map=out_map)
            self.op("mxu.dma_wait", [store])

    def fetch(
        self,
        large: ir.Value,
        small: ir.Value | None,
        shape: tuple[int, int],
        semaphore: ir.Value,
        indices: list[ir.Value],
        map: ir.Attribute,
    ) -> ir.Value:
        """The block of an operand: brought by a transfer, or a view where the operand is in VMEM."""
        if small is not None:
            self.op("mxu.dma_start", [large, small, semaphore, *indices], map=map)
            return small
        result = self.ref(TensorType(shape, tensor_type(mxu.ref_tensor(large.type)).element), "vmem")
        return ir.Operation.create(
            "mxu.view", results=[result], operands=[large, *indices], attributes={"map": map}
        ).results[0]

    def mask(self, block: ir.Value, dim: int, indices: list[ir.Value], map: ir.Attribute) -> None:
        self.op("mxu.mask", [block, *indices], dim=emit.i64(dim), limit=emit.i64(self.k), map=map)

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

    def loop(self, bounds: list[int]) -> tuple[ir.InsertionPoint, list[ir.Value]]:
        loop = ir.Operation.create("mxu.loop", attributes={"bounds": emit.i64s(bounds)}, regions=1)
        block = ir.Block.create_at_start(loop.regions[0], [ir.IndexType.get()] * len(bounds))
        return ir.InsertionPoint(block), list(block.arguments)

    def op(self, name: str, operands: list[ir.Value], **attributes: ir.Attribute) -> None:
        ir.Operation.create(name, operands=operands, attributes=attributes)


def _map(names: list[str], results: str) -> ir.Attribute:
    return ir.Attribute.parse(f"affine_map<({', '.join(names)}) -> ({results})>")
