"""StableHLO ops from values: one short function for each op that rewrites build.

The insertion point and the location are the caller's. Shapes are static; results have the types that the specification
infers from the operands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.mlir import ir, stablehlo


def op(name: str, operands: Sequence[ir.Value], *types: TensorType, **attributes: ir.Attribute) -> ir.Operation:
    """An op without regions, by its name in the dialect."""
    return ir.Operation.create(
        f"stablehlo.{name}",
        results=[ty.mlir for ty in types],
        operands=list(operands),
        attributes=attributes,
    )


def elements(array: np.ndarray, ty: TensorType, mlir_type: ir.Type | None = None) -> ir.Attribute:
    """Dense elements of `ty`; an array of one element is repeated."""
    mlir_type = ty.mlir if mlir_type is None else mlir_type
    if ty.size == 0:
        return ir.Attribute.parse(f"dense<> : {mlir_type}")
    data = np.ascontiguousarray(array, ty.element.dtype).reshape(-1)
    if ty.element.is_complex:
        part = data.view(ty.element.part.dtype)
        return ir.DenseElementsAttr.get(part if data.size == 1 else part.reshape(*ty.shape, 2), type=mlir_type)
    if not ty.element.is_bool and ty.element.name not in ("f16", "f32", "f64"):
        unsigned = ty.element.is_unsigned or ty.element.is_float
        data = data.view(f"{'u' if unsigned else 'i'}{ty.element.bytes}")
    return ir.DenseElementsAttr.get(data if data.size == 1 else data.reshape(ty.shape), type=mlir_type)


def constant(array: np.ndarray | np.generic, ty: TensorType) -> ir.Value:
    """A constant; an array of one element is repeated."""
    mlir_type = ty.mlir
    return ir.Operation.create(
        "stablehlo.constant", results=[mlir_type], attributes={"value": elements(np.asarray(array), ty, mlir_type)}
    ).results[0]


def elementwise(name: str, *operands: ir.Value) -> ir.Value:
    """An op whose result has the type of its last operand."""
    return op(name, operands, tensor_type(operands[-1].type)).results[0]


def reshape(x: ir.Value, shape: Sequence[int]) -> ir.Value:
    """x itself where it has the shape."""
    ty = tensor_type(x.type)
    return x if ty.shape == tuple(shape) else op("reshape", [x], ty.with_shape(tuple(shape))).results[0]


def transpose(x: ir.Value, permutation: Sequence[int]) -> ir.Value:
    """Dimension i of the result is dimension permutation[i] of x."""
    ty = tensor_type(x.type)
    if list(permutation) == list(range(ty.rank)):
        return x
    result = ty.with_shape(tuple(ty.shape[d] for d in permutation))
    return op("transpose", [x], result, permutation=integers(permutation)).results[0]


def broadcast(x: ir.Value, shape: Sequence[int], dims: Sequence[int]) -> ir.Value:
    """Dimension i of x is dimension dims[i] of the result."""
    ty = tensor_type(x.type)
    if ty.shape == tuple(shape) and list(dims) == list(range(ty.rank)):
        return x
    result = ty.with_shape(tuple(shape))
    return op("broadcast_in_dim", [x], result, broadcast_dimensions=integers(dims)).results[0]


def iota(ty: TensorType, dimension: int) -> ir.Value:
    return op("iota", [], ty, iota_dimension=integer(dimension)).results[0]


def slice_(x: ir.Value, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int]) -> ir.Value:
    """Elements start, start + stride, ... below limit of each dimension."""
    ty = tensor_type(x.type)
    shape = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(starts, limits, strides, strict=True))
    if shape == ty.shape:
        return x
    return op(
        "slice",
        [x],
        ty.with_shape(shape),
        start_indices=integers(starts),
        limit_indices=integers(limits),
        strides=integers(strides),
    ).results[0]


def pad(x: ir.Value, value: ir.Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int]) -> ir.Value:
    ty = tensor_type(x.type)
    shape = tuple(a + n + max(0, n - 1) * i + b for n, a, b, i in zip(ty.shape, low, high, interior, strict=True))
    return op(
        "pad",
        [x, value],
        ty.with_shape(shape),
        edge_padding_low=integers(low),
        edge_padding_high=integers(high),
        interior_padding=integers(interior),
    ).results[0]


def concatenate(parts: Sequence[ir.Value], dimension: int) -> ir.Value:
    if len(parts) == 1:
        return parts[0]
    types = [tensor_type(p.type) for p in parts]
    shape = list(types[0].shape)
    shape[dimension] = sum(ty.shape[dimension] for ty in types)
    return op("concatenate", parts, types[0].with_shape(tuple(shape)), dimension=integer(dimension)).results[0]


def reverse(x: ir.Value, dims: Sequence[int]) -> ir.Value:
    return op("reverse", [x], tensor_type(x.type), dimensions=integers(dims)).results[0] if dims else x


def convert(x: ir.Value, element: ElementType) -> ir.Value:
    ty = tensor_type(x.type)
    return x if ty.element == element else op("convert", [x], ty.with_element(element)).results[0]


def select(predicate: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
    return op("select", [predicate, on_true, on_false], tensor_type(on_true.type)).results[0]


def dot_dims(
    lhs_batching: Sequence[int],
    rhs_batching: Sequence[int],
    lhs_contracting: Sequence[int],
    rhs_contracting: Sequence[int],
) -> ir.Attribute:
    """dot_dimension_numbers."""
    return stablehlo.DotDimensionNumbers.get(
        list(lhs_batching), list(rhs_batching), list(lhs_contracting), list(rhs_contracting)
    )


def integers(numbers: Sequence[int]) -> ir.Attribute:
    """array<i64: ...>"""
    return ir.DenseI64ArrayAttr.get([int(n) for n in numbers])


def integer(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)
