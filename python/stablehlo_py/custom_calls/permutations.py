"""lu_pivots_to_permutation: the row swaps of an LU factorisation as one permutation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType


@register_custom_call("lu_pivots_to_permutation")
def lu_pivots_to_permutation(
    inputs: list[np.ndarray], attributes: Mapping[str, Any], results: tuple[ArrayType, ...]
) -> np.ndarray:
    """Pivots [..., k], counted from 0: row i was swapped with row pivots[i]. The permutation is [..., m]."""
    (pivots,), (wanted,) = inputs, results
    permutation = np.broadcast_to(np.arange(wanted.shape[-1], dtype=wanted.numpy), wanted.shape).copy()
    rows = permutation.reshape(-1, wanted.shape[-1])
    every = np.arange(len(rows))
    for i, pivot in enumerate(pivots.reshape(len(rows), -1).T):
        if np.any((pivot < 0) | (pivot >= rows.shape[-1])):
            raise ValueError(f"a pivot is outside 0..{rows.shape[-1] - 1}")
        rows[every, pivot], rows[every, i] = rows[every, i].copy(), rows[every, pivot].copy()
    return permutation
