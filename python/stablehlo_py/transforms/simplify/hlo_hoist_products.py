"""Products of one slice a step become one product of the whole in front of the loop.

while (i) { y = dot(x[i], w); ... }   ->   all = dot(x, w); while (i) { y = all[i]; ... }

x and w do not change in the loop, and x[i] is one of the outermost elements of x, such as a step of a sequence. The loop
makes at least as many steps as x is long, so nothing is computed for nobody; the rows of many small products are those of
a large one, which packs w once and is shared among threads. Each row sums the same products.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.core.collect import made_by, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import DotDims, DotGeneral
from stablehlo_py.mlir import ir
from stablehlo_py.records import record

MOST_ROWS = 256  # of one step's product; larger ones gain nothing
MOST_BYTES = 256 << 20  # of the results of all steps
CHAIN = ("stablehlo.reshape", "stablehlo.convert")  # between the slice and the product


class HloHoistProducts(Pass):
    """Multiply what a while reads slice by slice as a whole, in front of it."""

    name: ClassVar[str] = "hlo-hoist-products"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, op: ir.Operation) -> None:
        for loop in operations_named(op, "stablehlo.while"):
            _from(loop)


@record
class _Sliced:
    """source[at] as an operand of a product, by way of `chain`; leading: whether it still has the dimension of size 1."""

    source: ir.Value
    slice: ir.Operation
    chain: list[ir.Operation]
    leading: bool


def _from(loop: ir.Operation) -> None:
    body = loop.regions[1].blocks[0]
    counter = counter_of(loop)
    if counter is None or (counter.start, counter.step) != (0, 1):
        return
    inside = {*body.arguments, *(r for o in body.operations for r in o.operation.results)}
    for product in [o.operation for o in body.operations if o.operation.name == "stablehlo.dot_general"]:
        for side in (0, 1):
            sliced = _sliced(product.operands[side], inside)
            other = product.operands[1 - side]
            if sliced is not None and other not in inside and _pays(product, side, sliced, counter.end):
                _hoist(loop, product, side, sliced)
                break


def _sliced(value: ir.Value, inside: set[ir.Value]) -> _Sliced | None:
    """How an operand is made of one outermost element of a value from outside the loop; None if it is not."""
    chain: list[ir.Operation] = []
    while value in inside and (link := made_by(value, *CHAIN)) is not None:
        chain.insert(0, link)
        value = link.operands[0]
    found = made_by(value, "stablehlo.dynamic_slice")
    if found is None:
        return None
    whole, part = (tensor_type(v.type).shape for v in (found.operands[0], value))
    if found.operands[0] in inside or not part or part[0] != 1 or part[1:] != whole[1:]:
        return None
    leading, shape = True, part
    for op in chain:
        after = tensor_type(op.results[0].type).shape
        if after != shape:
            if not leading or after != part[1:]:
                return None
            leading, shape = False, after
    return _Sliced(found.operands[0], found, chain, leading)


def _pays(product: ir.Operation, side: int, sliced: _Sliced, steps: int) -> bool:
    """Whether every element is wanted, small products become a large one, and their results fit memory."""
    count = tensor_type(sliced.source.type).shape[0]
    dims, part = DotGeneral(product).dims, tensor_type(product.operands[side].type).shape
    free = _free(dims, side, len(part))
    if sliced.leading and 0 not in free:
        return False
    rows, size = math.prod(part[d] for d in free), tensor_type(product.results[0].type).bytes
    return 1 < count <= steps and rows <= MOST_ROWS and count * size <= MOST_BYTES


def _hoist(loop: ir.Operation, product: ir.Operation, side: int, sliced: _Sliced) -> None:
    source, dims = tensor_type(sliced.source.type), DotGeneral(product).dims
    ty = tensor_type(product.results[0].type)
    shift = 0 if sliced.leading else 1  # the product of the whole has one dimension more, in front
    batching, contracting = (
        ([d + shift * (s == side) for d in numbers] for s, numbers in enumerate(pair))
        for pair in ((dims.lhs_batching, dims.rhs_batching), (dims.lhs_contracting, dims.rhs_contracting))
    )
    numbers = make.dot_dims(*batching, *contracting)
    # where the outermost dimension of the source is in the result: the first free one of its side
    place = len(dims.lhs_batching)
    if side == 1:
        place += len(dims.lhs_free(tensor_type(product.operands[0].type).rank))
    shape = list(ty.shape)
    shape[place : place + 1 - shift] = [source.shape[0]]
    attributes = {name: product.attributes[name] for name in product.attributes} | {"dot_dimension_numbers": numbers}
    with ir.InsertionPoint(loop), product.location:
        whole = sliced.source
        for op in sliced.chain:
            whole = make.convert(whole, tensor_type(op.results[0].type).element)
        operands = [product.operands[0], product.operands[1]]
        operands[side] = whole
        everything = make.op("dot_general", operands, ty.with_shape(tuple(shape)), **attributes).results[0]
    start = sliced.slice.operands[1]
    with ir.InsertionPoint(product), product.location:
        zero = make.constant(np.zeros((), tensor_type(start.type).element.dtype), tensor_type(start.type))
        starts = [zero] * len(shape)
        starts[place], sizes = start, list(shape)
        sizes[place] = 1
        one = make.op(
            "dynamic_slice",
            [everything, *starts],
            ty.with_shape(tuple(sizes)),
            slice_sizes=make.integers(sizes),
        ).results[0]
        product.results[0].replace_all_uses_with(make.reshape(one, ty.shape))
    product.erase()


def _free(dims: DotDims, side: int, rank: int) -> tuple[int, ...]:
    return dims.rhs_free(rank) if side else dims.lhs_free(rank)
