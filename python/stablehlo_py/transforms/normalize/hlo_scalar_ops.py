"""Scalars and shapes of other dialects (tensor, arith, math, shape) as StableHLO on tensors: PyTorch computes shapes so.

%d = tensor.dim %x, %c0; %s = tensor.from_elements %d, %c4     ->   concatenate(get_dimension_size %x, constant 4)
shape.broadcast %a, %b                                         ->   select(%a == 1, %b, %a)
shape.assuming %w { ... }                                      ->   its body: refinement finds what does not fit

An index is an i64, a scalar a tensor of rank 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import names_under, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import TensorType, element_type, tensor_type
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir
from stablehlo_py.reading.constants import elements
from stablehlo_py.reading.places import place

DIALECTS = ("arith", "math", "shape", "tensor")
_CONTROL = ("affine", "cf", "scf")  # whose ops take scalars as they are
_INDEX = element_type("i64")
_ELEMENTWISE = {
    **{f"arith.{name}": "add" for name in ("addi", "addf")},
    **{f"arith.{name}": "subtract" for name in ("subi", "subf")},
    **{f"arith.{name}": "multiply" for name in ("muli", "mulf")},
    **{f"arith.{name}": "divide" for name in ("divsi", "divf")},
    **{f"arith.{name}": "maximum" for name in ("maxsi", "maximumf")},
    **{f"arith.{name}": "minimum" for name in ("minsi", "minimumf")},
    **{f"arith.{name}": "convert" for name in ("index_cast", "extsi", "extf", "truncf", "sitofp", "fptosi")},
    "arith.remsi": "remainder",
    "arith.trunci": "convert",
    "arith.select": "select",
    "arith.negf": "negate",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    **{f"arith.{name}": "convert" for name in ("extui", "uitofp")},
    **{f"math.{name}": name for name in ("ceil", "floor", "sqrt", "tanh")},
    "math.absf": "abs",
    "math.exp": "exponential",
    "math.log": "log",
    "shape.add": "add",
    "shape.mul": "multiply",
}
_SAME = {"shape.to_extent_tensor", "shape.index_to_size", "shape.size_to_index", "shape.value_as_shape", "tensor.cast"}
_UNSIGNED_CASTS = {"arith.extui", "arith.uitofp"}  # of i1, whose conversion to a number is 0 or 1
_SIGNED_CASTS = {"arith.extsi", "arith.trunci", "arith.sitofp", "arith.fptosi", "arith.index_cast"}
_NOTHING = {
    "shape.cstr_broadcastable",
    "shape.cstr_eq",
    "shape.const_witness",
    "shape.assuming_all",
    "shape.cstr_require",
}
_PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE")  # arith.cmpi's numbers; the unsigned ones are left out


class HloScalarOps(Pass):
    """Replace what computes scalars and shapes in other dialects by StableHLO."""

    name: ClassVar[str] = "hlo-scalar-ops"

    def run(self, op: ir.Operation) -> bool:
        if not any(name.split(".")[0] in DIALECTS for name in names_under(op)):
            return False
        _open_assuming(op)
        _Rewriter().run(op)
        return True


def _open_assuming(module: ir.Operation) -> None:
    """shape.assuming %w -> t { yield %x }   ->   %x"""
    for op in operations_named(module, "shape.assuming"):
        body = list(op.regions[0].blocks[0].operations)
        for inner in body[:-1]:
            inner.operation.move_before(op)
        for result, value in zip(list(op.results), list(body[-1].operands), strict=True):
            result.replace_all_uses_with(value)
        op.erase()


class _Rewriter:
    """Op after op; `values` holds what stands for the results of those that go."""

    def __init__(self) -> None:
        self.values: dict[ir.Value, ir.Value] = {}

    def run(self, module: ir.Operation) -> None:
        gone: list[ir.Operation] = []
        self.region(module, gone)
        for op in reversed(gone):
            if not any(list(result.uses) for result in op.results):  # what linalg's ops read stays with them
                op.erase()

    def region(self, parent: ir.Operation, gone: list[ir.Operation]) -> None:
        for region in parent.regions:
            for block in region.blocks:
                for child in list(block.operations):
                    op = child.operation
                    if op.name.startswith("linalg."):
                        continue  # not a scalar of a program, but another program
                    if op.name.split(".")[0] in DIALECTS:
                        self.replace(op)
                        gone.append(op)
                        continue
                    for index, operand in enumerate(list(op.operands)):
                        if operand not in self.values:
                            continue
                        if not isinstance(operand.type, ir.RankedTensorType) and op.name.split(".")[0] in _CONTROL:
                            reason = f"it reads {operand.type}, a scalar that is no tensor"
                            hint = "say it by stablehlo.while, if or case"
                            raise UnsupportedOp(op.name, reason, where=place(op), hint=hint)
                        op.operands[index] = self.values[operand]
                    self.region(op, gone)

    def replace(self, op: ir.Operation) -> None:
        if op.name in _NOTHING:
            return
        with ir.InsertionPoint(op), op.location:
            new = self.value(op)
        if new is None:
            raise UnsupportedOp(op.name, "it is no op of StableHLO, and no rule says it in StableHLO", where=place(op))
        self.values[op.results[0]] = new

    def value(self, op: ir.Operation) -> ir.Value | None:
        operands = [self.values.get(operand, operand) for operand in op.operands]
        if op.name in _SAME:
            return operands[0]
        if op.name in _ELEMENTWISE:
            if op.name in _UNSIGNED_CASTS and not _is_bool(op.operands[0]):
                return None
            if op.name in _SIGNED_CASTS and any(_is_bool(v) for v in (*op.operands, *op.results)):
                return None  # to arith a true i1 is -1, and only the lowest bit counts
            return _op(_ELEMENTWISE[op.name], _type(op.results[0].type), *operands)
        rule = _RULES.get(op.name)
        return rule(op, operands) if rule else None


def _is_bool(value: ir.Value) -> bool:
    return _type(value.type).element.is_bool


# --- one rule for each op ----------------------------------------------------------------------------------------------


def _constant_op(op: ir.Operation, _: Sequence[ir.Value]) -> ir.Value | None:
    value = op.attributes["value"]
    if isinstance(value, ir.IntegerAttr | ir.BoolAttr | ir.FloatAttr):
        return _constant(_type(op.results[0].type), np.asarray(value.value))
    if isinstance(value, ir.DenseIntElementsAttr):
        return _constant(_type(op.results[0].type), np.array(value))
    return None


def _const_shape(op: ir.Operation, _: Sequence[ir.Value]) -> ir.Value:
    shape = np.array(ir.DenseIntElementsAttr(op.attributes["shape"]), np.int64)
    return _constant(TensorType(shape.shape, _INDEX), shape)


def _dim(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value | None:
    index = op.operands[1].owner
    if isinstance(index, ir.Block) or index.operation.name != "arith.constant":
        return None
    return _size(operands[0], ir.IntegerAttr(index.operation.attributes["value"]).value)


def _shape_of(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    return _vector([_size(operands[0], d) for d in range(ir.RankedTensorType(operands[0].type).rank)])


def _from_elements(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    ty = _type(op.results[0].type)
    if ty.rank == 0:
        return operands[0]
    return _op("reshape", ty, _vector(operands)) if ty.size else _constant(ty, np.zeros(ty.shape))


def _extract(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """The element at some indices; those beyond the tensor are undefined, and clamped here."""
    ty = _type(op.results[0].type)
    if len(operands) == 1:
        return operands[0]
    ones = TensorType((1,) * (len(operands) - 1), ty.element)
    sizes = ir.DenseI64ArrayAttr.get([1] * ones.rank)
    return _op("reshape", ty, _op("dynamic_slice", ones, *operands, slice_sizes=sizes))


def _empty(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value | None:
    """A tensor whose elements mean nothing until they are written: zeros."""
    ty = _type(op.results[0].type)
    return None if operands else _constant(ty, np.zeros(ty.shape))


def _broadcast(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    """The shape to which shapes broadcast, aligned at the last dimension; a 1 gives way."""
    shapes = [_elements(operand) for operand in operands]
    rank = max(len(shape) for shape in shapes)
    result: list[ir.Value] = []
    one = _constant(TensorType((), _INDEX), np.asarray(1))
    for d in range(rank):
        sizes = [shape[d - rank + len(shape)] for shape in shapes if d >= rank - len(shape)]
        size = sizes[0]
        for other in sizes[1:]:
            size = _op("select", TensorType((), _INDEX), _compare("EQ", size, one), other, size)
        result.append(size)
    return _vector(result)


def _num_elements(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    product = _constant(TensorType((), _INDEX), np.asarray(1))
    for size in _elements(operands[0]):
        product = _op("multiply", TensorType((), _INDEX), product, size)
    return product


def _get_extent(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value:
    return _extract(op, operands)


def _compare_op(op: ir.Operation, operands: Sequence[ir.Value]) -> ir.Value | None:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    return _compare(_PREDICATES[predicate], *operands) if predicate < len(_PREDICATES) else None


_RULES: dict[str, Callable[[ir.Operation, Sequence[ir.Value]], ir.Value | None]] = {
    "arith.cmpi": _compare_op,
    "arith.constant": _constant_op,
    "shape.broadcast": _broadcast,
    "shape.const_shape": _const_shape,
    "shape.const_size": _constant_op,
    "shape.from_extents": _from_elements,
    "shape.get_extent": _get_extent,
    "shape.num_elements": _num_elements,
    "shape.shape_of": _shape_of,
    "tensor.dim": _dim,
    "tensor.empty": _empty,
    "tensor.extract": _extract,
    "tensor.from_elements": _from_elements,
}


# --- StableHLO on small tensors ----------------------------------------------------------------------------------------


def _type(ty: ir.Type) -> TensorType:
    """The type of the tensor that stands for a scalar, a shape or a tensor of indices."""
    text = str(ty)
    if not text.startswith("tensor<"):
        return TensorType((), _INDEX if text in ("index", "!shape.size") else element_type(text))
    found = tensor_type(ty)
    return found.with_element(_INDEX) if found.element.name == "index" else found


def _op(name: str, ty: TensorType, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    return ir.Operation.create(
        f"stablehlo.{name}", results=[ty.mlir], operands=list(operands), attributes=attributes
    ).results[0]


def _constant(ty: TensorType, value: np.ndarray) -> ir.Value:
    data = np.broadcast_to(value, ty.shape).astype(ty.element.dtype)
    return _op("constant", ty, value=elements(np.frombuffer(data.tobytes(), np.uint8), ty.mlir))


def _compare(direction: str, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    attribute = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>")
    return _op("compare", tensor_type(lhs.type).with_element("i1"), lhs, rhs, comparison_direction=attribute)


def _size(tensor: ir.Value, dimension: int) -> ir.Value:
    where = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dimension)
    size = _op("get_dimension_size", TensorType((), element_type("i32")), tensor, dimension=where)
    return _op("convert", TensorType((), _INDEX), size)


def _vector(scalars: Sequence[ir.Value]) -> ir.Value:
    """Scalars side by side."""
    element = tensor_type(scalars[0].type).element if scalars else _INDEX
    if not scalars:
        return _constant(TensorType((0,), element), np.zeros(0))
    parts = [_op("reshape", TensorType((1,), element), scalar) for scalar in scalars]
    dimension = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
    return _op("concatenate", TensorType((len(parts),), element), *parts, dimension=dimension)


def _elements(vector: ir.Value) -> list[ir.Value]:
    """The scalars of a vector."""
    ty = tensor_type(vector.type)
    scalars = []
    for place_in in range(ty.size):
        start, limit, stride = (ir.DenseI64ArrayAttr.get([n]) for n in (place_in, place_in + 1, 1))
        part = _op("slice", ty.with_shape((1,)), vector, start_indices=start, limit_indices=limit, strides=stride)
        scalars.append(_op("reshape", ty.with_shape(()), part))
    return scalars
