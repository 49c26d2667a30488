"""Shape computations with known operands, done now: by the rules that the reference interpreter uses.

%0 = get_dimension_size %x, dim = 0 : (tensor<3x4xf32>)     ->   constant 3
%1 = divide %0, constant 2; %2 = ceil ...                   ->   constants
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import made_by
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.registry import evaluate
from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.constants import elements
from stablehlo_py.reference.interpreter import interpret
from stablehlo_py.transforms.normalize.hlo_inline import find_main
from stablehlo_py.transforms.normalize.shape_operands import is_dynamic, shape_slice

MAX_SIZE = 64  # shapes are short; what is longer is data
_STAYS = {"stablehlo.constant", "stablehlo.custom_call", "stablehlo.rng", "stablehlo.rng_bit_generator"}
# Loops are left out: whether one ends is not known before.
_WITH_REGIONS = {"stablehlo.map", "stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter", "stablehlo.sort"}


class HloFoldShapes(Pass):
    """Fold what computes shapes, where its operands are constants."""

    name: ClassVar[str] = "hlo-fold-shapes"

    def run(self, op: ir.Operation) -> None:
        fold_shapes(op)


def fold_shapes(module: ir.Operation) -> bool:
    """Fold shape computations; whether there was one to fold."""
    main = find_main(module)
    operations, _ = shape_slice(main)
    ordered: list[ir.Operation] = []
    walk(main, lambda op: ordered.append(op) if op in operations else None)
    places = {op: place for place, op in enumerate(ordered)}
    gone: set[int] = set()  # places of what went with the op around it: it cannot be asked anything
    folded = False
    for place, op in enumerate(ordered):
        values = None if place in gone else _values(op)
        if values is None:
            continue
        for result, value in zip(list(op.results), values, strict=True):
            result.replace_all_uses_with(constant_before(op, value, tensor_type(result.type)))
        walk(op, lambda inner: gone.add(places[inner]) if inner in places else None)
        op.erase()
        folded = True
    return folded


def _values(op: ir.Operation) -> tuple[np.ndarray, ...] | None:
    """The values of an op's results, or None where they cannot be known."""
    if op.name == "stablehlo.get_dimension_size":
        size = ir.RankedTensorType(op.operands[0].type).shape
        dimension = ir.IntegerAttr(op.attributes["dimension"]).value
        if ir.RankedTensorType(op.operands[0].type).is_dynamic_dim(dimension):
            return None
        return (np.asarray(size[dimension], tensor_type(op.results[0].type).element.dtype),)
    if op.name in _STAYS or any(is_dynamic(r.type) for r in op.results):
        return None
    if len(op.regions) and not (op.name in _WITH_REGIONS and _stands_alone(op)):
        return None
    operands = [found for operand in op.operands if (found := known_elements(operand)) is not None]
    if len(operands) != len(op.operands):
        return None
    rule = evaluate.find(op.name)
    if rule is None or any(tensor_type(r.type).size > MAX_SIZE for r in op.results):
        return None
    if len(op.regions):
        return _interpreted(op, operands)
    with np.errstate(all="ignore"):
        made = rule(view(op), *operands)
    return made if isinstance(made, tuple) else (made,)


def _stands_alone(op: ir.Operation) -> bool:
    """Whether the regions of an op use nothing from around it, and only ops that end."""
    inside: set[ir.Value] = set()
    found = True

    def visit(inner: ir.Operation) -> None:
        nonlocal found
        found = found and not len(inner.regions) and all(operand in inside for operand in inner.operands)
        inside.update(inner.results)

    inside.update(argument for region in op.regions for block in region.blocks for argument in block.arguments)
    walk(op, visit)
    return found


def _interpreted(op: ir.Operation, operands: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of an op with regions, by the reference interpreter on a program of it alone."""
    with op.context, op.location:
        module = ir.Module.create()
        inputs, results = [v.type for v in op.operands], [v.type for v in op.results]
        attributes = {
            "sym_name": ir.StringAttr.get("main"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, results)),
        }
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create("func.func", attributes=attributes, regions=1)
        block = function.regions[0].blocks.append(*inputs, arg_locs=[op.location] * len(inputs))
        with ir.InsertionPoint(block):
            clone = op.clone()
            for number, argument in enumerate(block.arguments):
                clone.operands[number] = argument
            ir.Operation.create("func.return", operands=list(clone.results))
    return interpret(module, *operands)


def known_elements(value: ir.Value) -> np.ndarray | None:
    """The elements of a value, where a small constant gives it."""
    op = made_by(value, "stablehlo.constant")
    if op is None or not isinstance(value.type, ir.RankedTensorType):
        return None
    constant = Constant(op)
    if constant.type.size > MAX_SIZE:
        return None
    return np.array(constant.value)


def constant_before(op: ir.Operation, value: np.ndarray, ty: TensorType) -> ir.Value:
    """A constant in front of an op."""
    data = np.frombuffer(np.ascontiguousarray(value.astype(ty.element.dtype)).tobytes(), np.uint8)
    with ir.InsertionPoint(op), op.location:
        return ir.Operation.create(
            "stablehlo.constant", results=[ty.mlir], attributes={"value": elements(data, ty.mlir)}
        ).results[0]
