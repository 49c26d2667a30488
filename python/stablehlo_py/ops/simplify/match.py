"""What rules ask of a value: which op makes it, and whether it is one element repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stablehlo_py.core import collect
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.mlir import ir


def maker(value: ir.Value, *names: str) -> Op | None:
    """The op that makes a value, where it is one of `names` (without the dialect)."""
    operation = collect.maker(value)
    return view(operation) if operation is not None and operation.name.removeprefix("stablehlo.") in names else None


def operand(op: Op, index: int = 0) -> ir.Value:
    return op.operation.operands[index]


def operands(op: Op) -> list[ir.Value]:
    return list(op.operation.operands)


def type_of(value: ir.Value) -> TensorType:
    return tensor_type(value.type)


def splat(value: ir.Value) -> np.generic | None:
    """The element that a value repeats, seen through broadcasts; None where it is not known."""
    operation = collect.maker(value)
    while operation is not None and operation.name == "stablehlo.broadcast_in_dim":
        operation = collect.maker(operation.operands[0])
    if operation is None or operation.name != "stablehlo.constant":
        return None
    return Constant(operation).splat


def is_splat(value: ir.Value, number: float) -> bool:
    """Whether all elements are `number`, the sign of a zero included; never so for complex elements."""
    found = splat(value)
    if found is None:
        return False
    element = type_of(value).element
    if element.is_complex:
        return False
    if not element.is_float:
        return int(found) == number
    return float(found) == number and math.copysign(1, float(found)) == math.copysign(1, number)


def array(value: ir.Value) -> np.ndarray | None:
    """All elements of a constant."""
    constant = maker(value, "constant")
    if not isinstance(constant, Constant):
        return None
    try:
        return constant.value
    except ValueError:
        return None


def is_read_once(value: ir.Value) -> bool:
    uses = iter(value.uses)
    return next(uses, None) is not None and next(uses, None) is None


def without_units(shape: Sequence[int]) -> list[int]:
    return [n for n in shape if n != 1]
