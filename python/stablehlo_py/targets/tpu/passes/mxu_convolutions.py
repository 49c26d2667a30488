"""mxu-convolutions: a convolution becomes one dot_general over all window positions and input features."""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Convolution
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.targets.tpu import emit

MOST_POSITIONS = 256  # a window of more positions is not a list of slices any more


class MxuConvolutions(Pass):
    """Turn each convolution into slices, one for each position of its window, and a dot_general.

    out[b, p, f] = sum over t, c of in[b, p * stride + t * dilation, c] * kernel[t, c, f]
    """

    name: ClassVar[str] = "mxu-convolutions"

    def run(self, op: ir.Operation) -> None:
        for convolution in emit.operations_named(op, "stablehlo.convolution"):
            view = Convolution(convolution)
            if unmapped(view) is None:
                with ir.InsertionPoint(convolution), convolution.location:
                    value = as_product(view)
                emit.replace(convolution, value)


def unmapped(op: Convolution) -> str | None:
    """Why a convolution stays as it is; None where it becomes a product."""
    if not all(ty.is_static for ty in (*op.operand_types, op.type)):
        return "its shape is not static"
    if any(0 in ty.shape for ty in (*op.operand_types, op.type)):
        return "it has no elements"
    kernel = op.operand_types[1]
    positions = math.prod(kernel.shape[d] for d in op.dims.kernel_spatial)
    if positions > MOST_POSITIONS:
        return f"its window has {positions} positions, more than {MOST_POSITIONS}"
    return None


def as_product(op: Convolution) -> ir.Value:
    """lhs [g, b, p.., t c] x rhs [g, t c, f] -> [g, b, p.., f], with g groups, put into the order of the output."""
    dims, spatial = op.dims, op.spatial_rank
    lhs, rhs = op.operation.operands
    groups, batch_groups = op.feature_group_count, op.batch_group_count
    count = groups * batch_groups
    # [b, spatial.., c] and [spatial.., c, f].
    image = emit.transpose(lhs, (dims.input_batch, *dims.input_spatial, dims.input_feature))
    kernel = emit.transpose(rhs, (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature))
    reversed_dims = [d for d, turned in enumerate(op.window_reversal) if turned]
    if reversed_dims:
        kernel = emit.op(
            "stablehlo.reverse",
            [kernel],
            tensor_type(kernel.type),
            {"dimensions": ir.DenseI64ArrayAttr.get(reversed_dims)},
        )
    image = _padded(image, op.padding, op.lhs_dilation)

    window = tensor_type(kernel.type).shape[:spatial]
    out = tuple(op.type.shape[d] for d in dims.output_spatial)
    batch, features = tensor_type(image.type).shape[0], tensor_type(image.type).shape[-1]
    # Groups are contiguous: of batches or of features. [bg b, p.., fg c] -> [g, b, p.., c]
    per_group = features // groups
    split = (batch_groups, batch // batch_groups, *out, groups, per_group)
    order = (0, len(split) - 2, *range(1, len(split) - 2), len(split) - 1)
    parts = []
    for position in itertools.product(*(range(size) for size in window)):
        starts = [t * dilation for t, dilation in zip(position, op.rhs_dilation, strict=True)]
        part = emit.reshape(_slice(image, starts, out, op.window_strides), split)
        parts.append(emit.reshape(emit.transpose(part, order), (count, batch // batch_groups, *out, per_group)))
    stacked = _concatenate(parts, dimension=1 + 1 + spatial)
    positions = len(parts)

    out_features = tensor_type(kernel.type).shape[-1]
    kernel = emit.reshape(kernel, (positions * per_group, count, out_features // count))
    kernel = emit.transpose(kernel, (1, 0, 2))

    rank = 2 + spatial
    numbers = stablehlo.DotDimensionNumbers.get(
        lhs_batching_dimensions=[0],
        rhs_batching_dimensions=[0],
        lhs_contracting_dimensions=[rank],
        rhs_contracting_dimensions=[1],
    )
    attributes: dict[str, ir.Attribute] = {"dot_dimension_numbers": numbers}
    if op.has("precision_config"):
        attributes["precision_config"] = op.operation.attributes["precision_config"]
    result = TensorType((count, batch // batch_groups, *out, out_features // count), op.type.element)
    product = emit.op("stablehlo.dot_general", [stacked, kernel], result, attributes)
    # [g, b, p.., f] -> [b, p.., g f] -> the output's own order
    product = emit.transpose(product, (*range(1, rank), 0, rank))
    product = emit.reshape(product, (batch // batch_groups, *out, out_features))
    return emit.transpose(product, _inverse((dims.output_batch, *dims.output_spatial, dims.output_feature)))


def _padded(image: ir.Value, padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...]) -> ir.Value:
    """[b, spatial.., c] with zeros around and between."""
    if all(p == (0, 0) for p in padding) and all(d == 1 for d in dilation):
        return image
    ty = tensor_type(image.type)
    low = [0, *(p[0] for p in padding), 0]
    high = [0, *(p[1] for p in padding), 0]
    interior = [0, *(d - 1 for d in dilation), 0]
    shape = tuple(
        size + a + b + max(0, size - 1) * i for size, a, b, i in zip(ty.shape, low, high, interior, strict=True)
    )
    scalar = ty.with_shape(())
    zero_element = (
        ir.FloatAttr.get(scalar.mlir.element_type, 0.0)
        if ty.element.is_float
        else ir.IntegerAttr.get(scalar.mlir.element_type, 0)
    )
    value = ir.DenseElementsAttr.get_splat(scalar.mlir, zero_element)
    zero = emit.op("stablehlo.constant", [], scalar, {"value": value})
    names = {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": interior}
    attributes = {name: ir.DenseI64ArrayAttr.get(list(sizes)) for name, sizes in names.items()}
    return emit.op("stablehlo.pad", [image, zero], ty.with_shape(shape), attributes)


def _slice(image: ir.Value, starts: list[int], out: tuple[int, ...], strides: tuple[int, ...]) -> ir.Value:
    """What one position of the window sees: [b, out.., c]."""
    ty = tensor_type(image.type)
    begin = [0, *starts, 0]
    limit = [s + (n - 1) * stride + 1 for s, n, stride in zip(starts, out, strides, strict=True)]
    end = [ty.shape[0], *limit, ty.shape[-1]]
    step = [1, *strides, 1]
    result = ty.with_shape((ty.shape[0], *out, ty.shape[-1]))
    if tuple(begin) == (0,) * len(begin) and tuple(end) == ty.shape and set(step) == {1}:
        return image
    names = {"start_indices": begin, "limit_indices": end, "strides": step}
    attributes = {name: ir.DenseI64ArrayAttr.get(list(values)) for name, values in names.items()}
    return emit.op("stablehlo.slice", [image], result, attributes)


def _concatenate(parts: list[ir.Value], dimension: int) -> ir.Value:
    if len(parts) == 1:
        return parts[0]
    ty = tensor_type(parts[0].type)
    shape = list(ty.shape)
    shape[dimension] *= len(parts)
    return emit.op("stablehlo.concatenate", parts, ty.with_shape(tuple(shape)), {"dimension": emit.i64(dimension)})


def _inverse(permutation: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(permutation.index(d) for d in range(len(permutation)))
