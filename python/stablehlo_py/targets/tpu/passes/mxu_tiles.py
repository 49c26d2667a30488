"""mxu-tiles: each canonical product gets its plan, and its operands their physical shapes."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import replace
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.kernels.kernel_builder import padded, physical_type, unpadded
from stablehlo_py.targets.tpu.passes.mxu_fuse import fusion_of
from stablehlo_py.targets.tpu.planning.group import FULL, MOVES, PRODUCTS, region_group
from stablehlo_py.targets.tpu.planning.plan import Plan, Product, plan_product


class MxuTiles(Pass):
    """Choose block sizes, memory spaces and the split over cores of each mxu.contract, and pad its operands.

    vmem_limit: bytes for the blocks of one kernel; 0 takes the chip's own limit.
    """

    name: ClassVar[str] = "mxu-tiles"
    chip: str = "v5e"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        machine = chip(self.chip)
        for contract in emit.operations_named(op, "mxu.contract"):
            product = product_of(contract)
            plan = plan_product(product, machine, self.vmem_limit, split_of(fusion_of(contract) or contract))
            emit.replace(contract, self.tiled(contract, product, plan))

    def tiled(self, contract: ir.Operation, product: Product, plan: Plan) -> ir.Value:
        """contract(lhs, rhs) -> unpad(tiled_contract(pad(lhs), pad(rhs))); padding stays outside of a fusion."""
        machine = chip(self.chip)
        with ir.InsertionPoint(fusion_of(contract) or contract), contract.location:
            lhs, rhs = (padded(value, machine) for value in contract.operands)
        logical = tensor_type(contract.results[0].type)
        attributes = {
            "lhs_t": contract.attributes["lhs_t"],
            "rhs_t": contract.attributes["rhs_t"],
            "passes": contract.attributes["passes"],
            "logical": emit.i64s([product.b, product.m, product.n, product.k]),
            "blocks": emit.i64s([plan.bm, plan.bn, plan.bk]),
            "spaces": ir.ArrayAttr.get([emit.text(space) for space in plan.spaces]),
            "split": emit.text(plan.split),
            "order": emit.text(plan.order),
            "estimate": ir.FloatAttr.get(ir.F64Type.get(), plan.estimate),
            "chip": emit.text(self.chip),
        }
        with ir.InsertionPoint(contract), contract.location:
            physical = emit.op("mxu.tiled_contract", [lhs, rhs], physical_type(logical, machine), attributes)
            return unpadded(physical, logical, logical.shape)


def split_of(operation: ir.Operation) -> str:
    """What mxu-split-cores has chosen for an op; nothing where it did not run."""
    return ir.StringAttr(operation.attributes["split"]).value if "split" in operation.attributes else ""


def product_of(contract: ir.Operation) -> Product:
    """The sizes and types of an mxu.contract, and what the fusion that it stands in adds to a block."""
    lhs, rhs = (tensor_type(value.type) for value in contract.operands)
    out = tensor_type(contract.results[0].type)
    lhs_t, rhs_t = (bool(mxu.integer(contract.attributes[name])) for name in ("lhs_t", "rhs_t"))
    product = Product(
        b=out.shape[0],
        m=out.shape[1],
        n=out.shape[2],
        k=lhs.shape[1 if lhs_t else 2],
        lhs=lhs.element,
        rhs=rhs.element,
        out=out.element,
        lhs_t=lhs_t,
        rhs_t=rhs_t,
        passes=mxu.integer(contract.attributes["passes"]),
        shared=rhs.shape[0] < out.shape[0],
    )
    fusion = fusion_of(contract)
    if fusion is None:
        return product
    group = region_group(fusion.regions[0].blocks[0])

    def bits(values: list[ir.Value]) -> int:
        return sum(tensor_type(v.type).element.bits for v in values if group.kinds[v] == FULL)

    made = [op.results[0] for op in group.members if op.name not in (*MOVES, *PRODUCTS)]
    return replace(product, made_bits=bits(made), loaded_bits=bits(group.inputs))
