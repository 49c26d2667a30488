"""Assertions in programs: JAX's on shapes, and the comparisons of StableHLO's own tests, each as its interpreter does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from stablehlo_py.core.ulp import ulp_distance
from stablehlo_py.custom_calls.call import CustomCall
from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.records import record
from stablehlo_py.runtime.program import ArrayType

Attributes = Mapping[str, Any]  # Any: as in CustomCall
Types = tuple[ArrayType, ...]
# (actual, expected, the call's attributes) -> where they differ
Comparison = Callable[[np.ndarray, np.ndarray, Attributes], np.ndarray]

TOLERANCE = 1e-3  # absolute, of expect_almost_eq
TOLERANCE_OF_EQ = 1e-4  # of check.eq, which is exact for integers
MAX_ULP = 3  # of expect_close


@register_custom_call("shape_assertion", has_side_effect=True)
def shape_assertion(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> None:
    """Stop the program where its first input is false; the message's {0}, {1} are the other inputs."""
    holds, *values = inputs
    if not holds:
        message = str(attributes.get("error_message", "an assertion on shapes does not hold"))
        raise ValueError(message.format(*[value.item() for value in values]))


@record(frozen=False)
class Tally:
    """How many comparisons have held."""

    held: int = 0


_TALLY: ContextVar[Tally | None] = ContextVar("tally", default=None)


@contextmanager
def strictly() -> Iterator[Tally]:
    """Inside, a comparison that fails stops the program also where it has a result to say so; those that hold are counted."""
    tally = Tally()
    token = _TALLY.set(tally)
    try:
        yield tally
    finally:
        _TALLY.reset(token)


def differs(actual: np.ndarray, expected: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Other elements; NaN equals nothing, -0 equals +0."""
    return np.asarray(actual != expected)


def differs_by_more(actual: np.ndarray, expected: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Further apart than `tolerance`, or of another sign; NaN equals NaN."""
    if not _has_fractions(actual):
        return differs(actual, expected, attributes)
    if actual.dtype.kind == "c":
        parts = ((np.real(actual), np.real(expected)), (np.imag(actual), np.imag(expected)))
        return np.logical_or(*(differs_by_more(a, b, attributes) for a, b in parts))
    a, b = actual.astype(np.float64), expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        near = (np.abs(a - b) <= attributes.get("tolerance", TOLERANCE)) & (np.signbit(a) == np.signbit(b))
    return np.asarray(~(near | (a == b) | (np.isnan(a) & np.isnan(b))))


def differs_by_ulps(actual: np.ndarray, expected: np.ndarray, attributes: Attributes) -> np.ndarray:
    """Not between `min_ulp_difference` and `max_ulp_difference` apart; NaN equals NaN."""
    if not _has_fractions(actual):
        return differs(actual, expected, attributes)
    distance = ulp_distance(actual, expected)
    most, least = attributes.get("max_ulp_difference", MAX_ULP), attributes.get("min_ulp_difference", 0)
    return np.asarray((distance > most) | (distance < least))


def _differs_for_eq(actual: np.ndarray, expected: np.ndarray, attributes: Attributes) -> np.ndarray:
    return differs_by_more(actual, expected, {"tolerance": TOLERANCE_OF_EQ})


def _has_fractions(array: np.ndarray) -> bool:
    return array.dtype.kind not in "iub" and not array.dtype.name.startswith(("int", "uint"))  # int4 has kind V


COMPARISONS: dict[str, Comparison] = {
    "check.eq": _differs_for_eq,
    "check.expect_eq": differs,
    "check.expect_eq_const": differs,
    "check.expect_almost_eq": differs_by_more,
    "check.expect_almost_eq_const": differs_by_more,
    "check.expect_close": differs_by_ulps,
}


def _wrong_operands(call: CustomCall) -> str | None:
    if len(call.operands) != 2 or call.operands[0] != call.operands[1]:
        return f"it compares two tensors of one type, not {', '.join(map(str, call.operands)) or 'nothing'}"
    return None


def _register(name: str, comparison: Comparison) -> None:
    def compare(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> np.ndarray | None:
        """The verdict where the call has a result; else one that fails is an error."""
        actual, expected = inputs
        wrong = comparison(actual, expected, attributes)
        holds = not wrong.any()
        tally = _TALLY.get()
        if tally is not None and holds:
            tally.held += 1
        if not holds and (tally is not None or not results):
            raise AssertionError(_first_difference(actual, expected, wrong))
        return np.full(results[0].shape, holds, results[0].numpy) if results else None

    register_custom_call(name, compare, signature=_wrong_operands, has_side_effect=True)


def _first_difference(actual: np.ndarray, expected: np.ndarray, wrong: np.ndarray) -> str:
    """`2 of 6 elements differ, first at [0, 1]: 1.5 instead of 1.25, 2097152 ULP apart`."""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    ulps = f", {ulp_distance(actual, expected)[at]} ULP apart" if _has_fractions(actual) else ""
    count = f"{int(wrong.sum())} of {wrong.size} elements differ"
    return f"{count}, first at {list(at)}: {actual[at]!s} instead of {expected[at]!s}{ulps}"


for _name, _comparison in COMPARISONS.items():
    _register(_name, _comparison)
