"""Assertions in programs: JAX's on shapes, and the comparisons of StableHLO's own tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType

Attributes = Mapping[str, Any]  # Any: as in CustomCall
Types = tuple[ArrayType, ...]


@register_custom_call("shape_assertion", has_side_effect=True)
def shape_assertion(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> None:
    """Stop the program where its first input is false; the message's {0}, {1} are the other inputs."""
    holds, *values = inputs
    if not holds:
        message = str(attributes.get("error_message", "an assertion on shapes does not hold"))
        raise ValueError(message.format(*[value.item() for value in values]))


def _verdict(name: str, holds: bool, inputs: list[np.ndarray], results: Types) -> np.ndarray | None:
    """As the result where the call has one; else a false one is an error."""
    if results:
        return np.full(results[0].shape, holds, results[0].numpy)
    if not holds:
        actual, expected = (np.array2string(x, threshold=8) for x in inputs)
        raise AssertionError(f"{name}: {actual} is not {expected}")
    return None


@register_custom_call("check.eq", has_side_effect=True)
@register_custom_call("check.expect_eq", has_side_effect=True)
def check_equal(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> np.ndarray | None:
    """Equal elements; NaN equals nothing."""
    return _verdict("check.expect_eq", bool(np.all(inputs[0] == inputs[1])), inputs, results)


@register_custom_call("check.expect_almost_eq", has_side_effect=True)
def check_almost_equal(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> np.ndarray | None:
    """Equal within 0.001, relative or absolute; NaN equals NaN."""
    actual, expected = (x.astype(np.complex128 if x.dtype.kind == "c" else np.float64) for x in inputs)
    holds = np.allclose(actual, expected, rtol=1e-3, atol=1e-3, equal_nan=True)
    return _verdict("check.expect_almost_eq", holds, inputs, results)
