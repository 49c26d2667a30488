"""Custom calls that have a meaning here: markers of shardings, and chlo ops in the guise of a call."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp

CUSTOM_CALLS: dict[str, Rule] = {}  # target name -> (op, *arrays) -> array or arrays


def identity(op: Op, *operands: np.ndarray) -> tuple[np.ndarray, ...]:
    """On one device a marker of a sharding or of a memory space changes nothing."""
    return operands


for _target in (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "MoveToDevice",
    "MoveToHost",
):
    CUSTOM_CALLS[_target] = identity


@evaluate("stablehlo.custom_call")
def evaluate_custom_call(op: Op, *operands: np.ndarray) -> tuple[np.ndarray, ...] | np.ndarray:
    """The rule of its target; `mhlo.x` is the chlo op of that name."""
    target = op.string("call_target_name")
    rule = CUSTOM_CALLS.get(target)
    if rule is None and target.startswith("mhlo."):
        rule = evaluate.find("chlo." + target.removeprefix("mhlo."))
    if rule is None:
        known = ", ".join(sorted(CUSTOM_CALLS))
        raise UnsupportedOp(op.name, f"target {target} is not known", where=str(op.location), hint=f"known are {known}")
    return rule(op, *operands)
