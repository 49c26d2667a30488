"""batch_norm_inference, batch_norm_training, batch_norm_grad: statistics for each feature, sums in f64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import TensorType, element_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.expression import Num

_F64 = element_type("f64")


def _per_feature(op: Op, like: Tensor) -> tuple[ir.AffineMap, ir.AffineMap]:
    """The maps of a tensor of the operand's shape and of one with an element for each feature."""
    return build.identity_map(like.rank), build.dims_map(like.rank, (op.integer("feature_index"),))


def _sum(op: Op, inputs: Sequence[Tensor], body: Callable[..., Num]) -> Tensor:
    """The sum over all but the feature dimension of body(*inputs), in f64; the first input has the operand's shape."""
    whole, feature = _per_feature(op, inputs[0])
    features = inputs[0].shape[op.integer("feature_index")]
    iterators = [build.REDUCTION] * inputs[0].rank
    iterators[op.integer("feature_index")] = build.PARALLEL

    def add(*values: ir.Value) -> ir.Value:
        *terms, total = (Num(v).to_f64() for v in values)
        return (total + body(*terms)).value

    maps = [whole if t.rank == inputs[0].rank else feature for t in inputs]
    zero = build.splat(TensorType((features,), _F64), 0)
    return build.generic(inputs, [zero], add, maps=[*maps, feature], iterators=iterators)[0]


def _map(op: Op, inputs: Sequence[Tensor], ty: TensorType, body: Callable[..., Num]) -> Tensor:
    """body in f64 on each element of the operand's shape, which is that of the first input."""
    compute = build.compute_type(ty.element)

    def rounded(*values: ir.Value) -> ir.Value:
        return body(*(Num(v).to_f64() for v in values)).to(compute).value

    whole, feature = _per_feature(op, inputs[0])
    maps = [whole if t.rank == inputs[0].rank else feature for t in inputs]
    return build.generic(inputs, [ty], rounded, maps=[*maps, whole])[0]


@lower("stablehlo.batch_norm_inference")
def lower_batch_norm_inference(
    op: Op, operand: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor
) -> Tensor:
    """(operand - mean) / sqrt(variance + epsilon) * scale + offset."""
    return _normalized(op, operand, scale, offset, mean, variance)


def _normalized(op: Op, operand: Tensor, scale: Tensor, offset: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    epsilon = op.number("epsilon")

    def body(x: Num, gain: Num, shift: Num, center: Num, spread: Num) -> Num:
        return (x - center) / (spread + epsilon).sqrt() * gain + shift

    return _map(op, [operand, scale, offset, mean, variance], operand.type, body)


@lower("stablehlo.batch_norm_training")
def lower_batch_norm_training(op: Op, operand: Tensor, scale: Tensor, offset: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(output, mean, variance): normalised by the mean and variance of this batch."""
    count = _count(op, operand)
    mean = _divided(_sum(op, [operand], lambda x: x), count)
    variance = _divided(_sum(op, [operand, mean], lambda x, m: (x - m) * (x - m)), count)
    output = _normalized(op, operand, scale, offset, mean, variance)
    return output, _as(mean, op.types[1]), _as(variance, op.types[2])


@lower("stablehlo.batch_norm_grad")
def lower_batch_norm_grad(
    op: Op, operand: Tensor, scale: Tensor, mean: Tensor, variance: Tensor, grad_output: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """(grad_operand, grad_scale, grad_offset).

    With s = sqrt(variance + epsilon), c = operand - mean, sums over all but the feature dimension:
    grad_operand = scale / s (g - (sum g + c sum(g c) / s^2) / count), grad_scale = sum(g c) / s, grad_offset = sum g.
    """
    count, epsilon = _count(op, operand), op.number("epsilon")
    offset_sum = _sum(op, [grad_output], lambda g: g)
    scale_sum = _sum(op, [operand, grad_output, mean], lambda x, g, m: g * (x - m))

    def slope(x: Num, g: Num, gain: Num, m: Num, v: Num, of_offset: Num, of_scale: Num) -> Num:
        spread = v + epsilon
        return gain / spread.sqrt() * (g - (of_offset + (x - m) * of_scale / spread) / count)

    grad_operand = _map(op, [operand, grad_output, scale, mean, variance, offset_sum, scale_sum], op.types[0], slope)
    grad_scale = _features(scale_sum, variance, op.types[1], lambda s, v: s / (v + epsilon).sqrt())
    return grad_operand, grad_scale, _as(offset_sum, op.types[2])


def _count(op: Op, operand: Tensor) -> float:
    """Elements of each feature."""
    return float(math.prod(d for i, d in enumerate(operand.shape) if i != op.integer("feature_index")))


def _divided(total: Tensor, count: float) -> Tensor:
    return build.generic([total], [total.type], lambda x: (Num(x) / count).value)[0]


def _as(x: Tensor, ty: TensorType) -> Tensor:
    """f64 statistics as the type of a result."""
    return build.generic([x], [ty], lambda v: Num(v).to(build.compute_type(ty.element)).value)[0]


def _features(x: Tensor, y: Tensor, ty: TensorType, body: Callable[[Num, Num], Num]) -> Tensor:
    compute = build.compute_type(ty.element)
    return build.generic([x, y], [ty], lambda a, b: body(Num(a).to_f64(), Num(b).to_f64()).to(compute).value)[0]
