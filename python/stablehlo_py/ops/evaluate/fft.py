"""Fourier transforms, in f64."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.numeric import narrow, wide

_TRANSFORMS = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn, "IRFFT": np.fft.irfftn}


@evaluate("stablehlo.fft")
def evaluate_fft(op: Op, operand: np.ndarray) -> np.ndarray:
    """The transform of the last len(fft_length) dimensions; inverses divide by the number of elements."""
    lengths = op.ints("fft_length")
    if op.type.size == 0 or operand.size == 0:
        return np.zeros(op.type.shape, op.type.element.dtype)
    axes = tuple(range(operand.ndim - len(lengths), operand.ndim))
    transform = _TRANSFORMS[op.enum("fft_type")]
    return narrow(transform(wide(operand), lengths, axes), op.type.element.dtype)
