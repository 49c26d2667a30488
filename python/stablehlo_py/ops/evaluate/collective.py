"""Collectives in a group of one device, where nearly all of them give back what they get."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.ops.evaluate.folding import Arrays, Run


def _refuse_groups(op: Op) -> None:
    groups = op.matrix("replica_groups", np.zeros((1, 1), np.int64))
    if groups.ndim == 2 and groups.shape[1] > 1:
        raise UnsupportedOp(op.name, f"it has groups of {groups.shape[1]} devices", where=str(op.location))


@evaluate("stablehlo.all_reduce", "stablehlo.reduce_scatter")
def evaluate_all_reduce(op: Op, *operands: np.ndarray, run: Run) -> Arrays:
    """The sum over one device is its own operand."""
    _refuse_groups(op)
    return operands


@evaluate("stablehlo.all_gather", "stablehlo.all_to_all", "stablehlo.collective_broadcast")
def evaluate_all_gather(op: Op, *operands: np.ndarray) -> Arrays:
    """What one device gathers from all is its own operand."""
    _refuse_groups(op)
    return operands


@evaluate("stablehlo.collective_permute")
def evaluate_collective_permute(op: Op, operand: np.ndarray) -> np.ndarray:
    """The operand where device 0 sends to itself; zeros where nobody sends to it."""
    pairs = op.matrix("source_target_pairs", np.zeros((0, 2), np.int64)).reshape(-1, 2)
    if np.any(pairs != 0):
        raise UnsupportedOp(op.name, "it has more than one device", where=str(op.location))
    return operand if len(pairs) else np.zeros_like(operand)


@evaluate("stablehlo.partition_id", "stablehlo.replica_id")
def evaluate_device_id(op: Op) -> np.ndarray:
    """The one device has number 0."""
    return np.zeros((), op.type.element.dtype)
