"""convolution: any layout, strides, dilations, padding, reversal and grouping."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import TensorType
from stablehlo_py.dialects.stablehlo import Convolution
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import PARALLEL, REDUCTION, Tensor
from stablehlo_py.ops.contraction import accumulator, cast, converted, multiply_add
from stablehlo_py.records import record


@record
class Loops:
    """The loops of a convolution, outermost first; groups before or after the taps.

    batch, output (one per spatial dimension), [group], tap (one per spatial dimension), input feature, [group],
    output feature.
    """

    batch: int
    output: tuple[int, ...]
    group: int
    tap: tuple[int, ...]
    input_feature: int
    output_feature: int

    @staticmethod
    def of(spatial: int, group_inside: bool) -> Loops:
        taps = 1 + spatial + (0 if group_inside else 1)
        return Loops(
            batch=0,
            output=tuple(range(1, 1 + spatial)),
            group=taps + spatial + 1 if group_inside else 1 + spatial,
            tap=tuple(range(taps, taps + spatial)),
            input_feature=taps + spatial,
            output_feature=2 * spatial + 3,
        )

    @property
    def count(self) -> int:
        return self.output_feature + 1

    @property
    def iterators(self) -> list[str]:
        reduced = (*self.tap, self.input_feature)
        return [REDUCTION if loop in reduced else PARALLEL for loop in range(self.count)]


@lower("stablehlo.convolution")
def lower_convolution(op: Convolution, lhs: Tensor, rhs: Tensor) -> Tensor:
    """result[b, o, g, f] = sum over t, i of lhs[b, o * stride + t * rhs_dilation, g, i] * rhs[t, i, g, f].

    lhs is padded and dilated first and brought to (batch, spatial, feature), rhs to (spatial, input feature, output
    feature). The innermost loop runs along output features, or along groups where each has one output feature
    (depthwise), so it is parallel and contiguous. Sums go up in (t, i).
    """
    if op.type.size == 0:
        return build.empty(op.type)
    dims, groups, batch_groups = op.dims, op.feature_group_count, op.batch_group_count
    spatial = op.spatial_rank
    image = layout.transpose(lhs, (dims.input_batch, *dims.input_spatial, dims.input_feature))
    image = _padded(op, image)
    kernel = layout.transpose(rhs, (*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature))
    kernel = layout.reverse(kernel, [d for d, reverse in enumerate(op.window_reversal) if reverse])

    # (batch group, batch, spatial, feature group, feature); one of the two group counts is 1
    group = max(groups, batch_groups)
    batch, features = image.shape[0] // batch_groups, image.shape[-1] // groups
    image = layout.reshape(image, (batch_groups, batch, *image.shape[1:-1], groups, features))
    kernel = layout.reshape(kernel, (*kernel.shape[:-1], group, kernel.shape[-1] // group))
    outputs = tuple(op.type.shape[d] for d in dims.output_spatial)
    ty = TensorType((batch, *outputs, group, kernel.shape[-1]), op.type.element)
    result = _sum(op, image, kernel, ty, Loops.of(spatial, group_inside=kernel.shape[-1] == 1), batch_groups == 1)

    result = layout.reshape(result, (batch, *outputs, op.type.shape[dims.output_feature]))
    order = [0] * result.rank
    for place, d in enumerate((dims.output_batch, *dims.output_spatial, dims.output_feature)):
        order[d] = place
    return layout.transpose(result, order)


def _sum(op: Convolution, image: Tensor, kernel: Tensor, ty: TensorType, loops: Loops, by_feature: bool) -> Tensor:
    """The loops themselves; image: (batch group, batch, spatial, feature group, feature), kernel: (spatial, input
    feature, group, output feature), result: (batch, spatial, group, output feature)."""
    places = [
        ir.AffineExpr.get_dim(o) * stride + ir.AffineExpr.get_dim(t) * dilation
        for o, t, stride, dilation in zip(loops.output, loops.tap, op.window_strides, op.rhs_dilation, strict=True)
    ]
    image, image_dims = _without_ones(
        image, [loops.group, loops.batch, *places, loops.group, loops.input_feature], (-2,) if not by_feature else (0,)
    )
    element = accumulator(ty.element)
    total = build.generic(
        [image, kernel],
        [build.splat(ty.with_element(element), 0)],
        lambda x, y, acc: multiply_add(element, cast(image.element, element, x), cast(kernel.element, element, y), acc),
        maps=[
            _map(loops.count, image_dims),
            _map(loops.count, [*loops.tap, loops.input_feature, loops.group, loops.output_feature]),
            _map(loops.count, [loops.batch, *loops.output, loops.group, loops.output_feature]),
        ],
        iterators=loops.iterators,
    )[0]
    return converted(total, ty.element)


def _without_ones(
    source: Tensor, places: Sequence[int | ir.AffineExpr], ones: Sequence[int]
) -> tuple[Tensor, list[int | ir.AffineExpr]]:
    """The source without the given dimensions, each of size 1, and the places of the others."""
    gone = {d % source.rank for d in ones}
    kept = [d for d in range(source.rank) if d not in gone]
    return layout.reshape(source, [source.shape[d] for d in kept]), [places[d] for d in kept]


def _map(loops: int, places: Sequence[int | ir.AffineExpr]) -> ir.AffineMap:
    return ir.AffineMap.get(loops, 0, [ir.AffineExpr.get_dim(p) if isinstance(p, int) else p for p in places])


def _padded(op: Convolution, image: Tensor) -> Tensor:
    """(batch, spatial, feature) with zeros around and, by lhs_dilation, between its elements."""
    low, high = [0] * image.rank, [0] * image.rank
    interior = [0, *[dilation - 1 for dilation in op.lhs_dilation], 0]
    for d, (before, after) in enumerate(op.padding):
        low[1 + d], high[1 + d] = before, after
    zero = build.narrow(image.element, build.scalar(image.element, 0))
    return layout.pad(image, zero, low, high, interior)
