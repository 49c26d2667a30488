"""Collectives in a program for one device: each group is that device alone."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor

_HINT = "compile it for one replica and one partition"


@lower("stablehlo.replica_id", "stablehlo.partition_id")
def lower_id(op: Op) -> Tensor:
    return build.constant(op.type, np.asarray(0, op.type.element.dtype))


@lower("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.reduce_scatter")
def lower_over_groups(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    """Over a group of one device, each of these gives its operand."""
    groups = op.matrix("replica_groups", np.zeros((0, 0), np.int64))
    if groups.size > 1 or tuple(t.type for t in operands) != op.types:
        raise UnsupportedOp(op.name, "its groups have more than one device", where=str(op.location), hint=_HINT)
    return operands


@lower("stablehlo.collective_permute")
def lower_collective_permute(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    """The operand, if the device sends to itself; zeros, if no one sends to it."""
    pairs = op.matrix("source_target_pairs", np.zeros((0, 2), np.int64)).reshape(-1, 2)
    if pairs.any():
        raise UnsupportedOp(op.name, "it sends to another device", where=str(op.location), hint=_HINT)
    return operands if len(pairs) else _zeros(op)


@lower("stablehlo.collective_broadcast")
def lower_collective_broadcast(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    """The operand, if the device is in a group; zeros, if it is in none."""
    groups = op.matrix("replica_groups", np.zeros((0, 0), np.int64))
    if groups.size > 1:
        raise UnsupportedOp(op.name, "its groups have more than one device", where=str(op.location), hint=_HINT)
    return operands if groups.size else _zeros(op)


def _zeros(op: Op) -> tuple[Tensor, ...]:
    return tuple(build.splat(ty, 0) for ty in op.types)
