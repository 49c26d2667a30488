"""Registering pointwise rules: ops whose rule works on arrays of any shapes that broadcast."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.core.registry import Rule, evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.ops.evaluate.numeric import element_of, exact, narrow, wide
from stablehlo_py.records import record

POINTWISE: set[str] = set()  # a region made of these alone can be run on whole arrays at once

Function = Callable[..., np.ndarray]


def pointwise(*names: str) -> Callable[[Rule], Rule]:
    """Register an evaluate rule and say that it is pointwise."""
    POINTWISE.update(names)
    return evaluate(*names)


@record
class Row:
    """One op by the kind of its first operand; None where the specification has no such op.

    precise: computed in f64 instead of in the type where the basic operations are exact.
    """

    real: Function | None = None
    complex: Function | None = None
    integer: Function | None = None
    boolean: Function | None = None
    precise: bool = False


def rule_of(row: Row) -> Rule:
    """The evaluate rule of a table row."""
    widen = wide if row.precise else exact
    by_kind = {
        "float": row.real,
        "complex": row.complex,
        "int": row.integer,
        "uint": row.integer,
        "bool": row.boolean or row.integer,
    }

    def evaluate_row(op: Op, *arrays: np.ndarray) -> np.ndarray:
        kind = element_of(arrays[0].dtype).kind
        function = by_kind[kind]
        if function is None:
            raise UnsupportedOp(op.name, f"it has no meaning on {element_of(arrays[0].dtype)}", where=str(op.location))
        return narrow(function(*[widen(x) for x in arrays]), op.type.element.dtype)

    return evaluate_row


def register_rows(rows: dict[str, Row]) -> None:
    """Register every row of a table."""
    for name, row in rows.items():
        pointwise(name)(rule_of(row))
