"""A reduction of everything, or of all but a few last columns, in two steps: the first has parts that threads can share.

reduce(x, init, f) across [0, 1]  ->  reduce(reduce(x, e, f) across [1], init, f) across [0], where f(e, y) == y

f is associative and commutative: the specification leaves the order open, and it depends on the shape alone. Rows of one
or more of the dimensions can have in their kernel what makes x; where none has a fitting size, x is cut by a reshape, and so is
what it is made of element by element.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import made_by, maker, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import ElementType, TensorType, tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.grouping import LONGEST_ROW, is_elementwise
from stablehlo_py.transforms.kernels.views import is_view

LEAST = 1 << 19  # elements: fewer take one thread less time than another needs to come
SHORTEST_ROW = 1 << 10  # elements: a row of less costs as much for its end as for itself
ROWS = 64  # that a tensor is cut into if none of them is too long: enough for the threads to have equal shares
FEWEST = 8  # parts of a reduction that leaves columns
SHORTEST_PART = 64  # rows of one: its result is one more to read and to write
# of which rows are shared: three blocks of 256 are shared badly, and a line or two of each row read slowly
MOST_COLUMNS = 768
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


class HloSplitReductions(Pass):
    """Reduce large tensors to a scalar by rows first, then their results."""

    name: ClassVar[str] = "hlo-split-reductions"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.reduce",)

    def run(self, op: ir.Operation) -> None:
        for reduce in operations_named(op, "stablehlo.reduce"):
            shape = tensor_type(reduce.operands[0].type).shape
            dimensions = sorted(view(reduce).ints("dimensions"))
            if math.prod(shape) < LEAST or dimensions != list(range(len(dimensions))):
                continue
            parts = rows_of(shape) if len(dimensions) == len(shape) else parts_of(shape, len(dimensions))
            neutral = _neutral_of(reduce)
            if neutral is not None and parts is not None:
                with ir.InsertionPoint(reduce), reduce.location:
                    _split(reduce, parts, neutral)


@record
class Parts:
    """A shape of the same elements, of which the dimensions `first` .. `end` go first, then those in front of them."""

    shape: tuple[int, ...]
    first: int
    end: int


def parts_of(shape: Sequence[int], count: int) -> Parts | None:
    """Of a reduction of `count` leading dimensions that leaves so few columns that threads cannot share these."""
    columns = tuple(shape[count:])
    if math.prod(columns) > MOST_COLUMNS:
        return None
    if count > 1 and shape[0] >= FEWEST:
        return Parts(tuple(shape), 1, count)
    rows = math.prod(shape[:count])
    parts = math.gcd(rows, ROWS)
    while parts > FEWEST and rows // parts < SHORTEST_PART:
        parts //= 2
    return Parts((parts, rows // parts, *columns), 1, 2) if parts >= FEWEST else None


def rows_of(shape: Sequence[int]) -> Parts | None:
    """Of a reduction of everything."""
    for kept in range(1, len(shape)):
        if SHORTEST_ROW <= math.prod(shape[kept:]) <= LONGEST_ROW and math.prod(shape[:kept]) > 1:
            return Parts(tuple(shape), kept, len(shape))
    size = math.prod(shape)
    rows = math.gcd(size, 1 << (max(ROWS, -(-size // LONGEST_ROW)) - 1).bit_length())
    return Parts((rows, size // rows), 1, 2) if rows > 1 else None


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


def _split(reduce: ir.Operation, parts: Parts, neutral: np.ndarray) -> None:
    x, init = reduce.operands
    element, shape = tensor_type(x.type).element, parts.shape
    moved: list[ir.Operation] = []
    if shape != tensor_type(x.type).shape:
        moved = _only_for(reduce) if parts.end == len(shape) else []  # a kernel of columns makes nothing itself
        x = _Reshaped(moved, shape).of(x)
    start = make.constant(neutral, TensorType((), element))
    partial = TensorType(shape[: parts.first] + shape[parts.end :], element)
    first = _like(reduce, x, start, partial, range(parts.first, parts.end))
    total = _like(reduce, first, init, tensor_type(reduce.results[0].type), range(parts.first))
    reduce.results[0].replace_all_uses_with(total)
    reduce.erase()
    for op in reversed(moved):
        op.erase()


class _Reshaped:
    """Values in another shape. moved: elementwise ops that are done in it, in order."""

    def __init__(self, moved: Sequence[ir.Operation], shape: tuple[int, ...]) -> None:
        self.shape, self.new = shape, dict[ir.Value, ir.Value]()
        for op in moved:
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
        broadcast, constant = made_by(x, "stablehlo.broadcast_in_dim"), made_by(x, "stablehlo.constant")
        if broadcast is not None and not tensor_type(broadcast.operands[0].type).rank:
            return make.broadcast(broadcast.operands[0], ty.shape, ())
        if constant is not None and (number := Constant(constant).splat) is not None:
            return make.constant(number, ty)
        return make.reshape(x, ty.shape)


def _only_for(reduce: ir.Operation) -> list[ir.Operation]:
    """The elementwise ops in front of a reduction whose results it or others of them read, and nothing else does.

    Empty where they read what exists in their own shape only as a view: another shape would have to be made of it.
    """
    shape = tensor_type(reduce.operands[0].type).shape
    before = list(itertools.takewhile(lambda op: op != reduce, (o.operation for o in reduce.block.operations)))
    found: list[ir.Operation] = []
    for op in reversed(before[-FARTHEST:]):
        if not is_elementwise(op) or tensor_type(op.results[0].type).shape != shape:
            continue
        readers = [use.owner.operation for use in op.results[0].uses]
        if readers and all(reader == reduce or reader in found for reader in readers):
            found.append(op)
    read = {v for op in found for v in op.operands}
    return [] if any(_is_made_in_place(v) for v in read) else found[::-1]


def _is_made_in_place(x: ir.Value) -> bool:
    """Whether a value is a view or an iota, which each reader makes for itself; a scalar in all places can be made anew."""
    op = maker(x)
    if op is None:
        return False
    if op.name == "stablehlo.broadcast_in_dim":
        return tensor_type(op.operands[0].type).rank > 0
    return op.name == "stablehlo.iota" or (is_view(op) and op.name != "stablehlo.reshape")


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
