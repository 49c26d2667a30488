"""Custom calls: the registered functions, markers that mean nothing on one device, chlo ops in the guise of a call."""

from __future__ import annotations

import numpy as np

from stablehlo_py import custom_calls
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.registry import evaluate
from stablehlo_py.custom_calls.host import run_on_arrays
from stablehlo_py.dialects.custom_call import call_of
from stablehlo_py.dialects.stablehlo import Op

MARKERS = frozenset(
    {
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "annotate_device_placement",
        "MoveToDevice",
        "MoveToHost",
    }
)


@evaluate("stablehlo.custom_call")
def evaluate_custom_call(op: Op, *operands: np.ndarray) -> tuple[np.ndarray, ...] | np.ndarray:
    """A registered function's results; `mhlo.x` is the chlo op of that name."""
    target = op.string("call_target_name")
    if target in custom_calls.registered_names():
        return run_on_arrays(call_of(op.operation), operands)
    if target in MARKERS:
        return operands
    name = "chlo." + target.removeprefix("mhlo.").replace("topk", "top_k")
    rule = evaluate.find(name) if target.startswith("mhlo.") else None
    if rule is None:
        custom_calls.find(target, describe_location(op.location))  # raises and says why
    assert rule is not None
    return rule(op, *operands)
