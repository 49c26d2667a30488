"""Control flow, tuples, tokens and barriers. Calls and composites are the interpreter's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.folding import Arrays, Run


@evaluate("stablehlo.while")
def evaluate_while(op: Op, *operands: np.ndarray, run: Run) -> Arrays:
    """The body (region 1) as long as the condition (region 0) holds."""
    while bool(run(0, *operands)[0]):
        operands = run(1, *operands)
    return operands


@evaluate("stablehlo.if")
def evaluate_if(op: Op, pred: np.ndarray, *, run: Run) -> Arrays:
    """Region 0 if true, else region 1."""
    return run(0 if bool(pred) else 1)


@evaluate("stablehlo.case")
def evaluate_case(op: Op, index: np.ndarray, *, run: Run) -> Arrays:
    """The branch of that number; the last one for a number that is none."""
    last = len(op.operation.regions) - 1
    return run(int(index) if 0 <= int(index) <= last else last)


@evaluate("stablehlo.optimization_barrier")
def evaluate_optimization_barrier(op: Op, *operands: np.ndarray) -> Arrays:
    """The operands."""
    return operands


@evaluate("stablehlo.tuple")
def evaluate_tuple(op: Op, *operands: Any) -> tuple[Any, ...]:  # Any: tuples nest and may hold tokens
    """One value that holds all operands."""
    return (operands,)


@evaluate("stablehlo.get_tuple_element")
def evaluate_get_tuple_element(op: Op, operand: tuple[Any, ...]) -> Any:  # Any: as above
    """One of the values of a tuple."""
    return operand[op.integer("index")]


@evaluate("stablehlo.after_all", "stablehlo.create_token")
def evaluate_token(op: Op, *tokens: None) -> None:
    """A token says only that something came before."""
    return None
