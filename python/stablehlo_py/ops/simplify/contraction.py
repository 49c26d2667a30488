"""dot_general with dimensions of size 1."""

from __future__ import annotations

from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import DotGeneral
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import operands, type_of

_KEPT = ("precision_config", "algorithm")


@simplify("stablehlo.dot_general")
def dot_unit_batch(op: DotGeneral) -> ir.Value | None:
    """dot(x : 1 x m x k, y : 1 x k x n) == reshape(dot(x : m x k, y : k x n)), for batch dimensions of size 1."""
    lhs, rhs = operands(op)
    dims = op.dims
    shapes = type_of(lhs).shape, type_of(rhs).shape
    units = [i for i, d in enumerate(dims.lhs_batching) if shapes[0][d] == 1]
    if not units:
        return None
    return _without(op, [dims.lhs_batching[i] for i in units], [dims.rhs_batching[i] for i in units])


@simplify("stablehlo.dot_general")
def dot_unit_contraction(op: DotGeneral) -> ir.Value | None:
    """dot(x : 1 x k, y : 1 x k), contracting both == dot(x : k, y : k), where the sum has other terms."""
    lhs, _ = operands(op)
    dims = op.dims
    shape = type_of(lhs).shape
    units = [i for i, d in enumerate(dims.lhs_contracting) if shape[d] == 1]
    if not units or len(units) == len(dims.lhs_contracting):
        return None
    return _without(op, [dims.lhs_contracting[i] for i in units], [dims.rhs_contracting[i] for i in units])


def _without(op: DotGeneral, lhs_gone: list[int], rhs_gone: list[int]) -> ir.Value:
    """The product of operands that lack some dimensions of size 1, in the shape of the op."""
    lhs, rhs = operands(op)
    dims = op.dims
    kept = [
        [d for d in range(type_of(side).rank) if d not in gone] for side, gone in ((lhs, lhs_gone), (rhs, rhs_gone))
    ]

    def renumbered(numbers: tuple[int, ...], side: int) -> list[int]:
        return [kept[side].index(d) for d in numbers if d in kept[side]]

    new = [make.reshape(v, [type_of(v).shape[d] for d in k]) for v, k in zip((lhs, rhs), kept, strict=True)]
    shape = [type_of(lhs).shape[d] for d in dims.lhs_batching if d in kept[0]]
    shape += [type_of(lhs).shape[d] for d in dims.lhs_free(type_of(lhs).rank)]
    shape += [type_of(rhs).shape[d] for d in dims.rhs_free(type_of(rhs).rank)]
    attributes = {name: op.operation.attributes[name] for name in _KEPT if op.has(name)}
    product = make.op(
        "dot_general",
        new,
        op.type.with_shape(tuple(shape)),
        dot_dimension_numbers=make.dot_dims(
            renumbered(dims.lhs_batching, 0),
            renumbered(dims.rhs_batching, 1),
            renumbered(dims.lhs_contracting, 0),
            renumbered(dims.rhs_contracting, 1),
        ),
        **attributes,
    )
    return make.reshape(product.results[0], op.type.shape)
