"""tridiagonal_solve_perturbed: tridiagonal systems that stay finite where the matrix is singular.

LU with partial pivoting, all systems of a batch at once; a pivot below eps max |U| is taken to be of that size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from stablehlo_py.custom_calls.call import CustomCall
from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType


def _signature(call: CustomCall) -> str | None:
    if len(call.operands) != 4:
        return f"it takes 4 operands, {len(call.operands)} are given"
    lower, diagonal, upper, b = call.operands
    if not lower.shape == diagonal.shape == upper.shape == b.shape[:-1]:
        return "it takes three diagonals [..., n] and right-hand sides [..., n, k]"
    return None


@register_custom_call("tridiagonal_solve_perturbed_ffi", signature=_signature)
def tridiagonal_solve_perturbed(
    inputs: list[np.ndarray], attributes: Mapping[str, Any], results: tuple[ArrayType, ...]
) -> np.ndarray:
    """x with T x = b: lower, diagonal, upper [..., n] (lower[0] and upper[-1] are not read), b [..., n, k]."""
    lower, diagonal, upper, b = (np.array(x) for x in inputs)
    if not b.size:
        return b
    n = diagonal.shape[-1]
    upper[..., -1] = 0
    second = np.zeros_like(upper)  # the second diagonal above, which exchanged rows fill
    for i in range(n - 1):
        exchange = np.abs(lower[..., i + 1]) > np.abs(diagonal[..., i])
        here = (diagonal[..., i], upper[..., i], np.zeros_like(upper[..., i]))
        below = (lower[..., i + 1], diagonal[..., i + 1], upper[..., i + 1])
        top = [np.where(exchange, y, x) for x, y in zip(here, below, strict=True)]
        rest = [np.where(exchange, x, y) for x, y in zip(here, below, strict=True)]
        zero = top[0] == 0
        factor = np.where(zero, 0, rest[0] / np.where(zero, 1, top[0]))
        diagonal[..., i], upper[..., i], second[..., i] = top
        diagonal[..., i + 1] = rest[1] - factor * top[1]
        upper[..., i + 1] = rest[2] - factor * top[2]
        rows = np.where(exchange[..., None], b[..., i + 1, :], b[..., i, :])
        others = np.where(exchange[..., None], b[..., i, :], b[..., i + 1, :])
        b[..., i, :], b[..., i + 1, :] = rows, others - factor[..., None] * rows
    pivots = _perturbed(diagonal, upper, second)[..., None]
    for i in reversed(range(n)):
        if i + 1 < n:
            b[..., i, :] -= upper[..., i, None] * b[..., i + 1, :]
        if i + 2 < n:
            b[..., i, :] -= second[..., i, None] * b[..., i + 2, :]
        b[..., i, :] /= pivots[..., i, :]
    return b


def _perturbed(diagonal: np.ndarray, *above: np.ndarray) -> np.ndarray:
    """The pivots, those below eps max |U| with that size and their own sign."""
    sizes = np.max([np.abs(x).max(axis=-1) for x in (diagonal, *above)], axis=0)[..., None]
    info = np.finfo(diagonal.dtype)
    least = np.maximum(sizes * info.eps, info.tiny / info.eps).astype(diagonal.dtype)
    size = np.abs(diagonal)
    signs = np.where(size == 0, 1, diagonal / np.where(size == 0, 1, size)).astype(diagonal.dtype)
    return np.where(size < least.real, signs * least, diagonal)
