"""Conversions of element types."""

from __future__ import annotations

from stablehlo_py.core.registry import simplify
from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import maker, operand, type_of

# The bits of a whole number that a float type holds exactly.
_MANTISSA = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
# Floats whose every value the other holds.
_WIDER = {("f16", "f32"), ("bf16", "f32"), ("f16", "f64"), ("bf16", "f64"), ("f32", "f64")}


@simplify("stablehlo.convert")
def convert_to_itself(op: Op) -> ir.Value | None:
    """convert(x : A -> A) == x."""
    return operand(op) if op.type.element == type_of(operand(op)).element else None


@simplify("stablehlo.convert")
def convert_twice(op: Op) -> ir.Value | None:
    """convert(convert(x : A -> B) : B -> C) == convert(x : A -> C), where A -> B loses nothing."""
    inner = maker(operand(op), "convert")
    if inner is None:
        return None
    source, between, target = type_of(operand(inner)).element, inner.type.element, op.type.element
    if not _keeps(source, between):
        return None
    if source.is_float and not (target.is_float and (source == target or _keeps(source, target))):
        return None
    return make.convert(operand(inner), target)


@simplify("stablehlo.bitcast_convert")
def bitcast_twice(op: Op) -> ir.Value | None:
    """bitcast(bitcast(x : A -> B) : B -> C) == bitcast(x : A -> C), of one width."""
    inner = maker(operand(op), "bitcast_convert")
    if inner is None:
        return None
    source = operand(inner)
    if not type_of(source).shape == inner.type.shape == op.type.shape:
        return None
    if source.type == op.operation.results[0].type:
        return source
    return make.op("bitcast_convert", [source], op.type).results[0]


def _keeps(source: ElementType, target: ElementType) -> bool:
    """Whether every value of `source` is one of `target`."""
    if source == target:
        return True
    if source.is_bool:
        return (target.is_integer and target.bits > 2) or target.name in _MANTISSA
    if source.is_integer and target.is_integer:
        wider = target.bits > source.bits
        return wider and (source.is_unsigned or target.kind == "int")
    if source.is_integer:
        return target.name in _MANTISSA and source.bits - (source.kind == "int") <= _MANTISSA[target.name]
    return (source.name, target.name) in _WIDER
