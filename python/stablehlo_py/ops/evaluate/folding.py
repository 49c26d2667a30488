"""Folding with a region: which bodies are known operations, and how sums of rounded numbers are kept exact enough.

A body that is one add, multiply, minimum ... of its two arguments is folded by NumPy: floats in f64 with one rounding
at the end, which the free order of a reduction allows. Every other body is run step by step, in order, in its own type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stablehlo_py.core.quantization import quantization_of
from stablehlo_py.mlir import ir
from stablehlo_py.ops.evaluate.elementwise import maximum, minimum
from stablehlo_py.ops.evaluate.numeric import element_of, narrow, wide
from stablehlo_py.records import record

Run = Callable[..., tuple[np.ndarray, ...]]
Arrays = tuple[np.ndarray, ...]


@record
class Known:
    """A body that is one associative operation: on arrays, and as the ufunc whose reduce folds it."""

    name: str
    apply: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ufunc: np.ufunc


_KNOWN = {
    "stablehlo.add": Known("add", np.add, np.add),
    "stablehlo.multiply": Known("multiply", np.multiply, np.multiply),
    "stablehlo.maximum": Known("maximum", maximum, np.maximum),
    "stablehlo.minimum": Known("minimum", minimum, np.minimum),
}
_KNOWN_ON_INTEGERS = {
    "stablehlo.and": Known("and", np.bitwise_and, np.bitwise_and),
    "stablehlo.or": Known("or", np.bitwise_or, np.bitwise_or),
    "stablehlo.xor": Known("xor", np.bitwise_xor, np.bitwise_xor),
}
_ON_BOOLEANS = {
    "add": Known("add", np.logical_or, np.logical_or),
    "multiply": Known("multiply", np.logical_and, np.logical_and),
}


def known_body(block: ir.Block, dtype: np.dtype) -> Known | None:
    """The operation that a body of two scalar arguments is, if it is just that."""
    operations = list(block.operations)
    if len(operations) != 2 or len(block.arguments) != 2 or quantization_of(block.arguments[0].type):
        return None
    body, end = operations
    first, second = block.arguments
    if len(body.operands) != 2 or (body.operands[0], body.operands[1]) not in ((first, second), (second, first)):
        return None
    if len(end.operands) != 1 or end.operands[0] != body.results[0]:
        return None
    kind = element_of(dtype).kind
    known = _KNOWN.get(body.operation.name) or (
        _KNOWN_ON_INTEGERS.get(body.operation.name) if kind in ("int", "uint", "bool") else None
    )
    if known is None:
        return None
    if kind == "bool":
        return _ON_BOOLEANS.get(known.name, known)
    if known.name in ("maximum", "minimum") and kind != "float":
        return Known(known.name, known.ufunc, known.ufunc)
    return known


class Fold:
    """Accumulators of a fold: start with the initial values, take one slice of every operand after another."""

    def __init__(self, block: ir.Block, run: Run, dtypes: tuple[np.dtype, ...]) -> None:
        self._run, self._dtypes = run, dtypes
        self._known = known_body(block, dtypes[0]) if len(dtypes) == 1 else None

    def start(self, values: Arrays, shape: tuple[int, ...]) -> Arrays:
        widen = wide if self._known else np.asarray
        return tuple(np.broadcast_to(widen(v), shape) for v in values)

    def step(self, accumulators: Arrays, elements: Arrays) -> Arrays:
        if self._known:
            return (self._known.apply(accumulators[0], wide(elements[0])),)
        return self._run(0, *accumulators, *elements)

    def finish(self, accumulators: Arrays) -> Arrays:
        return tuple(np.array(narrow(a, dtype)) for a, dtype in zip(accumulators, self._dtypes, strict=True))
