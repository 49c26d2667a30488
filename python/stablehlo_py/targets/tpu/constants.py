"""Values that are one number everywhere."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.collect import maker
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Constant
from stablehlo_py.mlir import ir


def number_of(value: ir.Value) -> float | None:
    """The number that a value is everywhere, exact in f64; through broadcasts, reshapes, and conversions to floats."""
    operation = maker(value)
    if operation is None:
        return None
    if operation.name in ("stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        return number_of(operation.operands[0])
    if operation.name == "stablehlo.convert":
        source, element = tensor_type(operation.operands[0].type).element, tensor_type(value.type).element
        if not element.is_float or not (source.is_float or source.is_bool):
            return None
        inner = number_of(operation.operands[0])
        return None if inner is None else float(np.asarray(inner).astype(element.dtype))
    if operation.name != "stablehlo.constant":
        return None
    splat = Constant(operation).splat
    return None if splat is None else float(splat)
