"""stablehlo.custom_call as plain data: attributes as Python values, types, layouts, aliases."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.types import TensorType
from stablehlo_py.custom_calls.call import UNSET, CustomCall, Layout
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.runtime.program import ArrayType

NAME = "stablehlo.custom_call"
# What the op itself defines; all else is handed to the function.
_OWN = {
    "api_version",
    "backend_config",
    "call_target_name",
    "called_computations",
    "has_side_effect",
    "indices_of_shape_operands",
    "mhlo.backend_config",
    "operand_layouts",
    "output_operand_aliases",
    "result_layouts",
}


def target_of(operation: ir.Operation) -> str:
    """The name that a custom_call calls."""
    return ir.StringAttr(operation.attributes["call_target_name"]).value


def is_unset(operation: ir.Operation) -> bool:
    """Whether the call stands for memory of any contents."""
    return target_of(operation) == UNSET


def call_of(operation: ir.Operation | ir.OpView) -> CustomCall:
    """All that a custom_call says."""
    op = view(operation)
    return CustomCall(
        name=target_of(op.operation),
        attributes=call_attributes(op.operation),
        operands=tuple(map(_array_type, op.operand_types)),
        results=tuple(map(_array_type, op.types)),
        operand_layouts=_layouts(op, "operand_layouts"),
        result_layouts=_layouts(op, "result_layouts"),
        aliases=_aliases(op),
        where=describe_location(op.location),
    )


def call_attributes(operation: ir.Operation) -> dict[str, Any]:  # Any: as in CustomCall
    """The attributes that the called function is given."""
    op = view(operation)
    found = {named.name: named.attr for named in _named(op.operation) if named.name not in _OWN}
    values = {name: python_value(attribute) for name, attribute in found.items()}
    for name in ("mhlo.backend_config", "backend_config"):
        if not op.has(name):
            continue
        config = python_value(op.operation.attributes[name])
        if isinstance(config, dict):
            values.update(config)
        elif config:
            values["backend_config"] = config
    return values


def _named(operation: ir.Operation) -> list[ir.NamedAttribute]:
    """The attributes of an op with their names."""
    attributes = operation.attributes
    return list(ir.DictAttr.get({name: attributes[name] for name in attributes}, operation.context))


def python_value(attribute: ir.Attribute) -> object:
    """bool, int, float, text, an array, or lists and dicts of them; text that is not UTF-8 as bytes, the rest as text."""
    if isinstance(attribute, ir.BoolAttr | ir.FloatAttr | ir.IntegerAttr):
        return attribute.value
    if isinstance(attribute, ir.StringAttr):
        return _text(attribute.value_bytes)
    if isinstance(attribute, ir.DictAttr):
        return {named.name: python_value(named.attr) for named in attribute}
    if isinstance(attribute, ir.ArrayAttr):
        return [python_value(element) for element in attribute]
    if isinstance(attribute, ir.UnitAttr):
        return True
    if isinstance(attribute, ir.DenseBoolArrayAttr):
        return np.array(list(attribute), np.bool_)
    for kind, dtype in _ARRAYS:
        if isinstance(attribute, kind):
            return np.array(list(attribute), dtype)
    if isinstance(attribute, ir.DenseElementsAttr):
        return np.array(attribute)
    return str(attribute)


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


_ARRAYS = (
    (ir.DenseI8ArrayAttr, np.int8),
    (ir.DenseI16ArrayAttr, np.int16),
    (ir.DenseI32ArrayAttr, np.int32),
    (ir.DenseI64ArrayAttr, np.int64),
    (ir.DenseF32ArrayAttr, np.float32),
    (ir.DenseF64ArrayAttr, np.float64),
)


def _layouts(op: Op, name: str) -> tuple[Layout, ...]:
    if not op.has(name):
        return ()
    rows = [tuple(int(d) for d in np.array(row).ravel()) for row in ir.ArrayAttr(op.operation.attributes[name])]
    return tuple(None if row == tuple(range(len(row)))[::-1] else row for row in rows)


def _aliases(op: Op) -> tuple[tuple[int, int], ...]:
    """(result, operand) pairs; tuples are flat by now, so there is one index or none."""
    if not op.has("output_operand_aliases"):
        return ()
    pairs = []
    for attribute in ir.ArrayAttr(op.operation.attributes["output_operand_aliases"]):
        alias = stablehlo.OutputOperandAlias(attribute)
        pairs.append((next(iter(alias.output_tuple_indices), 0), alias.operand_index))
    return tuple(pairs)


def _array_type(ty: TensorType) -> ArrayType:
    return ArrayType(ty.shape, ty.element.dtype.name)
