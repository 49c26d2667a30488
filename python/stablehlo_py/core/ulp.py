"""Distance between floats in units in the last place."""

from __future__ import annotations

import numpy as np

FAR = np.uint64(2**63)  # the distance of a NaN or an infinity from anything else


def ulp_distance(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many representable values lie between, elementwise, as uint64; complex numbers take the worse part.

    Both arrays have one shape and one float or complex dtype. Two NaNs are 0 apart; -0 and +0 are 0 apart.
    """
    if actual.dtype.kind == "c":
        return np.maximum(
            ulp_distance(np.real(actual), np.real(expected)), ulp_distance(np.imag(actual), np.imag(expected))
        )
    bits = actual.dtype.itemsize * 8
    a, b = (_ordered(np.ascontiguousarray(x), bits) for x in (actual, expected))
    distance = np.where(a > b, a - b, b - a)
    wide_a, wide_b = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(wide_a) & np.isfinite(wide_b)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    return np.where(same, np.uint64(0), np.where(finite, distance, FAR))


def _ordered(array: np.ndarray, bits: int) -> np.ndarray:
    """Bits as unsigned integers that grow with the value; both zeros are the same."""
    raw = array.view(f"uint{bits}").astype(np.uint64)
    magnitude = raw & np.uint64((1 << (bits - 1)) - 1)
    middle = np.uint64(1 << 63)
    return np.where(raw >> np.uint64(bits - 1), middle - magnitude, middle + magnitude)
