"""Quantized tensors as plain arithmetic on their storage, as the specification defines it.

add(q, r) : !quant.uniform<i8:f32, 0.5:3>   ->   %q' = (convert(q) - 3) * 0.5, %r' likewise; add(%q', %r') : f32;
                                                 convert(round(clamp(-128, sum / 0.5 + 3, 127))) : i8

Ops that only move elements move the stored integers. Arguments and results of the program become tensors of the storage
type. Types change in place, so that ops keep their attributes and regions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.quantization import Quantization, quantization_of, stored_type
from stablehlo_py.core.types import ElementType, TensorType, element_type, tensor_type
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import belongings, ir, raw_elements
from stablehlo_py.ops.evaluate.quantized import MOVES, WITH_REGIONS
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.constants import elements
from stablehlo_py.reading.places import place

Quantized = dict[ir.Value, Quantization]
_HANDS_ON = {
    *("stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.return", "stablehlo.custom_call"),
    *("func.return", "stablehlo.tuple", "stablehlo.get_tuple_element", "stablehlo.composite"),
}


class HloQuantized(Pass):
    """Replace quantized types by their storage types, and ops on them by arithmetic on what is stored."""

    name: ClassVar[str] = "hlo-quantized"

    def run(self, op: ir.Operation) -> bool:
        quantized, touched, functions = _survey(op)
        if not quantized:
            return False
        for value in quantized:
            value.set_type(_storage(value.type))
        for function in functions:
            _retype_function(function)
        for inner in touched:
            with inner.location:
                _rewrite(inner, quantized)
        return True


def _survey(module: ir.Operation) -> tuple[Quantized, list[ir.Operation], list[ir.Operation]]:
    """The quantized values, the ops that take or make one, and all functions."""
    quantized: Quantized = {}
    touched: list[ir.Operation] = []
    functions: list[ir.Operation] = []

    # A type is spelled out once: that costs more than all else here.
    known: dict[ir.Type, Quantization | None] = belongings(module.context).setdefault(quantization_of, {})

    def note(value: ir.Value, op: ir.Operation) -> None:
        ty = value.type
        if ty not in known:
            try:
                known[ty] = quantization_of(ty)
            except BadInput as error:
                raise BadInput(error.message, where=place(op), hint=error.hint) from None
        if (found := known[ty]) is not None:
            quantized[value] = found

    def visit(op: ir.Operation) -> None:
        if op.name == "func.func":
            functions.append(op)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    note(argument, op)
        for result in op.results:
            note(result, op)

    walk(module, visit)
    if quantized:
        walk(module, lambda op: touched.append(op) if _touches(op, quantized) else None)
    return quantized, touched, functions


def _touches(op: ir.Operation, quantized: Quantized) -> bool:
    return any(value in quantized for value in (*op.results, *op.operands))


def _storage(ty: ir.Type) -> ir.Type:
    return stored_type(ty).mlir


def _retype_function(function: ir.Operation) -> None:
    ty = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs, results = ([_storage(t) if quantization_of(t) else t for t in types] for types in (ty.inputs, ty.results))
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))


def _rewrite(op: ir.Operation, quantized: Quantized) -> None:
    if op.name in MOVES or op.name in WITH_REGIONS or op.name in _HANDS_ON:
        if op.name == "stablehlo.constant":
            _retype_constant(op)
        return
    with ir.InsertionPoint(op):
        for index, operand in enumerate(list(op.operands)):
            if operand in quantized:
                op.operands[index] = _dequantized(operand, quantized[operand])
    if op.name == "stablehlo.uniform_dequantize":
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
        return
    if op.name == "stablehlo.uniform_quantize":
        result = op.results[0]
        with ir.InsertionPoint(op):
            new = _quantized(op.operands[0], quantized[result], result.type)
        quantized[new] = quantized[result]
        result.replace_all_uses_with(new)
        op.erase()
        return
    for result in [r for r in op.results if r in quantized]:
        stored, uses = result.type, [(use.owner, use.operand_number) for use in result.uses]
        result.set_type(tensor_type(stored).with_element(quantized[result].expressed).mlir)
        with ir.InsertionPoint.after(op):
            new = _quantized(result, quantized[result], stored)
        quantized[new] = quantized[result]
        for user, number in uses:
            user.operands[number] = new


def _retype_constant(op: ir.Operation) -> None:
    """The elements as elements of the storage type: the signless integers of the attribute may stand for unsigned ones."""
    ty = tensor_type(op.results[0].type)
    raw = raw_elements(op, "value", ty.element.bytes, ty.size)
    if raw is None or op.attributes["value"].type == op.results[0].type:
        return
    data, splat = raw
    op.attributes["value"] = elements(np.frombuffer(data * (ty.size if splat else 1), np.uint8), op.results[0].type)


# --- the arithmetic ------------------------------------------------------------------------------------------------------


def _dequantized(stored: ir.Value, of: Quantization) -> ir.Value:
    """(stored - zero_point) * scale in the expressed type; the difference is exact."""
    ty = tensor_type(stored.type)
    if any(of.zero_points):
        wide = element_type("i32" if ty.element.bits <= 16 else "i64")
        stored = _op("convert", ty.with_element(wide), stored)
        stored = _op("subtract", ty.with_element(wide), stored, _along(of, of.zero_points, ty.with_element(wide)))
    real = ty.with_element(of.expressed)
    return _op("multiply", real, _op("convert", real, stored), _along(of, of.scales, real))


def _quantized(real: ir.Value, of: Quantization, stored: ir.Type) -> ir.Value:
    """round(clamp(low, real / scale + zero_point, high)) in the storage type; ties to even, NaN as 0 or what is nearest."""
    ty = tensor_type(real.type)
    scaled = _op("divide", ty, real, _along(of, of.scales, ty))
    if any(of.zero_points):
        scaled = _op("add", ty, scaled, _along(of, of.zero_points, ty))
    limits = [_constant(ty.element, np.asarray(limit)) for limit in (of.low, of.high)]
    clamped = _op("clamp", ty, limits[0], scaled, limits[1])
    target = tensor_type(stored)
    whole = _op("convert", target, _op("round_nearest_even", ty, clamped))
    if of.low <= 0 <= of.high:
        return whole
    low, high = (_constant(target.element, np.asarray(limit)) for limit in (of.low, of.high))
    return _op("clamp", target, low, whole, high)


def _along(of: Quantization, values: Sequence[float], ty: TensorType) -> ir.Value:
    """One number for all elements, or one for each slice along the axis, in the shape of a tensor."""
    column = _constant(ty.element, np.asarray(values[0] if of.axis is None else values))
    dims = [] if of.axis is None else [of.axis]
    return _op("broadcast_in_dim", ty, column, broadcast_dimensions=ir.DenseI64ArrayAttr.get(dims))


def _op(name: str, ty: TensorType, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        f"stablehlo.{name}", results=[ty.mlir], operands=list(operands), attributes=attributes
    ).results[0]


def _constant(element: ElementType, value: np.ndarray) -> ir.Value:
    ty = TensorType(value.shape, element)
    data = np.frombuffer(value.astype(element.dtype).tobytes(), np.uint8)
    return _op("constant", ty, value=elements(data, ty.mlir))
