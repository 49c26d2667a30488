"""mxu-tiles: each canonical product gets its plan, and its operands their physical shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir
from stablehlo_py.targets.tpu import emit
from stablehlo_py.targets.tpu.layout import natural_layout
from stablehlo_py.targets.tpu.plan import Plan, Product, plan_product


@dataclass(frozen=True)
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
            plan = plan_product(product, machine, self.vmem_limit)
            with ir.InsertionPoint(contract), contract.location:
                emit.replace(contract, self.tiled(contract, product, plan))

    def tiled(self, contract: ir.Operation, product: Product, plan: Plan) -> ir.Value:
        """contract(lhs, rhs) -> unpad(tiled_contract(pad(lhs), pad(rhs)))."""
        lhs, rhs = (self.padded(value) for value in contract.operands)
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
            "chip": emit.text(self.chip),
        }
        physical = emit.op("mxu.tiled_contract", [lhs, rhs], physical_type(logical, self.chip), attributes)
        return physical if physical.type == contract.results[0].type else emit.op("mxu.unpad", [physical], logical)

    def padded(self, value: ir.Value) -> ir.Value:
        ty = tensor_type(value.type)
        physical = physical_type(ty, self.chip)
        return value if physical == ty else emit.op("mxu.pad", [value], physical)


def physical_type(ty: TensorType, chip_name: str) -> TensorType:
    """The type with whole tiles in its two minor dimensions."""
    return ty.with_shape(natural_layout(ty.shape, ty.element, machine=chip_name).padded_shape)


def product_of(contract: ir.Operation) -> Product:
    """The sizes and types of an mxu.contract."""
    lhs, rhs = (tensor_type(value.type) for value in contract.operands)
    out = tensor_type(contract.results[0].type)
    lhs_t, rhs_t = (bool(mxu.integer(contract.attributes[name])) for name in ("lhs_t", "rhs_t"))
    return Product(
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
    )
