"""Quantized tensors: integers that stand for numbers, real = (stored - zero_point) * scale.

An array of a quantized type holds what is stored. Ops that only move elements move the stored ones; every other op is
done on the real numbers, in the expressed type, and quantized again: so the specification defines nearly all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from stablehlo_py.core.quantization import Quantization, quantization_of, stored_type
from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate.numeric import narrow, wrapped
from stablehlo_py.records import record

MOVES = frozenset(
    "stablehlo." + name
    for name in (
        "all_gather",
        "all_to_all",
        "bitcast_convert",
        "broadcast",
        "broadcast_in_dim",
        "collective_broadcast",
        "collective_permute",
        "concatenate",
        "constant",
        "dynamic_broadcast_in_dim",
        "dynamic_gather",
        "dynamic_pad",
        "dynamic_reshape",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "get_dimension_size",
        "optimization_barrier",
        "pad",
        "real_dynamic_slice",
        "reshape",
        "reverse",
        "select",
        "set_dimension_size",
        "slice",
        "torch_index_select",
        "transpose",
    )
)
# Ops whose regions get and give quantized elements: what they do outside of their regions is moving elements.
WITH_REGIONS = frozenset(
    "stablehlo." + name
    for name in (
        "all_reduce",
        "map",
        "reduce",
        "reduce_scatter",
        "reduce_window",
        "scatter",
        "select_and_scatter",
        "sort",
    )
)
_HANDS_ON = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.tuple"})


def _along(quantization: Quantization, values: tuple[float, ...] | tuple[int, ...], rank: int) -> np.ndarray:
    """The scales or zero points in a shape that broadcasts over a tensor."""
    column = np.asarray(values)
    if quantization.axis is None:
        return column[0]
    return column.reshape([-1 if d == quantization.axis else 1 for d in range(rank)])


def real(quantization: Quantization, stored: np.ndarray) -> np.ndarray:
    """What the stored integers stand for, in the expressed type."""
    dtype = quantization.expressed.dtype
    number = stored.astype(np.int64) - _along(quantization, quantization.zero_points, stored.ndim)
    scale = np.asarray(_along(quantization, quantization.scales, stored.ndim)).astype(dtype)
    return np.asarray(number.astype(dtype) * scale)


def stored(quantization: Quantization, real: np.ndarray) -> np.ndarray:
    """The nearest integers that stand for `real`, within the storage's range; 0 for NaN."""
    dtype = quantization.expressed.dtype
    scale = np.asarray(_along(quantization, quantization.scales, real.ndim)).astype(dtype)
    zero_point = np.asarray(_along(quantization, quantization.zero_points, real.ndim)).astype(dtype)
    low, high = (np.asarray(limit).astype(dtype) for limit in (quantization.low, quantization.high))
    whole = np.rint(np.minimum(np.maximum(real.astype(dtype) / scale + zero_point, low), high)).astype(np.float64)
    whole = np.clip(np.where(np.isnan(whole), 0.0, whole), quantization.low, quantization.high)
    return wrapped(whole.astype(np.int64), quantization.storage)


def _real_type(ty: ir.Type) -> TensorType:
    found = quantization_of(ty)
    return stored_type(ty).with_element(found.expressed) if found else tensor_type(ty)


@functools.cache
def _seen_as(kind: type[Op], real: bool) -> type[Op]:
    """The view class `kind` with types in place of quantized ones: the expressed type where `real`, else the storage's."""
    as_type = _real_type if real else stored_type

    def types(op: Op) -> tuple[TensorType, ...]:
        return tuple(as_type(v.type) for v in op.operation.results)

    members: dict[str, Any] = {  # Any: the members of a class
        "op_name": "",  # it stands beside the view of that name and must not replace it
        "__slots__": (),
        "types": property(types),
        "type": property(lambda op: types(op)[0]),
        "operand_types": property(lambda op: tuple(as_type(v.type) for v in op.operation.operands)),
    }
    return type(kind.__name__, (kind,), members)


def on_quantized(op: Op, rule: Rule) -> tuple[Op, Rule]:
    """The view and the rule for an op that may have quantized operands or results."""
    of = [quantization_of(v.type) for v in op.operation.operands]
    to = [quantization_of(v.type) for v in op.operation.results]
    if (not any(of) and not any(to)) or op.name in _HANDS_ON:
        return op, rule
    if op.name in MOVES or op.name in WITH_REGIONS:
        return _seen_as(type(op), real=False)(op.operation), rule

    return _seen_as(type(op), real=True)(op.operation), OnReal(rule, tuple(of), tuple(to))


@record
class OnReal:
    """The rule of an op on real numbers, between those that its quantized operands and results stand for.

    adjust: of the real results, before they are quantized.
    """

    rule: Rule
    of: tuple[Quantization | None, ...]
    to: tuple[Quantization | None, ...]
    adjust: Callable[[Any], Any] = lambda x: x  # Any: as below

    def __call__(
        self, op: Op, *arrays: np.ndarray, **options: Any
    ) -> tuple[np.ndarray, ...]:  # Any: run, if it has one
        made = self.rule(op, *[real(q, x) if q else x for q, x in zip(self.of, arrays, strict=True)], **options)
        results = made if isinstance(made, tuple) else (made,)
        return tuple(stored(q, self.adjust(x)) if q else x for q, x in zip(self.to, results, strict=True))


@evaluate("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
def evaluate_uniform(op: Op, operand: np.ndarray) -> np.ndarray:
    """Quantizing and dequantizing are what happens to the operand and the result of every op on real numbers."""
    return narrow(operand, op.type.element.dtype)
