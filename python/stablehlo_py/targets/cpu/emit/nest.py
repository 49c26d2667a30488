"""Loops and vectors on buffers: the small vocabulary in which the CPU's emitters are written."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from stablehlo_py.core.collect import made_by
from stablehlo_py.mlir import arith, ir, memref, scf, vector
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.kernel_scratch import BUFFERS_FIRST

VECTOR_CODE = "kernel.vectors"  # marks a kernel that holds no scalar loop worth vectorising
TILED_CODE = "kernel.tiles"  # marks one whose time goes to multiply-adds of register tiles
ORDERED_CODE = "kernel.ordered"  # marks one whose scalar loops are such that no vectoriser could take them


def is_written_whole(kernel: ir.Operation) -> bool:
    """Whether emitters wrote all of a kernel, in vectors and what they need: no function on scalars is in it."""
    marks = kernel.attributes
    return VECTOR_CODE in marks and (TILED_CODE in marks or BUFFERS_FIRST in marks)


class _Shared(threading.local):
    """Of the function that a thread writes to: its index constants by value, and where they stand."""

    constants: dict[int, ir.Value] | None = None
    place: ir.InsertionPoint | None = None


_shared = _Shared()


@contextmanager
def shared_indices(block: ir.Block) -> Iterator[None]:
    """While active, each index constant is made once, at the beginning of `block`: the body of the function written to.

    A third of the ops of an emitted kernel would be such, and each pass behind goes over all of them.
    """
    before = _shared.constants, _shared.place
    with ir.InsertionPoint.at_block_begin(block):
        zero = arith.constant(ir.IndexType.get(), 0)
    _shared.constants, _shared.place = {0: zero}, ir.InsertionPoint(zero.owner)
    try:
        yield
    finally:
        _shared.constants, _shared.place = before


def index(value: int | ir.Value) -> ir.Value:
    """An index value; integers become constants."""
    if not isinstance(value, int):
        return value
    known = _shared.constants
    if known is None or _shared.place is None:
        return arith.constant(ir.IndexType.get(), value)
    if value not in known:
        with _shared.place:
            known[value] = arith.constant(ir.IndexType.get(), value)
    return known[value]


def add(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    """a + b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
        return b if isinstance(a, int) and a == 0 else a
    return arith.addi(index(a), index(b))


def multiply(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    """a * b, folded where both are known."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    value, factor = (b, a) if isinstance(a, int) else (a, b)
    return value if isinstance(factor, int) and factor == 1 else arith.muli(index(value), index(factor))


def minimum(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return arith.minsi(index(a), index(b))


def maximum(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return arith.maxsi(index(a), index(b))


def ceil_divided(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    """a / b for a >= 0, rounded up."""
    if not isinstance(b, int):
        return arith.ceildivui(index(a), b)
    if isinstance(a, int):
        return -(-a // b)
    return a if b == 1 else arith.divui(arith.addi(a, index(b - 1)), index(b))


def divided(a: int | ir.Value, b: int) -> tuple[int | ir.Value, int | ir.Value]:
    """Quotient and remainder of a >= 0."""
    if isinstance(a, int):
        return a // b, a % b
    return (a, 0) if b == 1 else (arith.divui(a, index(b)), arith.remui(a, index(b)))


def place_of(at: Sequence[int | ir.Value], strides: Sequence[int | ir.Value]) -> int | ir.Value:
    """How far into a buffer something is that is `at` these numbers along its dimensions."""
    total: int | ir.Value = 0
    for number, stride in zip(at, strides, strict=True):
        if not (isinstance(number, int) and number == 0):
            total = add(total, multiply(number, stride))
    return total


def subtract(a: int | ir.Value, b: int | ir.Value) -> int | ir.Value:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return a if isinstance(b, int) and b == 0 else arith.subi(index(a), index(b))


def loop(
    start: int | ir.Value,
    stop: int | ir.Value,
    step: int,
    body: Callable[..., Sequence[ir.Value] | None],
    carried: Sequence[ir.Value] = (),
    *,
    parallel: str = "",
) -> list[ir.Value]:
    """for i in range(start, stop, step): carried = body(i, *carried). `parallel` names the mark of an outermost loop."""
    op = scf.for_(index(start), index(stop), index(step), carried)
    if parallel:
        op.attributes[parallel] = ir.UnitAttr.get()
    block = op.regions[0].blocks[0]
    with ir.InsertionPoint(block):
        scf.yield_(body(*block.arguments) or ())
    return list(op.results)


def once_or_loop(
    extent: int | ir.Value, step: int | ir.Value, body: Callable[[int | ir.Value], None], *, start: int | ir.Value = 0
) -> None:
    """A loop over start .. extent, or the body alone where it is known to run once."""
    if all(isinstance(x, int) for x in (start, extent, step)) and extent - start <= step:
        body(start)
    else:
        loop(start, extent, step, lambda i: body(i))


def in_vectors(count: int, lanes: int, body: Callable[[int | ir.Value], None]) -> None:
    """body(first) for `count` >= lanes elements, a vector at a time; the last may overlap the one before."""
    once_or_loop(count, lanes, lambda n: body(minimum(n, count - lanes) if count % lanes else n))


def when(condition: ir.Value | bool, then: Callable[[], None], otherwise: Callable[[], None] | None = None) -> None:
    """scf.if without results; decided here where the condition is known."""
    if isinstance(condition, bool):
        if condition:
            then()
        elif otherwise:
            otherwise()
        return
    op = ir.Operation.create("scf.if", operands=[condition], regions=2)
    for region, body in zip(op.regions, (then, otherwise), strict=True):
        if body is not None:
            with ir.InsertionPoint(region.blocks.append()):
                body()
                scf.yield_([])


def choose(
    condition: ir.Value,
    types: Sequence[ir.Type],
    then: Callable[[], Sequence[ir.Value]],
    otherwise: Callable[[], Sequence[ir.Value]],
) -> list[ir.Value]:
    """scf.if with results."""
    op = scf.if_(condition, types)
    for region, body in zip(op.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(region.blocks[0]):
            scf.yield_(body())
    return list(op.results)


def is_below(value: int | ir.Value, limit: int) -> ir.Value:
    """Whether 0 <= value < limit: as unsigned numbers, those below 0 are large."""
    return arith.cmpi(arith.CmpIPredicate.ult, index(value), index(limit))


def equal(a: int | ir.Value, b: int | ir.Value) -> ir.Value | bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    return arith.cmpi(arith.CmpIPredicate.eq, index(a), index(b))


# --- memory ------------------------------------------------------------------------------------------------------------


def scratch(shape: Sequence[int], element: ir.Type) -> ir.Value:
    """A buffer of the kernel's own, made where index constants are; the pass kernel-scratch finds it a place."""
    ty = ir.MemRefType.get(list(shape), element, loc=ir.Location.unknown())
    with _shared.place or ir.InsertionPoint.current:
        return memref.alloc(ty, [], [], alignment=64)


def flatten_arguments(function: ir.Operation) -> None:
    """Give a kernel without a body buffers of one dimension: the same bytes, and places that are plain sums.

    Complex numbers become two floats each.
    """
    block = function.regions[0].blocks[0]
    for argument in block.arguments:
        ty = ir.MemRefType(argument.type)
        size, element = math.prod(ty.shape), ty.element_type
        if isinstance(element, ir.ComplexType):
            size, element = 2 * size, ir.ComplexType(element).element_type
        argument.set_type(ir.MemRefType.get([size], element, loc=function.location))
    inputs = [argument.type for argument in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))


def flat(source: ir.Value) -> ir.Value:
    """A buffer with one dimension."""
    ty = ir.MemRefType(source.type)
    size = 1
    for extent in ty.shape:
        size *= extent
    target = ir.MemRefType.get([size], ty.element_type, loc=ir.Location.unknown())
    return memref.collapse_shape(target, source, [list(range(len(ty.shape)))])


def load(source: ir.Value, indices: Sequence[int | ir.Value]) -> ir.Value:
    return memref.load(source, [index(i) for i in indices])


def store(value: ir.Value, target: ir.Value, indices: Sequence[int | ir.Value]) -> None:
    memref.store(value, target, [index(i) for i in indices])


def prefetch(source: ir.Value, indices: Sequence[int | ir.Value]) -> None:
    """Ask for a cache line that is read before long."""
    memref.prefetch(source, [index(i) for i in indices], is_write=False, locality_hint=2, is_data_cache=True)


@record
class Vectors:
    """Vectors of one element type and one width."""

    element: ir.Type
    lanes: int

    @property
    def type(self) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], self.element)

    def load(self, source: ir.Value, indices: Sequence[int | ir.Value]) -> ir.Value:
        return vector.load(self.type, source, [index(i) for i in indices])

    def store(self, value: ir.Value, target: ir.Value, indices: Sequence[int | ir.Value]) -> None:
        vector.store(value, target, [index(i) for i in indices])

    def mask(self, count: int | ir.Value) -> ir.Value:
        """The first `count` lanes."""
        return first_lanes(self.lanes, count)

    def masked_load(self, source: ir.Value, indices: Sequence[int | ir.Value], count: int | ir.Value) -> ir.Value:
        """The first `count` elements, zeros behind them."""
        return vector.maskedload(self.type, source, [index(i) for i in indices], self.mask(count), self.zero())

    def masked_store(
        self, value: ir.Value, target: ir.Value, indices: Sequence[int | ir.Value], count: int | ir.Value
    ) -> None:
        store_lanes(value, target, [index(i) for i in indices], self.mask(count))

    def splat(self, scalar: ir.Value) -> ir.Value:
        return vector.broadcast(self.type, scalar)

    def zero(self) -> ir.Value:
        return constant_vector(self.type, 0)


def constant_vector(ty: ir.VectorType, value: float) -> ir.Value:
    """A constant in all lanes."""
    element = ty.element_type
    is_float = isinstance(element, ir.FloatType)
    number = ir.FloatAttr.get(element, float(value)) if is_float else ir.IntegerAttr.get(element, int(value))
    return arith.constant(ty, ir.DenseElementsAttr.get_splat(ty, number))


def lane_numbers(ty: ir.VectorType) -> ir.Value:
    """0, 1, 2, ... in the lanes."""
    element = ty.element_type
    bits = 64 if isinstance(element, ir.IndexType) else ir.IntegerType(element).width
    numbers = np.arange(ty.shape[0], dtype=np.int64).astype(f"int{bits}")
    return arith.constant(ty, ir.DenseElementsAttr.get(numbers, type=ty))


def store_lanes(value: ir.Value, target: ir.Value, indices: Sequence[ir.Value], mask: ir.Value) -> None:
    """Store the lanes that a mask has.

    One lane by a constant mask is stored as a scalar: of a vector that was truncated, LLVM 22 stores the lane as wide as it
    was before, over what lies behind it.
    """
    if is_first_lane_alone(mask):
        memref.store(vector.extract(value, [], [0]), target, indices)
    else:
        vector.maskedstore(target, indices, mask, value)


def is_first_lane_alone(mask: ir.Value) -> bool:
    """Whether a mask is a constant that has the first lane only: see `store_lanes`."""
    constant = made_by(mask, "arith.constant")
    if constant is None:
        return False
    first, *rest = ir.DenseIntElementsAttr(constant.attributes["value"])
    return bool(first) and not any(rest)


def first_lanes(lanes: int, count: int | ir.Value) -> ir.Value:
    """A mask of the first `count` of `lanes`; made without vector.constant_mask, which needs a conversion of its own."""
    if not isinstance(count, int):
        ty = ir.VectorType.get([lanes], ir.IntegerType.get_signless(32))
        limit = vector.broadcast(ty, arith.index_cast(ty.element_type, count))
        return arith.cmpi(arith.CmpIPredicate.slt, lane_numbers(ty), limit)
    bit = ir.IntegerType.get_signless(1)
    ty = ir.VectorType.get([lanes], bit)
    bits = [ir.IntegerAttr.get(bit, int(lane < count)) for lane in range(lanes)]
    return arith.constant(ty, ir.DenseElementsAttr.get(bits, ty))
