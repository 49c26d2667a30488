"""A reduction of everything in two steps, since the first has rows that threads can share.

reduce(x, init, f) across [0, 1]  ->  reduce(reduce(x, e, f) across [1], init, f) across [0], where f(e, y) == y

f is associative and commutative: the specification leaves the order open, and it depends on the shape alone. Rows of one
or more of the dimensions can have in their kernel what makes x; where none has a fitting size, x is cut by a reshape, and so is
what it is made of element by element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Constant
from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk
from stablehlo_py.transforms.grouping import LONGEST_ROW, is_elementwise

LEAST = 1 << 19  # elements: fewer take one thread less time than another needs to come
SHORTEST_ROW = 1 << 10  # elements: a row of less costs as much for its end as for itself
ROWS = 64  # that a tensor is cut into if none of them is too long: enough for the threads to have equal shares
FARTHEST = 200  # ops in front of a reduction, as many as a kernel takes

# what changes nothing: a number, or the end of the element type's range that it names
_NEUTRAL: dict[str, float | str] = {
    "stablehlo.add": -0.0,
    "stablehlo.multiply": 1,
    "stablehlo.and": -1,
    "stablehlo.or": 0,
    "stablehlo.xor": 0,
    "stablehlo.maximum": "least",
    "stablehlo.minimum": "most",
}
_ROUNDS = ("stablehlo.add", "stablehlo.multiply")


@dataclass(frozen=True)
class HloSplitReductions(Pass):
    """Reduce large tensors to a scalar by rows first, then their results."""

    name: ClassVar[str] = "hlo-split-reductions"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def run(self, op: ir.Operation) -> None:
        found: list[ir.Operation] = []
        walk(op, lambda inner: found.append(inner) if inner.name == "stablehlo.reduce" else None)
        for reduce in found:
            neutral = _neutral_of(reduce)
            shape = tensor_type(reduce.operands[0].type).shape
            if neutral is None or tensor_type(reduce.results[0].type).rank or math.prod(shape) < LEAST:
                continue
            rows = rows_of(shape)
            if rows is not None:
                with ir.InsertionPoint(reduce), reduce.location:
                    _split(reduce, *rows, neutral)


def rows_of(shape: Sequence[int]) -> tuple[tuple[int, ...], int] | None:
    """A shape of the same elements, and how many of its leading dimensions make the rows; None where there are no rows."""
    for kept in range(1, len(shape)):
        if SHORTEST_ROW <= math.prod(shape[kept:]) <= LONGEST_ROW and math.prod(shape[:kept]) > 1:
            return tuple(shape), kept
    size = math.prod(shape)
    rows = math.gcd(size, 1 << (max(ROWS, -(-size // LONGEST_ROW)) - 1).bit_length())
    return ((rows, size // rows), 1) if rows > 1 else None


def _neutral_of(reduce: ir.Operation) -> np.ndarray | None:
    """What changes nothing in a reduction by one op whose order is free; None where it is not of that kind."""
    body = [o.operation for o in reduce.regions[0].blocks[0].operations]
    if len(reduce.operands) != 2 or len(body) != 2 or body[0].name not in _NEUTRAL:
        return None
    arguments = list(reduce.regions[0].blocks[0].arguments)
    if list(body[0].operands) not in (arguments, arguments[::-1]) or list(body[1].operands) != list(body[0].results):
        return None
    element = tensor_type(reduce.operands[0].type).element
    same = all(tensor_type(v.type).element == element for v in (*arguments, *reduce.results))
    return _neutral(body[0].name, element) if same else None


def _neutral(name: str, element: ElementType) -> np.ndarray | None:
    number = _NEUTRAL[name]
    if element.is_float:
        # a sum of shorter floats is kept in f32 to its end: rows would be rounded in between
        if element.name not in (("f32", "f64") if name in _ROUNDS else ("f32", "f64", "f16", "bf16")):
            return None
        number = {"least": -np.inf, "most": np.inf}.get(str(number), number)
        return np.array(number, element.dtype)
    if element.is_integer and element.bits >= 8:
        ends = np.iinfo(element.dtype)
        number = {"least": ends.min, "most": ends.max, "-1": ends.max if element.is_unsigned else -1}.get(
            str(number), number
        )
        return np.array(int(number), element.dtype)
    if element.is_bool and name in ("stablehlo.and", "stablehlo.or"):
        return np.array(name == "stablehlo.and")
    return None


def _split(reduce: ir.Operation, shape: tuple[int, ...], kept: int, neutral: np.ndarray) -> None:
    x, init = reduce.operands
    element = tensor_type(x.type).element
    reshaped = _Reshaped(reduce, shape) if shape != tensor_type(x.type).shape else None
    x = reshaped.of(x) if reshaped else x
    start = make.constant(neutral, TensorType((), element))
    rows = _like(reduce, x, start, TensorType(shape[:kept], element), range(kept, len(shape)))
    total = _like(reduce, rows, init, TensorType((), element), range(kept))
    reduce.results[0].replace_all_uses_with(total)
    reduce.erase()
    for op in reversed(reshaped.moved if reshaped else ()):
        op.erase()


class _Reshaped:
    """Values in another shape. moved: the elementwise ops that are done in it, in order; new: what stands for a value there."""

    def __init__(self, reduce: ir.Operation, shape: tuple[int, ...]) -> None:
        self.shape, self.new = shape, dict[ir.Value, ir.Value]()
        self.moved = _only_for(reduce)
        for op in self.moved:
            operands = [self.of(v) for v in op.operands]
            attributes = {name: op.attributes[name] for name in op.attributes}
            ty = tensor_type(op.results[0].type).with_shape(shape)
            new = ir.Operation.create(op.name, results=[ty.mlir], operands=operands, attributes=attributes)
            self.new[op.results[0]] = new.results[0]

    def of(self, x: ir.Value) -> ir.Value:
        before = tensor_type(x.type)
        if x not in self.new and before.rank:  # a scalar stands beside tensors of any shape
            self.new[x] = self._read(x, before.with_shape(self.shape))
        return self.new.get(x, x)

    def _read(self, x: ir.Value, ty: TensorType) -> ir.Value:
        op = None if isinstance(x.owner, ir.Block) else x.owner.operation
        if op is not None and op.name == "stablehlo.broadcast_in_dim" and not tensor_type(op.operands[0].type).rank:
            return make.broadcast(op.operands[0], ty.shape, ())
        if op is not None and op.name == "stablehlo.constant" and (number := Constant(op).splat) is not None:
            return make.constant(number, ty)
        return make.reshape(x, ty.shape)


def _only_for(reduce: ir.Operation) -> list[ir.Operation]:
    """The elementwise ops in front of a reduction whose results it or others of them read, and nothing else does."""
    shape = tensor_type(reduce.operands[0].type).shape
    before = list(itertools.takewhile(lambda op: op != reduce, (o.operation for o in reduce.block.operations)))
    found: list[ir.Operation] = []
    for op in reversed(before[-FARTHEST:]):
        if not is_elementwise(op) or tensor_type(op.results[0].type).shape != shape:
            continue
        readers = [use.owner.operation for use in op.results[0].uses]
        if readers and all(reader == reduce or reader in found for reader in readers):
            found.append(op)
    return found[::-1]


def _like(reduce: ir.Operation, x: ir.Value, init: ir.Value, ty: TensorType, dimensions: Sequence[int]) -> ir.Value:
    """The reduction of another value across other dimensions."""
    copy = reduce.clone().operation
    new = ir.Operation.create(
        "stablehlo.reduce",
        results=[ty.mlir],
        operands=[x, init],
        attributes={"dimensions": make.integers(list(dimensions))},
        regions=1,
    )
    copy.regions[0].blocks[0].append_to(new.regions[0])
    copy.erase()
    return new.results[0]
