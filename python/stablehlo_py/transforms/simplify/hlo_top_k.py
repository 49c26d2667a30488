"""A sort of which only the first few are read becomes a top_k of its key, and a gather of what goes along.

    s = sort(x, iota) by x > y; v = slice(s#0)[0:k]; i = slice(s#1)[0:k]    ->    v, i = top_k(x, k)

top_k has the largest first, in total order, and of equal ones the first: so a key of the other direction is negated, in
a partial order zeros become one and NaN the lowest, as sort_order has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import made_by, maker, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import element_type, tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.mlir import ir, load_chlo
from stablehlo_py.ops.sort_order import Key, keys_of

FEWEST = 4  # sorted elements for each that is read: with fewer a sort is as quick


class HloTopK(Pass):
    """Replace sorts of which only the first few elements are read."""

    name: ClassVar[str] = "hlo-top-k"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.sort",)

    def run(self, op: ir.Operation) -> None:
        import stablehlo_py.ops  # noqa: F401 - which ops are elementwise

        for sort in operations_named(op, "stablehlo.sort"):
            with sort.location:
                replace(view(sort))


def replace(op: Op) -> None:
    """Replace a sort and the slices that read it; leave both where something else reads it too."""
    dimension, ty = op.integer("dimension", -1) % max(1, op.type.rank), op.type
    if ty.rank == 0 or dimension != ty.rank - 1 or ty.size == 0:
        return
    slices = [use.owner.operation for result in op.operation.results for use in result.uses]
    if not slices or not all(_is_first_few(view(s), dimension) for s in slices):
        return
    k = max(tensor_type(s.results[0].type).shape[dimension] for s in slices)
    if k == 0 or FEWEST * k > ty.shape[dimension]:
        return
    keys = keys_of(op)
    if keys is None or len(keys) != 1 or keys[0].element.is_bool or keys[0].element.bits < 8:
        return
    with ir.InsertionPoint(op.operation):
        firsts = _first_few(op, keys[0], k)
        for s in slices:
            number = list(op.operation.results).index(s.operands[0])
            shape = tensor_type(s.results[0].type).shape
            found = make.slice_(firsts[number], [0] * ty.rank, shape, [1] * ty.rank)
            s.results[0].replace_all_uses_with(found)
    for s in slices:
        s.erase()
    op.operation.erase()


def _is_first_few(op: Op, dimension: int) -> bool:
    """Whether an op is a slice from 0 that cuts nothing but the last dimension."""
    if op.name != "stablehlo.slice" or any(op.ints("start_indices")) or set(op.ints("strides")) - {1}:
        return False
    return op.type.shape[:dimension] == op.operand_types[0].shape[:dimension]


def _first_few(op: Op, key: Key, k: int) -> list[ir.Value]:
    """The first k of each operand in the order of the key."""
    compared = _compared(op, key)
    ty = tensor_type(compared.type)
    keyed = _descending(compared, key)
    few = ty.with_shape((*ty.shape[:-1], k))
    places = few.with_element(element_type("i32"))
    load_chlo(op.operation.context)
    best = ir.Operation.create(
        "chlo.top_k", results=[few.mlir, places.mlir], operands=[keyed], attributes={"k": make.integer(k)}
    )
    results = []
    for number, operand in enumerate(op.operation.operands):
        if number == key.operand and key.is_invertible:
            results.append(best.results[0] if key.descending else _opposite(best.results[0]))
        elif _is_iota(operand, ty.rank - 1):
            results.append(make.convert(best.results[1], tensor_type(operand.type).element))
        else:
            results.append(_taken(operand, best.results[1]))
    return results


def _compared(op: Op, key: Key) -> ir.Value:
    """What the comparator compares, of all elements at once."""
    block, shape = op.block(), op.type.shape
    arguments = list(block.arguments)
    known: dict[ir.Value, ir.Value] = {}

    def whole(value: ir.Value) -> ir.Value:
        if value not in known:
            known[value] = made(value)
        return known[value]

    def made(value: ir.Value) -> ir.Value:
        if value in arguments:
            return op.operation.operands[arguments.index(value) // 2]
        op_inside = maker(value)
        if op_inside is None or op_inside.block != block:
            return make.broadcast(value, shape, [])
        inner = view(op_inside)
        result = inner.type.with_shape(shape)
        if isinstance(inner, Constant):
            return make.constant(inner.value, result)
        operands = [whole(v) for v in inner.operation.operands]
        if inner.name in ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.optimization_barrier"):
            return operands[0]
        attributes = {name: inner.operation.attributes[name] for name in inner.operation.attributes}
        return ir.Operation.create(inner.name, results=[result.mlir], operands=operands, attributes=attributes).results[
            0
        ]

    return whole(key.value)


def _descending(x: ir.Value, key: Key) -> ir.Value:
    """x so that its largest in total order is the first of the key's order."""
    if not key.element.is_float:
        return x if key.descending else _opposite(x)
    if key.total:
        return x if key.descending else _opposite(x)
    ty = tensor_type(x.type)
    zero = make.constant(np.zeros((), ty.element.dtype), ty)
    lowest = make.constant(np.array(-np.nan, np.float64).astype(ty.element.dtype), ty)
    is_zero, is_nan = _compare("EQ", x, zero), _compare("NE", x, x)
    one_zero = make.select(is_zero, zero, x)
    return make.select(is_nan, lowest, one_zero if key.descending else _opposite(one_zero))


def _opposite(x: ir.Value) -> ir.Value:
    """The opposite order: floats negated, which turns the total order around, integers with all bits flipped."""
    return make.elementwise("negate" if tensor_type(x.type).element.is_float else "not", x)


def _compare(direction: str, x: ir.Value, y: ir.Value) -> ir.Value:
    result = tensor_type(x.type).with_element(element_type("i1"))
    return make.op(
        "compare",
        [x, y],
        result,
        comparison_direction=ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>"),
    ).results[0]


def _is_iota(value: ir.Value, dimension: int) -> bool:
    iota = made_by(value, "stablehlo.iota")
    return iota is not None and ir.IntegerAttr(iota.attributes["iota_dimension"]).value == dimension


def _taken(x: ir.Value, places: ir.Value) -> ir.Value:
    """x at places along its last dimension, row by row."""
    ty, shape = tensor_type(x.type), tensor_type(places.type).shape
    last = ty.rank - 1
    rows = _list(range(last))
    numbers = (
        f"#stablehlo.gather<collapsed_slice_dims = [{last}], operand_batching_dims = {rows}, "
        f"start_indices_batching_dims = {rows}, start_index_map = [{last}], index_vector_dim = {ty.rank}>"
    )
    return make.op(
        "gather",
        [x, make.reshape(places, (*shape, 1))],
        ty.with_shape(shape),
        dimension_numbers=ir.Attribute.parse(numbers),
        slice_sizes=make.integers([1] * ty.rank),
        indices_are_sorted=ir.BoolAttr.get(False),
    ).results[0]


def _list(numbers: Sequence[int]) -> str:
    return f"[{', '.join(map(str, numbers))}]"
