"""The seam's own builders of the ops that kernels are made of, with the names and operands that the bindings give them.

The first builder of a dialect that is taken from the bindings imports those of all its ops, 2 to 25 ms; and one of theirs
takes 7 to 12 us, since it looks up context, location and result types in Python, several times over. These need no
import and a third of the time. Those of ops that have regions or any number of results give the op, others its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from torch_mlir import ir

Builder = Callable[..., Any]  # Any: as the bindings have it

BUILDERS: dict[str, Builder] = {}  # by dialect and name, such as "arith.addf"

_FLOAT_PREDICATES = "AlwaysFalse OEQ OGT OGE OLT OLE ONE ORD UEQ UGT UGE ULT ULE UNE UNO AlwaysTrue"
_INTEGER_PREDICATES = "eq ne slt sle sgt sge ult ule ugt uge"

# Enumerations of the bindings, as numbers.
ENUMERATIONS = {
    f"arith.{name}": SimpleNamespace(**{member: number for number, member in enumerate(members.split())})
    for name, members in {"CmpFPredicate": _FLOAT_PREDICATES, "CmpIPredicate": _INTEGER_PREDICATES}.items()
}


def _builds(dialect: str, names: str) -> Callable[[Builder], Builder]:
    """The function, which is given the op's name first, builds these ops of a dialect."""

    def register(function: Builder) -> Builder:
        for name in names.split():
            # ops whose names Python or the bindings need otherwise end in an underscore there
            BUILDERS[f"{dialect}.{name}"] = functools.partial(function, f"{dialect}.{name.rstrip('_')}")
        return function

    return register


def _make(
    op: str,
    results: Sequence[ir.Type],
    operands: Sequence[ir.Value],
    regions: int = 0,
    **attributes: ir.Attribute,
) -> ir.Operation:
    return ir.Operation.create(op, results=results, operands=operands, attributes=attributes, regions=regions)


def _i64(value: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _flags(**given: bool) -> dict[str, ir.Attribute]:
    """Unit attributes of those that are true."""
    return {name: ir.UnitAttr.get() for name, value in given.items() if value}


def _groups(*sizes: int) -> ir.Attribute:
    """How many operands each group of them has."""
    return ir.DenseI32ArrayAttr.get(sizes)


# --- arith, math, complex ----------------------------------------------------------------------------------------------


@_builds(
    "arith", "addf subf mulf divf remf maximumf minimumf negf addi subi muli andi ori xori shli shrsi shrui select"
)
@_builds("arith", "divsi divui remsi remui ceildivsi ceildivui floordivsi maxsi maxui minsi minui")
@_builds(
    "math", "absf acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh ctlz ctpop erf erfc exp exp2 expm1"
)
@_builds("math", "floor fma log log1p log2 powf round roundeven rsqrt sin sinh sqrt tan tanh")
@_builds("vector", "fma")
@_builds("complex", "add mul")
def _of_operands(op: str, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """An op whose result has the type of its last operand, which C++ finds sooner than Python."""
    return ir.Operation.create(op, operands=operands, attributes=attributes or None, infer_type=True).result


@_builds("arith", "bitcast index_cast index_castui sitofp uitofp fptosi fptoui extf truncf extsi extui trunci")
@_builds("vector", "broadcast bitcast")
@_builds("complex", "create_")
def _to_type(op: str, result: ir.Type, *operands: ir.Value) -> ir.Value:
    return ir.Operation.create(op, results=(result,), operands=operands).result


@_builds("arith", "cmpi cmpf")
def _comparison(op: str, predicate: int, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    attributes = {"predicate": _i64(predicate)}
    return ir.Operation.create(op, operands=(lhs, rhs), attributes=attributes, infer_type=True).result


@_builds("arith", "constant")
def _constant(op: str, ty: ir.Type, value: float | ir.Attribute) -> ir.Value:
    if isinstance(value, int):
        value = ir.IntegerAttr.get(ty, value)
    elif isinstance(value, float):
        value = ir.FloatAttr.get(ty, value)
    return ir.Operation.create(op, results=(ty,), attributes={"value": value}).result


@_builds("complex", "re im")
def _part(op: str, number: ir.Value) -> ir.Value:
    return _make(op, [number.type.element_type], [number]).results[0]


# --- tensor, memref, vector --------------------------------------------------------------------------------------------


@_builds("tensor", "empty")
def _empty(op: str, shape: Sequence[int], element: ir.Type) -> ir.Value:
    return _make(op, [ir.RankedTensorType.get(shape, element)], []).results[0]


@_builds("tensor", "extract")
@_builds("memref", "load")
def _element(op: str, source: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    return _make(op, [source.type.element_type], [source, *indices]).results[0]


@_builds("tensor", "insert")
def _with_element(op: str, value: ir.Value, target: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    return _make(op, [target.type], [value, target, *indices]).results[0]


@_builds("tensor", "insert_slice")
def _with_slice(op: str, piece: ir.Value, target: ir.Value, *places: Sequence[Any]) -> ir.Value:  # Any: see `_slice`
    return _slice(op, target.type, [piece, target], *places)


@_builds("tensor", "extract_slice")
def _part_of(op: str, result: ir.Type, source: ir.Value, *places: Sequence[Any]) -> ir.Value:  # Any: see `_slice`
    return _slice(op, result, [source], *places)


def _slice(
    op: str,
    result: ir.Type,
    tensors: Sequence[ir.Value],
    offsets: Sequence[ir.Value],
    sizes: Sequence[ir.Value],
    strides: Sequence[ir.Value],
    static_offsets: Sequence[int],
    static_sizes: Sequence[int],
    static_strides: Sequence[int],
) -> ir.Value:
    """Static numbers with a mark where a value stands, and the values."""
    places = zip(
        ("static_offsets", "static_sizes", "static_strides"),
        (static_offsets, static_sizes, static_strides),
        strict=True,
    )
    return _make(
        op,
        [result],
        [*tensors, *offsets, *sizes, *strides],
        operandSegmentSizes=_groups(*[1] * len(tensors), len(offsets), len(sizes), len(strides)),
        **{name: ir.DenseI64ArrayAttr.get(numbers) for name, numbers in places},
    ).results[0]


@_builds("tensor", "collapse_shape")
@_builds("memref", "collapse_shape")
def _collapsed(op: str, result: ir.Type, source: ir.Value, groups: Sequence[Sequence[int]]) -> ir.Value:
    return _make(op, [result], [source], reassociation=_dimensions(groups)).results[0]


@_builds("tensor", "expand_shape")
def _expanded(
    op: str,
    result: ir.Type,
    source: ir.Value,
    groups: Sequence[Sequence[int]],
    shape: Sequence[ir.Value],
    static_shape: Sequence[int],
) -> ir.Value:
    static = ir.DenseI64ArrayAttr.get(static_shape)
    reassociation = _dimensions(groups)
    return _make(op, [result], [source, *shape], reassociation=reassociation, static_output_shape=static).results[0]


def _dimensions(groups: Sequence[Sequence[int]]) -> ir.Attribute:
    return ir.ArrayAttr.get([ir.ArrayAttr.get([_i64(d) for d in dims]) for dims in groups])


@_builds("memref", "alloc alloca")
def _allocated(
    op: str, ty: ir.Type, dynamic_sizes: Sequence[ir.Value], symbols: Sequence[ir.Value], *, alignment: int
) -> ir.Value:
    groups = _groups(len(dynamic_sizes), len(symbols))
    operands = [*dynamic_sizes, *symbols]
    return _make(op, [ty], operands, alignment=_i64(alignment), operandSegmentSizes=groups).results[0]


@_builds("memref", "store")
@_builds("vector", "store")
def _store(op: str, value: ir.Value, target: ir.Value, indices: Sequence[ir.Value]) -> None:
    _make(op, [], [value, target, *indices])


@_builds("memref", "prefetch")
def _prefetch(
    op: str,
    source: ir.Value,
    indices: Sequence[ir.Value],
    *,
    is_write: bool,
    locality_hint: int,
    is_data_cache: bool,
) -> None:
    _make(
        op,
        [],
        [source, *indices],
        isWrite=ir.BoolAttr.get(is_write),
        localityHint=ir.IntegerAttr.get(ir.IntegerType.get_signless(32), locality_hint),
        isDataCache=ir.BoolAttr.get(is_data_cache),
    )


@_builds("vector", "load maskedload")
def _load(op: str, result: ir.Type, source: ir.Value, indices: Sequence[ir.Value], *masking: ir.Value) -> ir.Value:
    """masking: the mask, and what stands in the lanes that it has not."""
    return _make(op, [result], [source, *indices, *masking]).results[0]


@_builds("vector", "maskedstore")
def _masked_store(op: str, target: ir.Value, indices: Sequence[ir.Value], mask: ir.Value, value: ir.Value) -> None:
    _make(op, [], [target, *indices, mask, value])


@_builds("vector", "extract")
def _lane(op: str, source: ir.Value, dynamic: Sequence[ir.Value], static: Sequence[int]) -> ir.Value:
    """A part at the first positions: an element where all are given."""
    ty = ir.VectorType(source.type)
    rest = ty.shape[len(static) :]
    result = ir.VectorType.get(rest, ty.element_type) if rest else ty.element_type
    position = ir.DenseI64ArrayAttr.get(static)
    return _make(op, [result], [source, *dynamic], static_position=position).results[0]


@_builds("vector", "shuffle")
def _shuffled(op: str, first: ir.Value, second: ir.Value, mask: Sequence[int]) -> ir.Value:
    """Vectors of one dimension."""
    result = ir.VectorType.get([len(mask)], first.type.element_type)
    return _make(op, [result], [first, second], mask=ir.DenseI64ArrayAttr.get(mask)).results[0]


@_builds("vector", "reduction")
def _reduced(op: str, result: ir.Type, kind: str, source: ir.Value) -> ir.Value:
    """kind: as the dialect writes it, such as "add"."""
    return _make(op, [result], [source], kind=ir.Attribute.parse(f"#vector.kind<{kind}>")).results[0]


# --- bufferization -----------------------------------------------------------------------------------------------------


@_builds("bufferization", "alloc_tensor")
def _alloc_tensor(op: str, result: ir.Type, dynamic_sizes: Sequence[ir.Value]) -> ir.Value:
    return _make(op, [result], dynamic_sizes, operandSegmentSizes=_groups(len(dynamic_sizes), 0, 0)).results[0]


@_builds("bufferization", "to_tensor")
def _to_tensor(op: str, result: ir.Type, buffer: ir.Value, *, restrict: bool, writable: bool) -> ir.Value:
    return _make(op, [result], [buffer], **_flags(restrict=restrict, writable=writable)).results[0]


@_builds("bufferization", "to_buffer")
def _to_buffer(op: str, result: ir.Type, tensor: ir.Value, *, read_only: bool) -> ir.Value:
    return _make(op, [result], [tensor], **_flags(read_only=read_only)).results[0]


@_builds("bufferization", "materialize_in_destination")
def _materialize(op: str, _: None, source: ir.Value, target: ir.Value, *, restrict: bool, writable: bool) -> None:
    """A tensor's elements in a buffer, which is no result."""
    _make(op, [], [source, target], **_flags(restrict=restrict, writable=writable))


# --- linalg ------------------------------------------------------------------------------------------------------------


@_builds("linalg", "generic")
def _generic(
    op: str,
    results: Sequence[ir.Type],
    inputs: Sequence[ir.Value],
    outputs: Sequence[ir.Value],
    indexing_maps: ir.Attribute,
    iterator_types: ir.Attribute,
) -> ir.Operation:
    """Its region has no block yet."""
    groups = _groups(len(inputs), len(outputs))
    operands = [*inputs, *outputs]
    return _make(
        op, results, operands, 1, indexing_maps=indexing_maps, iterator_types=iterator_types, operandSegmentSizes=groups
    )


@_builds("linalg", "fill copy")
def _filled(
    op: str, results: Sequence[ir.Type], inputs: Sequence[ir.Value], outputs: Sequence[ir.Value]
) -> ir.Operation:
    """With the region that the op always has, which passes an element of the input on."""
    made = _make(op, results, [*inputs, *outputs], 1, operandSegmentSizes=_groups(len(inputs), len(outputs)))
    element = outputs[0].type.element_type
    block = made.regions[0].blocks.append(element, element)
    with ir.InsertionPoint(block):
        _make("linalg.yield", [], [block.arguments[0]])
    return made


@_builds("linalg", "index")
def _index(op: str, dimension: int) -> ir.Value:
    return _make(op, [ir.IndexType.get()], [], dim=_i64(dimension)).results[0]


# --- functions and control flow ----------------------------------------------------------------------------------------


@_builds("func", "func")
def _function(op: str, name: str, ty: ir.Type, *, private: bool = False) -> ir.Operation:
    """Its region has no block yet: a declaration."""
    visibility = {"sym_visibility": ir.StringAttr.get("private")} if private else {}
    return _make(op, [], [], 1, sym_name=ir.StringAttr.get(name), function_type=ir.TypeAttr.get(ty), **visibility)


@_builds("func", "call")
def _call(op: str, results: Sequence[ir.Type], callee: str, operands: Sequence[ir.Value]) -> ir.Operation:
    return _make(op, results, operands, callee=ir.FlatSymbolRefAttr.get(callee))


@_builds("func", "return_")
@_builds("linalg", "yield_")
@_builds("scf", "yield_")
def _end(op: str, operands: Sequence[ir.Value]) -> None:
    _make(op, [], operands)


@_builds("scf", "condition")
def _go_on(op: str, condition: ir.Value, operands: Sequence[ir.Value]) -> None:
    _make(op, [], [condition, *operands])


@_builds("scf", "for_")
def _for(op: str, start: ir.Value, stop: ir.Value, step: ir.Value, carried: Sequence[ir.Value]) -> ir.Operation:
    """Its block, whose arguments are the index and what is carried, is there and empty."""
    types = [value.type for value in carried]
    made = _make(op, types, [start, stop, step, *carried], 1)
    made.regions[0].blocks.append(start.type, *types)
    return made


@_builds("scf", "if_")
def _if(op: str, condition: ir.Value, results: Sequence[ir.Type]) -> ir.Operation:
    """Its two blocks are there and empty."""
    made = _make(op, results, [condition], 2)
    for region in made.regions:
        region.blocks.append()
    return made


@_builds("scf", "while_")
def _while(op: str, results: Sequence[ir.Type], operands: Sequence[ir.Value]) -> ir.Operation:
    """Its blocks, one that decides and one that follows, are there and empty; both have arguments like the results."""
    made = _make(op, results, operands, 2)
    for region in made.regions:
        region.blocks.append(*results)
    return made


@_builds("scf", "index_switch")
def _index_switch(op: str, results: Sequence[ir.Type], index: ir.Value, cases: Sequence[int]) -> ir.Operation:
    """Its blocks, the default one before those of the cases, are there and empty."""
    made = _make(op, results, [index], 1 + len(cases), cases=ir.DenseI64ArrayAttr.get(cases))
    for region in made.regions:
        region.blocks.append()
    return made
