"""Weights that a loop multiplies by in each step are packed once, in front of it.

while { y = dot(h, w) }   ->   p = panels of w; while { y = dot(h, columns of p) }

A panel is 32 columns of w, k outermost: what products pack rhs into on a CPU. The two ops that make columns of panels
again are marked and never run: a product's kernel takes them in and reads the panels as they are.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import DotGeneral
from stablehlo_py.mlir import ir
from stablehlo_py.transforms.simplify.panels import PANEL, UNPACK

MOST_ROWS = 128  # with more, packing is little beside the product itself
LEAST_ROWS = 9  # with fewer, rhs is not packed at all
LEAST_BYTES = 64 << 10  # of what is packed


class HloPackInvariants(Pass):
    """Pack the right sides of products in a while that do not change in it, in front of it."""

    name: ClassVar[str] = "hlo-pack-invariants"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, op: ir.Operation) -> None:
        for loop in operations_named(op, "stablehlo.while"):
            _pack(loop)


def _pack(loop: ir.Operation) -> None:
    body = loop.regions[1].blocks[0]
    inside = {*body.arguments, *(r for o in body.operations for r in o.operation.results)}
    for product in [o.operation for o in body.operations if o.operation.name == "stablehlo.dot_general"]:
        weights = product.operands[1]
        if weights not in inside and _pays(product):
            dims = DotGeneral(product).dims
            k_first = dims.rhs_contracting == (0,)
            with ir.InsertionPoint(loop), product.location:
                panels = _panels(weights, k_first=k_first)
            with ir.InsertionPoint(product), product.location:
                product.operands[1] = _columns(panels)
            product.attributes["dot_dimension_numbers"] = make.dot_dims((), (), dims.lhs_contracting, (0,))


def _pays(product: ir.Operation) -> bool:
    dims, ty = DotGeneral(product).dims, tensor_type(product.results[0].type)
    lhs, rhs = (tensor_type(v.type) for v in product.operands)
    if dims.lhs_batching or len(dims.rhs_contracting) != 1 or rhs.rank != 2:
        return False
    if any(t.element.name != "f32" for t in (ty, lhs, rhs)) or rhs.bytes < LEAST_BYTES:
        return False
    columns = rhs.shape[1 - dims.rhs_contracting[0]]
    return columns % PANEL == 0 and LEAST_ROWS <= ty.size // columns <= MOST_ROWS


def _panels(weights: ir.Value, *, k_first: bool) -> ir.Value:
    """(k, n) or (n, k) as (n / 32, k, 32)."""
    shape = tensor_type(weights.type).shape
    if k_first:
        k, n = shape
        return make.transpose(make.reshape(weights, (k, n // PANEL, PANEL)), (1, 0, 2))
    n, k = shape
    return make.transpose(make.reshape(weights, (n // PANEL, PANEL, k)), (0, 2, 1))


def _columns(panels: ir.Value) -> ir.Value:
    """(n / 32, k, 32) as (k, n), by ops that are never run."""
    count, k, width = tensor_type(panels.type).shape
    moved = make.transpose(panels, (1, 0, 2))
    flat = make.reshape(moved, (k, count * width))
    for value in (moved, flat):
        value.owner.operation.attributes[UNPACK] = ir.UnitAttr.get()
    return flat


def on_panels(product: ir.Operation, panels: ir.Value) -> ir.Operation:
    """The product by the panels as they are: (.., n / 32, 32); in front of the one by their columns."""
    dims, ty = DotGeneral(product).dims, tensor_type(product.results[0].type)
    count, _, width = tensor_type(panels.type).shape
    attributes = {name: product.attributes[name] for name in product.attributes}
    attributes["dot_dimension_numbers"] = make.dot_dims((), (), dims.lhs_contracting, (1,))
    with ir.InsertionPoint(product), product.location:
        shape = (*ty.shape[:-1], count, width)
        return make.op("dot_general", [product.operands[0], panels], ty.with_shape(shape), **attributes)
