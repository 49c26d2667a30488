"""Ops that move elements without looking at them: broadcast, reshape, transpose, pad, slice, concatenate, iota."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Constant, Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.ops.evaluate.numeric import narrow
from stablehlo_py.ops.evaluate.pointwise import pointwise


@pointwise("stablehlo.constant")
def evaluate_constant(op: Constant) -> np.ndarray:
    """The elements written in the program."""
    try:
        return op.value
    except ValueError:
        hint = "inline the resources first"
        raise UnsupportedOp(op.name, "its value is not dense", where=str(op.location), hint=hint) from None


def iota(shape: Sequence[int], dimension: int, dtype: np.dtype) -> np.ndarray:
    """Each element is its own index along `dimension`."""
    line = narrow(np.arange(shape[dimension]), dtype)
    return np.broadcast_to(line.reshape([-1 if d == dimension else 1 for d in range(len(shape))]), tuple(shape))


@evaluate("stablehlo.iota")
def evaluate_iota(op: Op) -> np.ndarray:
    """The index along iota_dimension."""
    return iota(op.type.shape, op.integer("iota_dimension"), op.type.element.dtype)


@evaluate("stablehlo.dynamic_iota")
def evaluate_dynamic_iota(op: Op, output_shape: np.ndarray) -> np.ndarray:
    """iota of a shape known at run time."""
    return iota([int(d) for d in output_shape], op.integer("iota_dimension"), op.type.element.dtype)


def broadcast(operand: np.ndarray, shape: Sequence[int], dimensions: Sequence[int]) -> np.ndarray:
    """Dimension i of the operand becomes dimension dimensions[i] of the result."""
    order = np.argsort(dimensions, kind="stable") if len(dimensions) else ()
    spread = [1] * len(shape)
    for d, size in zip(dimensions, operand.shape, strict=True):
        spread[d] = size
    return np.broadcast_to(operand.transpose([int(d) for d in order]).reshape(spread), tuple(shape))


@evaluate("stablehlo.broadcast_in_dim")
def evaluate_broadcast_in_dim(op: Op, operand: np.ndarray) -> np.ndarray:
    """Repeats the operand over the dimensions that broadcast_dimensions does not name."""
    return broadcast(operand, op.type.shape, op.ints("broadcast_dimensions"))


@evaluate("stablehlo.dynamic_broadcast_in_dim")
def evaluate_dynamic_broadcast_in_dim(op: Op, operand: np.ndarray, output_dimensions: np.ndarray) -> np.ndarray:
    """broadcast_in_dim to a shape known at run time."""
    return broadcast(operand, [int(d) for d in output_dimensions], op.ints("broadcast_dimensions"))


@evaluate("stablehlo.broadcast")
def evaluate_broadcast(op: Op, operand: np.ndarray) -> np.ndarray:
    """New dimensions in front."""
    return np.broadcast_to(operand, (*op.ints("broadcast_sizes"), *operand.shape))


@evaluate("stablehlo.reshape")
def evaluate_reshape(op: Op, operand: np.ndarray) -> np.ndarray:
    """Same elements in row-major order."""
    return operand.reshape(op.type.shape)


@evaluate("stablehlo.dynamic_reshape")
def evaluate_dynamic_reshape(op: Op, operand: np.ndarray, output_shape: np.ndarray) -> np.ndarray:
    """reshape to a shape known at run time."""
    return operand.reshape([int(d) for d in output_shape])


@evaluate("stablehlo.transpose")
def evaluate_transpose(op: Op, operand: np.ndarray) -> np.ndarray:
    """Dimension i of the result is dimension permutation[i] of the operand."""
    return operand.transpose(op.ints("permutation"))


@evaluate("stablehlo.reverse")
def evaluate_reverse(op: Op, operand: np.ndarray) -> np.ndarray:
    """Turns the order round along dimensions."""
    return np.flip(operand, op.ints("dimensions"))


@evaluate("stablehlo.concatenate")
def evaluate_concatenate(op: Op, *inputs: np.ndarray) -> np.ndarray:
    """One after the other along dimension."""
    return np.concatenate(inputs, axis=op.integer("dimension"))


@evaluate("stablehlo.slice")
def evaluate_slice(op: Op, operand: np.ndarray) -> np.ndarray:
    """operand[start : limit : stride] in each dimension."""
    bounds = zip(op.ints("start_indices"), op.ints("limit_indices"), op.ints("strides"), strict=True)
    return operand[tuple(slice(*b) for b in bounds)]


@evaluate("stablehlo.real_dynamic_slice")
def evaluate_real_dynamic_slice(op: Op, operand: np.ndarray, *bounds: np.ndarray) -> np.ndarray:
    """slice with bounds known at run time."""
    starts, limits, strides = ([int(i) for i in b] for b in bounds)
    return operand[tuple(slice(*b) for b in zip(starts, limits, strides, strict=True))]


def pad(
    operand: np.ndarray, value: np.ndarray, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> np.ndarray:
    """`interior` copies of value between neighbours, then `low` before and `high` after; a negative amount cuts."""
    spread = [max(n + (n - 1) * i, 0) for n, i in zip(operand.shape, interior, strict=True)]
    result = np.full([n + lo + hi for n, lo, hi in zip(spread, low, high, strict=True)], value, operand.dtype)
    target, source = [], []
    for n, lo, i, out in zip(operand.shape, low, interior, result.shape, strict=True):
        step = i + 1
        first = max(0, -(lo // step)) if lo < 0 else 0  # the first element at or after the cut
        last = min(n, (out - 1 - lo) // step + 1)
        source.append(slice(first, max(first, last)))
        target.append(
            slice(lo + first * step, max(lo + (last - 1) * step + 1, 0), step) if last > first else slice(0, 0)
        )
    result[tuple(target)] = operand[tuple(source)]
    return result


@evaluate("stablehlo.pad")
def evaluate_pad(op: Op, operand: np.ndarray, padding_value: np.ndarray) -> np.ndarray:
    """Padding at both edges and in between."""
    edges = op.ints("edge_padding_low"), op.ints("edge_padding_high"), op.ints("interior_padding")
    return pad(operand, padding_value, *edges)


@evaluate("stablehlo.dynamic_pad")
def evaluate_dynamic_pad(op: Op, operand: np.ndarray, padding_value: np.ndarray, *edges: np.ndarray) -> np.ndarray:
    """pad with amounts known at run time."""
    low, high, interior = ([int(i) for i in e] for e in edges)
    return pad(operand, padding_value, low, high, interior)


@evaluate("stablehlo.get_dimension_size")
def evaluate_get_dimension_size(op: Op, operand: np.ndarray) -> np.ndarray:
    """The size of one dimension."""
    return np.asarray(operand.shape[op.integer("dimension")], op.type.element.dtype)


@evaluate("stablehlo.set_dimension_size")
def evaluate_set_dimension_size(op: Op, operand: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The leading `size` elements of one dimension."""
    index = [slice(None)] * operand.ndim
    index[op.integer("dimension")] = slice(0, int(size))
    return operand[tuple(index)]
