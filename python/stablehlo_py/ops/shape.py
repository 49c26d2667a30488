"""Ops that only move elements: broadcast, reshape, transpose, slice, pad, concatenate, reverse, get_dimension_size."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor


@lower("stablehlo.broadcast_in_dim")
def lower_broadcast_in_dim(op: Op, operand: Tensor) -> Tensor:
    return layout.broadcast(operand, op.type.shape, op.ints("broadcast_dimensions"))


@lower("stablehlo.broadcast")
def lower_broadcast(op: Op, operand: Tensor) -> Tensor:
    """broadcast_sizes come before the dimensions of the operand."""
    new = len(op.ints("broadcast_sizes"))
    return layout.broadcast(operand, op.type.shape, range(new, new + operand.rank))


@lower("stablehlo.reshape")
def lower_reshape(op: Op, operand: Tensor) -> Tensor:
    return layout.reshape(operand, op.type.shape)


@lower("stablehlo.transpose")
def lower_transpose(op: Op, operand: Tensor) -> Tensor:
    return layout.transpose(operand, op.ints("permutation"))


@lower("stablehlo.slice")
def lower_slice(op: Op, operand: Tensor) -> Tensor:
    return layout.extract_slice(
        operand, op.ints("start_indices"), op.type.shape, op.ints("strides", (1,) * operand.rank)
    )


@lower("stablehlo.pad")
def lower_pad(op: Op, operand: Tensor, padding_value: Tensor) -> Tensor:
    return layout.pad(
        operand,
        tensor.extract(padding_value.value, []),
        op.ints("edge_padding_low"),
        op.ints("edge_padding_high"),
        op.ints("interior_padding", (0,) * operand.rank),
    )


@lower("stablehlo.concatenate")
def lower_concatenate(op: Op, *operands: Tensor) -> Tensor:
    return layout.concatenate(operands, op.integer("dimension"))


@lower("stablehlo.reverse")
def lower_reverse(op: Op, operand: Tensor) -> Tensor:
    return layout.reverse(operand, op.ints("dimensions"))


@lower("stablehlo.get_dimension_size")
def lower_get_dimension_size(op: Op, operand: Tensor) -> Tensor:
    size = np.asarray(operand.shape[op.integer("dimension")], op.type.element.dtype)
    return build.constant(op.type, size)
