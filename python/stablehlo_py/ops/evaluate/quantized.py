"""Quantized tensors: integers that stand for numbers, real = (stored - zero_point) * scale.

An array of a quantized type holds what is stored. Ops that only move elements move the stored ones; every other op is
done on the real numbers in f64 and quantized again, which is how the specification defines nearly all of them.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.core.types import ELEMENT_TYPES, ElementType, TensorType, element_type, tensor_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate.numeric import integer_limits, narrow, wrapped

_TYPE = re.compile(
    r"!quant\.uniform<(?P<storage>[iu]+\d+)(<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)(:(?P<axis>\d+))?, "
    r"(?P<scales>[^<>]*)>"
)
_TENSOR = re.compile(r"tensor<(?P<shape>(?:(?:\d+|\?)x)*)(?P<element>!quant\.uniform<.*>)>$")

MOVES = frozenset(
    "stablehlo." + name
    for name in (
        "all_gather",
        "all_to_all",
        "broadcast_in_dim",
        "collective_broadcast",
        "collective_permute",
        "concatenate",
        "dynamic_gather",
        "dynamic_reshape",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "get_dimension_size",
        "optimization_barrier",
        "pad",
        "reshape",
        "reverse",
        "select",
        "slice",
        "transpose",
    )
)
_HANDS_ON = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.tuple"})


@dataclass(frozen=True)
class Quantization:
    """A uniform quantization, of the whole tensor or of each slice along `axis`."""

    storage: ElementType
    expressed: ElementType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    low: int
    high: int

    def _along(self, values: tuple[float, ...] | tuple[int, ...], rank: int) -> np.ndarray:
        column = np.asarray(values, np.float64)
        return (
            column.reshape([-1 if d == self.axis else 1 for d in range(rank)]) if self.axis is not None else column[0]
        )

    def real(self, stored: np.ndarray) -> np.ndarray:
        """What the stored integers stand for, in f64."""
        number = stored.astype(np.int64) - self._along(self.zero_points, stored.ndim)
        return np.asarray(number * self._along(self.scales, stored.ndim))

    def stored(self, real: np.ndarray) -> np.ndarray:
        """The nearest integers that stand for `real`, within the storage's range."""
        scaled = np.rint(real.astype(np.float64) / self._along(self.scales, real.ndim))
        whole = np.nan_to_num(scaled, nan=0.0) + self._along(self.zero_points, real.ndim)
        return wrapped(np.clip(whole, self.low, self.high).astype(np.int64), self.storage)


@functools.lru_cache(maxsize=4096)
def quantization(text: str) -> Quantization:
    """The quantization that `!quant.uniform<...>` spells."""
    found = _TYPE.fullmatch(text)
    if found is None:
        raise BadInput(f"{text} is not supported", hint="uniform quantization of a tensor or along one axis is")
    storage = element_type(found["storage"].replace("u", "ui") if found["storage"][0] == "u" else found["storage"])
    expressed = ELEMENT_TYPES[found["expressed"]]
    low, high = integer_limits(storage)
    pairs = [pair.partition(":") for pair in found["scales"].strip("{}").split(",")]
    # The scale is a number of the expressed type, however many digits are written.
    scales = tuple(float(np.asarray(float(scale)).astype(expressed.dtype)) for scale, _, _ in pairs)
    return Quantization(
        storage,
        expressed,
        scales,
        tuple(int(zero or 0) for _, _, zero in pairs),
        None if found["axis"] is None else int(found["axis"]),
        low if found["low"] is None else int(found["low"]),
        high if found["high"] is None else int(found["high"]),
    )


def quantization_of(ty: ir.Type) -> Quantization | None:
    """The quantization of a tensor type, or None for every other type."""
    found = _TENSOR.match(str(ty))
    return quantization(found["element"]) if found else None


def stored_type(ty: ir.Type) -> TensorType:
    """The type of the array that holds a value: that of the storage for a quantized tensor."""
    found = _TENSOR.match(str(ty))
    if found is None:
        return tensor_type(ty)
    shape = tuple(-1 if d == "?" else int(d) for d in found["shape"].split("x")[:-1])
    return TensorType(shape, quantization(found["element"]).storage)


def _real_type(ty: ir.Type) -> TensorType:
    return stored_type(ty).with_element("f64") if quantization_of(ty) else tensor_type(ty)


@functools.cache
def _seen_as(kind: type[Op], real: bool) -> type[Op]:
    """The view class `kind` with types in place of quantized ones: f64 where `real`, else the storage's."""
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
    if op.name in MOVES:
        return _seen_as(type(op), real=False)(op.operation), rule

    def on_real(real_op: Op, *arrays: np.ndarray, **options: Any) -> tuple[np.ndarray, ...]:  # Any: run, if it has one
        real = [q.real(x) if q else x for q, x in zip(of, arrays, strict=True)]
        if "run" in options:
            options["run"] = functools.partial(_refuse_region, real_op)
        made = rule(real_op, *real, **options)
        results = made if isinstance(made, tuple) else (made,)
        return tuple(q.stored(x) if q else x for q, x in zip(to, results, strict=True))

    return _seen_as(type(op), real=True)(op.operation), on_real


def _refuse_region(op: Op, region: int, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    raise UnsupportedOp(op.name, "its region works on quantized scalars", where=str(op.location))


@evaluate("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize")
def evaluate_uniform(op: Op, operand: np.ndarray) -> np.ndarray:
    """Quantizing and dequantizing are what happens to the operand and the result of every op on real numbers."""
    return narrow(operand, op.type.element.dtype)
