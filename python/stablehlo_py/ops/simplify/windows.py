"""Convolutions: windows of size 1, sums of small floats."""

from __future__ import annotations

from stablehlo_py.core.registry import simplify
from stablehlo_py.core.types import element_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Convolution
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import operands, type_of


@simplify("stablehlo.convolution")
def convolution_by_one(op: Convolution) -> ir.Value | None:
    """convolution(x, w : 1 x 1) == dot(x, w) over the features, where that gives the result's order of dimensions."""
    dims = op.dims
    x, kernel = operands(op)
    if any(type_of(kernel).shape[d] != 1 for d in dims.kernel_spatial) or not op.spatial_rank:
        return None
    plain = not any(low or high for low, high in op.padding) and all(
        s == 1 for s in op.window_strides + op.lhs_dilation
    )
    if not plain or op.feature_group_count != 1 or op.batch_group_count != 1:
        return None
    features = type_of(kernel)
    weights = [d for d in range(features.rank) if d not in dims.kernel_spatial]
    weight = make.reshape(kernel, [features.shape[d] for d in weights])
    contracted, free = weights.index(dims.kernel_input_feature), dims.kernel_output_feature
    # where each dimension of the result comes from: of x, or -1 for the features
    source = {dims.output_batch: dims.input_batch, dims.output_feature: -1}
    source.update(zip(dims.output_spatial, dims.input_spatial, strict=True))
    wanted = [source[d] for d in range(op.type.rank)]
    order = [d for d in range(op.type.rank) if d != dims.input_feature]
    shape = type_of(x).shape
    sizes = {**{d: shape[d] for d in order}, -1: features.shape[free]}
    in_order = [
        made
        for made in ([*order, -1], [-1, *order])
        if [d for d in made if sizes[d] != 1] == [d for d in wanted if sizes[d] != 1]
    ]
    if not in_order:
        return None
    made = in_order[0]
    sides, contracting = [x, weight], [dims.input_feature, contracted]
    if made[0] == -1:
        sides, contracting = sides[::-1], contracting[::-1]
    product = make.op(
        "dot_general",
        sides,
        op.type.with_shape(tuple(sizes[d] for d in made)),
        dot_dimension_numbers=make.dot_dims([], [], contracting[:1], contracting[1:]),
        **({"precision_config": op.operation.attributes["precision_config"]} if op.has("precision_config") else {}),
    )
    return make.reshape(product.results[0], op.type.shape)


@simplify("stablehlo.convolution")
def convolution_of_small_floats(op: Convolution) -> ir.Value | None:
    """convolution(x, w) : bf16 == convert(convolution(x, w) : f32): sums are kept in f32 and rounded once."""
    if op.type.element.name not in ("bf16", "f16") or any(ty.element != op.type.element for ty in op.operand_types):
        return None
    wide = op.type.with_element(element_type("f32"))
    attributes = {name: op.operation.attributes[name] for name in op.operation.attributes}
    return make.convert(make.op("convolution", operands(op), wide, **attributes).results[0], op.type.element)
