"""What rules build with: typed tensors, scalars, linalg.generic, loops over tensors, and the bodies of regions.

Three kinds of types meet here. The *semantic* type is StableHLO's (`ui8`, `f8E4M3FN`, `i1`). The *storage* type is what
a tensor holds: signless integers, bytes for everything below 8 bits and for small floats. The *compute* type is what a
scalar body works on: `i1` for booleans, `f32` for every float below 32 bits. `widen` goes from storage to compute,
`narrow` back, with one rounding. Tensors carry their semantic type; scalars in bodies are plain MLIR values.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from stablehlo_py.core import registry
from stablehlo_py.core.types import ElementType, TensorType
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.later import Later
from stablehlo_py.mlir import arith, bufferization, complex, ir, kept, linalg, scf, tensor
from stablehlo_py.records import record

if TYPE_CHECKING:
    from stablehlo_py.ops import small_float
else:
    small_float = Later("stablehlo_py.ops.small_float")


@record
class Tensor:
    """A tensor value in storage form together with its semantic type."""

    value: ir.Value
    type: TensorType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def rank(self) -> int:
        return self.type.rank

    @property
    def element(self) -> ElementType:
        return self.type.element


# --- storage and compute types -----------------------------------------------------------------------------------------


def storage_type(element: ElementType) -> ir.Type:
    """The MLIR element type that memory holds."""
    # bf16 is held as its bits: moving a bf16 makes LLVM round it through f32, by a function that may not be there
    if element.name != "bf16" and (
        element.name == "index" or element.is_complex or (element.is_float and element.bits >= 16)
    ):
        return _parsed(element.name)
    return ir.IntegerType.get_signless(max(element.bits, 8))


def compute_type(element: ElementType) -> ir.Type:
    """The MLIR type that scalar bodies work on."""
    if element.is_float:
        return ir.F64Type.get() if element.bits == 64 else ir.F32Type.get()
    if element.is_complex or element.name == "index":
        return _parsed(element.name)
    return ir.IntegerType.get_signless(element.bits)


@kept
def _parsed(name: str) -> ir.Type:
    return ir.Type.parse(name)


def storage_tensor(ty: TensorType) -> ir.RankedTensorType:
    """The MLIR tensor type that holds a value of `ty`."""
    return ir.RankedTensorType.get(ty.shape, storage_type(ty.element), loc=ir.Location.unknown())


def widen(element: ElementType, stored: ir.Value) -> ir.Value:
    """Storage to compute."""
    if element.is_float and element.bits < 32:
        value = small_float.widen(element, stored)
        _rounded.get({})[value] = (element, stored)
        return value
    if not element.is_float and not element.is_complex and element.bits < 8:
        return arith.trunci(compute_type(element), stored)
    return stored


def narrow(element: ElementType, value: ir.Value) -> ir.Value:
    """Compute to storage; floats below 32 bits are rounded to nearest even, once."""
    known = _rounded.get({}).get(value)
    if known is not None and known[0] == element:
        return known[1]
    if element.is_float and element.bits < 32:
        return small_float.narrow(element, value)
    if not element.is_float and not element.is_complex and element.bits < 8:
        extend = arith.extsi if element.kind == "int" else arith.extui
        return extend(storage_type(element), value)
    return value


def rounded(element: ElementType, value: ir.Value) -> ir.Value:
    """A compute scalar rounded to what `element` can hold: what one op of a chain hands to the next."""
    if not element.is_float or element.bits >= 32:
        return value
    known = _rounded.get({}).get(value)
    return value if known is not None and known[0] == element else widen(element, narrow(element, value))


# Inside a body, what each small float was widened from: storing it again changes no bit, not even of a NaN.
_rounded: contextvars.ContextVar[dict[ir.Value, tuple[ElementType, ir.Value]]] = contextvars.ContextVar("rounded")


@contextmanager
def one_body() -> Iterator[None]:
    """While active, values that were widened are known by what they were widened from."""
    token = _rounded.set({})
    try:
        yield
    finally:
        _rounded.reset(token)


# --- constants ---------------------------------------------------------------------------------------------------------


def index(value: int) -> ir.Value:
    """A constant of index type."""
    return arith.constant(ir.IndexType.get(), value)


def scalar(element: ElementType, value: object) -> ir.Value:
    """A constant compute scalar from a Python or numpy scalar."""
    if element.is_complex:
        number = np.asarray(value, element.dtype)
        parts = (scalar(element.part, part(number)) for part in (np.real, np.imag))
        return complex.create_(compute_type(element), *parts)
    ty = compute_type(element)
    if element.is_float:
        wide = np.float64 if element.bits == 64 else np.float32
        number = np.asarray(value).astype(element.dtype).astype(wide)[()]
        return float_constant(ty, number)  # pyright: ignore[reportArgumentType] - numpy types [()] as an array
    number = int(np.asarray(value).astype(element.dtype)) if not isinstance(value, int) else value
    return integer_constant(ty, number)


def float_constant(ty: ir.Type, value: float | np.floating) -> ir.Value:
    """A float constant with its exact bits, NaN payloads included."""
    wide = np.float64(value) if isinstance(ty, ir.F64Type) else np.float32(value)
    if np.isnan(wide):
        unsigned = wide.view(np.uint64 if wide.dtype == np.float64 else np.uint32)
        bits = integer_constant(ir.IntegerType.get_signless(wide.dtype.itemsize * 8), int(unsigned))
        return arith.bitcast(ty, bits)
    return arith.constant(ty, float(wide))


def integer_constant(ty: ir.Type, value: int) -> ir.Value:
    """An integer constant of any width, given signed or unsigned."""
    if isinstance(ty, ir.IndexType):
        return arith.constant(ty, value)
    width = ir.IntegerType(ty).width
    value &= (1 << width) - 1
    if value >= 1 << (width - 1):
        value -= 1 << width
    return arith.constant(ty, value)


def splat(ty: TensorType, value: object) -> Tensor:
    """A tensor that holds one element everywhere."""
    stored = narrow(ty.element, scalar(ty.element, value))
    return fill(ty, stored)


def fill(ty: TensorType, stored: ir.Value) -> Tensor:
    """A tensor that holds the stored scalar everywhere."""
    out = empty(ty).value
    return Tensor(linalg.fill([out.type], [stored], [out]).results[0], ty)


def empty(ty: TensorType) -> Tensor:
    """A tensor without contents, to be written."""
    return Tensor(tensor.empty(list(ty.shape), storage_type(ty.element)), ty)


def buffer(ty: TensorType) -> Tensor:
    """A tensor without contents that shares its memory with no other: what loops carry and read back.

    Equal `empty` tensors become one value, and bufferisation then gives two loop-carried tensors the same memory.
    """
    return Tensor(bufferization.alloc_tensor(storage_tensor(ty), []), ty)


def results(types: Sequence[TensorType]) -> list[Tensor]:
    """Tensors without contents for loops to fill and give as results, each with memory of its own.

    An `empty` one becomes the memory of the result itself, but equal ones would become the same.
    """
    seen: set[ir.Type] = set()
    made = []
    for ty in types:
        stored = storage_tensor(ty)
        made.append(buffer(ty) if stored in seen else empty(ty))
        seen.add(stored)
    return made


def constant(ty: TensorType, array: np.ndarray) -> Tensor:
    """A tensor constant from an array of the element type's dtype."""
    return Tensor(arith.constant(storage_tensor(ty), dense(ty, array)), ty)


def dense(ty: TensorType, array: np.ndarray) -> ir.Attribute:
    """Dense elements of the storage type of `ty`."""
    array = np.ascontiguousarray(np.broadcast_to(array, ty.shape))
    stored = storage_tensor(ty)
    if ty.element.is_complex:
        raw = array.view(ty.element.part.dtype)
    elif ty.element.name == "bf16":
        raw = array.view(np.int16)
    elif ty.element.is_float and ty.element.bits >= 16:
        raw = array
    elif ty.element.bits < 8:
        # one byte each, sign- or zero-extended as `narrow` leaves it
        raw = (
            array.astype(np.float32).astype(np.int8 if ty.element.kind == "int" else np.uint8)
            if not ty.element.is_float
            else array.view(np.uint8)
        )
        raw = raw.view(np.int8)
    else:
        raw = array.view(np.dtype(f"int{ty.element.bytes * 8}"))
    return ir.DenseElementsAttr.get(raw, type=stored)


# --- linalg --------------------------------------------------------------------------------------------------------------

Body = Callable[..., "ir.Value | Sequence[ir.Value]"]
PARALLEL, REDUCTION = "parallel", "reduction"


def identity_map(rank: int) -> ir.AffineMap:
    return ir.AffineMap.get_identity(rank)


def dims_map(rank: int, dims: Sequence[int]) -> ir.AffineMap:
    """(d0 .. d{rank-1}) -> (d of each in dims)."""
    return ir.AffineMap.get(rank, 0, [ir.AffineExpr.get_dim(d) for d in dims])


def generic(
    inputs: Sequence[Tensor],
    outputs: Sequence[TensorType | Tensor],
    body: Body,
    *,
    maps: Sequence[ir.AffineMap] | None = None,
    iterators: Sequence[str] | None = None,
) -> tuple[Tensor, ...]:
    """linalg.generic with conversions at its edges.

    outputs: a `TensorType` for a result that is only written, a `Tensor` for one that the body also reads (an
    accumulator). body(*input scalars, *accumulator scalars) -> the output scalars, all in compute form. maps: one per
    input and output, identities when absent; iterators: all parallel when absent.
    """
    inits = [o if isinstance(o, Tensor) else empty(o) for o in outputs]
    reads = [isinstance(o, Tensor) for o in outputs]
    if maps is None:
        maps = [identity_map(inits[0].rank)] * (len(inputs) + len(inits))
    if iterators is None:
        iterators = [PARALLEL] * maps[0].n_dims
    op = linalg.generic(
        [t.value.type for t in inits],
        [t.value for t in inputs],
        [t.value for t in inits],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        ir.ArrayAttr.get([_iterator(i) for i in iterators or ()]),
    )
    every = [*inputs, *inits]
    block = op.regions[0].blocks.append(*[storage_type(t.element) for t in every], arg_locs=None)
    with ir.InsertionPoint(block), one_body():
        scalars = [
            widen(t.element, argument)
            for t, argument, read in zip(every, block.arguments, [True] * len(inputs) + reads, strict=True)
            if read
        ]
        results = as_tuple(body(*scalars))
        linalg.yield_([narrow(t.element, r) for t, r in zip(inits, results, strict=True)])
    return tuple(Tensor(r, t.type) for r, t in zip(op.results, inits, strict=True))


@kept
def _iterator(kind: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")


def as_tuple(values: object) -> tuple:
    """One value or a sequence of them as a tuple."""
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def loop_index(dim: int) -> ir.Value:
    """The index of a loop, inside the body of `generic`."""
    return linalg.index(dim)


PARALLEL_LOOP = "kernel.parallel"  # marks a loop whose steps do not depend on each other

# --- loops over tensors, for what linalg cannot say --------------------------------------------------------------------


def read(source: Tensor, indices: Sequence[ir.Value]) -> ir.Value:
    """One element as a compute scalar."""
    return widen(source.element, tensor.extract(source.value, list(indices)))


def write(target: Tensor, value: ir.Value, indices: Sequence[ir.Value]) -> Tensor:
    """`target` with one element replaced by a compute scalar."""
    return Tensor(tensor.insert(narrow(target.element, value), target.value, list(indices)), target.type)


def loops(
    extents: Sequence[int | ir.Value],
    carried: Sequence[Tensor | ir.Value],
    body: Callable[[list[ir.Value], list], Sequence],
    *,
    parallel: int = 0,
) -> list:
    """A sequential loop nest from 0 to each extent that hands tensors or scalars from step to step.

    body(indices, carried) -> the new carried values, in the same order; returns the last ones. parallel: in how many of
    the loops, from the outermost, no step reads what another has written, nor writes where another writes: threads may
    share the steps of the outermost.
    """
    if not extents:
        return list(body([], list(carried)))
    types = [c.type if isinstance(c, Tensor) else None for c in carried]
    bound = [_as_index(e) for e in extents]
    zero, one = index(0), index(1)

    def nest(depth: int, outer: list[ir.Value], values: list) -> list:
        if depth == len(bound):
            return list(body(outer, values))
        loop = scf.for_(zero, bound[depth], one, [_raw(v) for v in values])
        if depth < parallel:
            loop.attributes[PARALLEL_LOOP] = ir.UnitAttr.get()
        block = loop.regions[0].blocks[0]
        with ir.InsertionPoint(block), one_body():
            at, *inner = block.arguments
            inner = [_wrapped(v, t) for v, t in zip(inner, types, strict=True)]
            scf.yield_([_raw(v) for v in nest(depth + 1, [*outer, at], inner)])
        return [_wrapped(v, t) for v, t in zip(loop.results, types, strict=True)]

    return nest(0, [], list(carried))


def when(
    condition: ir.Value,
    like: Sequence[Tensor | ir.Value],
    then: Callable[[], Sequence],
    otherwise: Callable[[], Sequence],
) -> list:
    """scf.if on an i1; both sides give tensors or scalars of the types of `like`."""
    op = scf.if_(condition, [_raw(v).type for v in like])
    for region, branch in zip(op.regions, (then, otherwise), strict=True):
        with ir.InsertionPoint(region.blocks[0]):
            scf.yield_([_raw(v) for v in branch()])
    types = [v.type if isinstance(v, Tensor) else None for v in like]
    return [_wrapped(v, t) for v, t in zip(op.results, types, strict=True)]


def _as_index(extent: int | ir.Value) -> ir.Value:
    return index(extent) if isinstance(extent, int) else extent


def _raw(value: Tensor | ir.Value) -> ir.Value:
    return value.value if isinstance(value, Tensor) else value


def _wrapped(value: ir.Value, ty: TensorType | None) -> Tensor | ir.Value:
    return Tensor(value, ty) if isinstance(ty, TensorType) else value


# --- indices -----------------------------------------------------------------------------------------------------------


def to_index(element: ElementType, value: ir.Value) -> ir.Value:
    """An integer compute scalar as an index: sign- or zero-extended; ui64 beyond the signed range saturates."""
    if element.is_unsigned:
        wide = value if element.bits == 64 else arith.extui(ir.IntegerType.get_signless(64), value)
        if element.bits == 64:
            largest = integer_constant(wide.type, 2**63 - 1)
            wide = arith.minui(wide, largest)
        return arith.index_cast(ir.IndexType.get(), wide)
    return arith.index_cast(ir.IndexType.get(), value)


def clamp_index(value: ir.Value, low: int, high: int) -> ir.Value:
    """max(low, min(value, high)) on signed indices."""
    return arith.maxsi(index(low), arith.minsi(value, index(high)))


# --- regions -----------------------------------------------------------------------------------------------------------

# The tensors of the function being lowered, by StableHLO value: bodies may use values from around them.
_surroundings: contextvars.ContextVar[dict[ir.Value, Tensor]] = contextvars.ContextVar("surroundings")


@contextmanager
def surroundings(values: dict[ir.Value, Tensor]) -> Iterator[None]:
    """While active, bodies that use a value from around them find it in `values`."""
    token = _surroundings.set(values)
    try:
        yield
    finally:
        _surroundings.reset(token)


def apply_region(op: Op, region: int, *arguments: ir.Value, rounding: bool = True) -> tuple[ir.Value, ...]:
    """Inline the body of a region (reducer, comparator, combiner) on compute scalars.

    The body's values are 0-d tensors in StableHLO and scalars here; each op's `scalar` rule does the work. Without
    `rounding`, floats below 32 bits stay f32 from op to op, for accumulators that are rounded at the end.
    """
    block = op.block(region)
    known: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))

    def scalar_of(value: ir.Value) -> ir.Value:
        found = known.get(value)
        if found is None:
            found = known[value] = outer_scalar(value)
        return found

    for operation in block.operations:
        inner = view(operation)
        if inner.name == "stablehlo.return":
            return tuple(scalar_of(v) for v in operation.operands)
        known[operation.results[0]] = scalar_op(inner, *(scalar_of(v) for v in operation.operands), rounding=rounding)
    raise UnsupportedOp(op.name, "its region has no stablehlo.return", where=str(op.location))


def outer_scalar(value: ir.Value) -> ir.Value:
    """The compute scalar of a 0-d value from around a region."""
    return read(_surroundings.get({})[value], [])


def scalar_op(op: Op, *values: ir.Value, rounding: bool = True) -> ir.Value:
    """One elementwise op on compute scalars, rounded to what its result type can hold."""
    if isinstance(op, Constant):
        return scalar(op.type.element, op.value.reshape(-1)[0])
    if op.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.optimization_barrier"):
        return values[0]
    rule = registry.scalar.find(op.name)
    if rule is None:
        raise UnsupportedOp(op.name, "inside the body of another op only elementwise ops are", where=str(op.location))
    result = rule(op, *values)
    return rounded(op.type.element, result) if rounding else result


def elementwise(op: Op, *inputs: Tensor) -> Tensor:
    """The lowering that every op with a `scalar` rule shares: one loop nest over the result.

    A 0-d operand of an op with a ranked result (clamp, select) is read once for all elements.
    """
    rank = op.type.rank
    maps = [identity_map(rank) if t.rank == rank else dims_map(rank, ()) for t in inputs]
    return generic(inputs, [op.type], lambda *xs: scalar_op(op, *xs), maps=[*maps, identity_map(rank)])[0]


def from_index(element: ElementType, value: ir.Value) -> ir.Value:
    """An index as a compute scalar of any element type; integers wrap, floats round once."""
    if element.is_complex:
        part = from_index(element.part, value)
        return complex.create_(compute_type(element), part, scalar(element.part, 0))
    wide = ir.IntegerType.get_signless(64)
    number = arith.index_cast(wide, value)
    if element.is_float:
        return rounded(element, arith.sitofp(compute_type(element), number))
    if element.bits == 64:
        return number
    return arith.trunci(compute_type(element), number)
