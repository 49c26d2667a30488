"""Building StableHLO and mxu ops at an insertion point: the few that the passes of this target need."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.collect import operations_named as operations_named
from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir


def i64(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def i64s(values: Sequence[int]) -> ir.ArrayAttr:
    return ir.ArrayAttr.get([i64(v) for v in values])


def segments(given: int, most: int) -> ir.DenseI32ArrayAttr:
    """operandSegmentSizes of an op of which `given` of `most` single operands are there."""
    return ir.DenseI32ArrayAttr.get([1] * given + [0] * (most - given))


def text(value: str) -> ir.StringAttr:
    return ir.StringAttr.get(value)


def flag(value: bool) -> ir.BoolAttr:
    return ir.BoolAttr.get(value)


def ref_type(tensor: TensorType, space: str, layout: str) -> mxu.RefType:
    """`!mxu.ref<tensor, space, layout>`."""
    return mxu.RefType.get(ir.TypeAttr.get(tensor.mlir), text(space), mxu.TiledAttr.get(text(layout)))


def op(
    name: str, operands: Sequence[ir.Value], result: TensorType, attributes: dict[str, ir.Attribute] | None = None
) -> ir.Value:
    """An op with one result."""
    created = ir.Operation.create(name, results=[result.mlir], operands=list(operands), attributes=attributes or {})
    return created.results[0]


def transpose(value: ir.Value, permutation: Sequence[int]) -> ir.Value:
    if list(permutation) == list(range(len(permutation))):
        return value
    ty = tensor_type(value.type)
    result = ty.with_shape(tuple(ty.shape[d] for d in permutation))
    return op("stablehlo.transpose", [value], result, {"permutation": ir.DenseI64ArrayAttr.get(list(permutation))})


def reshape(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    ty = tensor_type(value.type)
    if ty.shape == tuple(shape):
        return value
    return op("stablehlo.reshape", [value], ty.with_shape(tuple(shape)))


def convert(value: ir.Value, element: ElementType) -> ir.Value:
    ty = tensor_type(value.type)
    return value if ty.element == element else op("stablehlo.convert", [value], ty.with_element(element))


def contract(lhs: ir.Value, rhs: ir.Value, result: TensorType, *, lhs_t: bool, rhs_t: bool, passes: int) -> ir.Value:
    """`mxu.contract`: [b,m,k] x [b,k,n] -> [b,m,n]."""
    attributes = {"lhs_t": flag(lhs_t), "rhs_t": flag(rhs_t), "passes": i64(passes)}
    return op("mxu.contract", [lhs, rhs], result, attributes)


def replace(operation: ir.Operation, value: ir.Value) -> None:
    operation.results[0].replace_all_uses_with(value)
    operation.erase()
