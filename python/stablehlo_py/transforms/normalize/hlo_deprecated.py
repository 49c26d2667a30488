"""Deprecated StableHLO ops as the modern ones that replaced them.

dot(x, y)                    ->  dot_general(x, y), x's last dimension against y's first
broadcast(x), sizes [b]      ->  broadcast_in_dim(x), dims behind b
einsum "bij,bjk->bik"        ->  dot_general and a transpose
torch_index_select(x, i)     ->  gather
map(x) { f }                 ->  f on whole tensors
cross-replica-sum(x)         ->  x, on one device
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.reading.constants import elements
from stablehlo_py.reading.places import place


class HloDeprecated(Pass):
    """Replace deprecated ops by the modern ones; what has no modern form stays."""

    name: ClassVar[str] = "hlo-deprecated"

    def run(self, op: ir.Operation) -> None:
        for inner in operations_named(op, *REPLACEMENTS):
            with inner.location, ir.InsertionPoint(inner):
                values = REPLACEMENTS[inner.name](inner)
            if values is None:
                continue
            for result, value in zip(list(inner.results), values, strict=True):
                result.replace_all_uses_with(value)
            inner.erase()


Replacement = Callable[[ir.Operation], Sequence[ir.Value] | None]


def _shape(value: ir.Value) -> list[int]:
    return list(ir.RankedTensorType(value.type).shape)


def _tensor(shape: Sequence[int], like: ir.Value) -> ir.Type:
    return ir.RankedTensorType.get(shape, ir.RankedTensorType(like.type).element_type)


def _op(
    name: str, types: Sequence[ir.Type], operands: Sequence[ir.Value], **attributes: ir.Attribute
) -> list[ir.Value]:
    return list(ir.Operation.create(name, results=types, operands=operands, attributes=attributes).results)


def _ints(values: Sequence[int]) -> ir.Attribute:
    return ir.DenseI64ArrayAttr.get(list(values))


def _dot_general(
    op: ir.Operation, lhs: ir.Value, rhs: ir.Value, batch: tuple, contract: tuple, ty: ir.Type
) -> ir.Value:
    dims = stablehlo.DotDimensionNumbers.get(list(batch[0]), list(batch[1]), list(contract[0]), list(contract[1]))
    attributes: dict[str, ir.Attribute] = {"dot_dimension_numbers": dims}
    if "precision_config" in op.attributes:
        attributes["precision_config"] = op.attributes["precision_config"]
    return _op("stablehlo.dot_general", [ty], [lhs, rhs], **attributes)[0]


def _dot(op: ir.Operation) -> Sequence[ir.Value]:
    lhs, rhs = op.operands
    return [_dot_general(op, lhs, rhs, ([], []), ([len(_shape(lhs)) - 1], [0]), op.results[0].type)]


def _broadcast(op: ir.Operation) -> Sequence[ir.Value]:
    (operand,) = op.operands
    ahead = len(_shape(op.results[0])) - len(_shape(operand))
    dims = range(ahead, ahead + len(_shape(operand)))
    return _op("stablehlo.broadcast_in_dim", [op.results[0].type], [operand], broadcast_dimensions=_ints(dims))


def _create_token(op: ir.Operation) -> Sequence[ir.Value]:
    return _op("stablehlo.after_all", [op.results[0].type], [])


def _cross_replica_sum(op: ir.Operation) -> Sequence[ir.Value]:
    return list(op.operands)


def _config(op: ir.Operation) -> tuple[list[str], str]:
    """The labels of each operand and of the result; each may stand once in an operand."""
    left, arrow, result = ir.StringAttr(op.attributes["einsum_config"]).value.replace(" ", "").partition("->")
    operands = left.split(",")
    labels = [*operands, result]
    if not arrow or "." in left or any(len(set(part)) != len(part) for part in labels) or not set(result) <= set(left):
        raise UnsupportedOp(
            op.name, f"einsum_config {left}->{result} repeats or lacks labels", where=place(op), hint="use dot_general"
        )
    return operands, result


def _sum_out(value: ir.Value, labels: str, keep: set[str]) -> tuple[ir.Value, str]:
    """Sum over the dimensions whose labels are not kept."""
    gone = [index for index, label in enumerate(labels) if label not in keep]
    if not gone:
        return value, labels
    scalar = _tensor([], value)
    zero = elements(np.zeros(tensor_type(scalar).bytes, np.uint8), scalar)
    (init,) = _op("stablehlo.constant", [scalar], [], value=zero)
    kept_shape = [size for index, size in enumerate(_shape(value)) if index not in gone]
    reduce = ir.Operation.create(
        "stablehlo.reduce",
        results=[_tensor(kept_shape, value)],
        operands=[value, init],
        attributes={"dimensions": _ints(gone)},
        regions=1,
    )
    block = ir.Block.create_at_start(reduce.regions[0], [scalar, scalar])
    with ir.InsertionPoint(block):
        total = _op("stablehlo.add", [scalar], list(block.arguments))
        ir.Operation.create("stablehlo.return", operands=total)
    return reduce.results[0], "".join(label for label in labels if label in keep)


def _transpose(value: ir.Value, labels: str, result: str) -> ir.Value:
    if labels == result:
        return value
    order = [labels.index(label) for label in result]
    ty = _tensor([_shape(value)[index] for index in order], value)
    return _op("stablehlo.transpose", [ty], [value], permutation=_ints(order))[0]


def _einsum(op: ir.Operation) -> Sequence[ir.Value]:
    (left, right), result = _config(op)
    lhs, left = _sum_out(op.operands[0], left, set(right) | set(result))
    rhs, right = _sum_out(op.operands[1], right, set(left) | set(result))
    shared = [label for label in left if label in right]
    batch = [label for label in shared if label in result]
    summed = [label for label in shared if label not in result]
    sizes = dict(zip(left + right, _shape(lhs) + _shape(rhs), strict=True))
    labels = "".join(batch) + "".join(label for label in left + right if label not in shared)
    ty = _tensor([sizes[label] for label in labels], op.results[0])
    batching, contracting = (
        ([left.index(label) for label in part], [right.index(label) for label in part]) for part in (batch, summed)
    )
    return [_transpose(_dot_general(op, lhs, rhs, batching, contracting, ty), labels, result)]


def _unary_einsum(op: ir.Operation) -> Sequence[ir.Value]:
    (labels,), result = _config(op)
    value, labels = _sum_out(op.operands[0], labels, set(result))
    return [_transpose(value, labels, result)]


def _torch_index_select(op: ir.Operation) -> Sequence[ir.Value]:
    """result[b.., before.., i.., after..] = operand[b.., before.., index[b.., i..], after..]"""
    operand, index = op.operands
    dim = ir.IntegerAttr(op.attributes["dim"]).value
    batch = ir.IntegerAttr(op.attributes["batch_dims"]).value
    rank, index_rank = len(_shape(operand)), len(_shape(index))
    index_dims = index_rank - batch
    offset = list(range(batch, dim)) + [d + index_dims for d in range(dim, rank - 1)]
    batching = list(range(batch))
    dims = stablehlo.GatherDimensionNumbers.get(
        offset_dims=offset,
        collapsed_slice_dims=[dim],
        operand_batching_dims=batching,
        start_indices_batching_dims=batching,
        start_index_map=[dim],
        index_vector_dim=index_rank,
    )
    sizes = [1 if d == dim or d < batch else size for d, size in enumerate(_shape(operand))]
    return _op(
        "stablehlo.gather",
        [op.results[0].type],
        [operand, index],
        dimension_numbers=dims,
        slice_sizes=_ints(sizes),
        indices_are_sorted=ir.BoolAttr.get(False),
    )


def _map(op: ir.Operation) -> Sequence[ir.Value] | None:
    """The body's ops on whole tensors: each is elementwise on scalars."""
    shape = _shape(op.results[0])
    block = op.regions[0].blocks[0]
    *body, last = [child.operation for child in block.operations]
    if any(len(inner.regions) > 0 or inner.name not in ELEMENTWISE for inner in body):
        return None
    wide = dict(zip(block.arguments, op.operands, strict=True))

    def widened(value: ir.Value) -> ir.Value:
        if value not in wide:  # computed outside of the body
            types = [_tensor(shape, value)]
            wide[value] = _op("stablehlo.broadcast_in_dim", types, [value], broadcast_dimensions=_ints([]))[0]
        return wide[value]

    for inner in body:
        if inner.name == "stablehlo.constant":
            wide[inner.results[0]] = widened(inner.clone().results[0])
            continue
        types = [_tensor(shape, result) for result in inner.results]
        attributes = {name: inner.attributes[name] for name in inner.attributes}
        values = _op(inner.name, types, [widened(value) for value in inner.operands], **attributes)
        wide.update(zip(inner.results, values, strict=True))
    return [widened(value) for value in last.operands]


_ELEMENTWISE = (
    "abs add and atan2 bitcast_convert cbrt ceil clamp compare complex constant convert cosine count_leading_zeros "
    "divide exponential exponential_minus_one floor imag is_finite log log_plus_one logistic maximum minimum "
    "multiply negate not or popcnt power real reduce_precision remainder round_nearest_afz round_nearest_even "
    "rsqrt select shift_left shift_right_arithmetic shift_right_logical sign sine sqrt subtract tan tanh xor"
)
ELEMENTWISE = {f"stablehlo.{name}" for name in _ELEMENTWISE.split()}

REPLACEMENTS: dict[str, Replacement] = {
    "stablehlo.broadcast": _broadcast,
    "stablehlo.create_token": _create_token,
    "stablehlo.cross-replica-sum": _cross_replica_sum,
    "stablehlo.dot": _dot,
    "stablehlo.einsum": _einsum,
    "stablehlo.map": _map,
    "stablehlo.torch_index_select": _torch_index_select,
    "stablehlo.unary_einsum": _unary_einsum,
}
