"""Complex numbers: parts, and the functions that NumPy lacks or has with too few right digits."""

from __future__ import annotations

import numpy as np
from scipy import special

from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.pointwise import pointwise


def divide(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs / rhs; a non-zero over zero is infinite and a finite over an infinite is zero, as C99's Annex G has it."""
    wide_lhs, wide_rhs = lhs.astype(np.complex128), rhs.astype(np.complex128)
    quotient = np.asarray(wide_lhs / wide_rhs)
    a, b, c, d = wide_lhs.real, wide_lhs.imag, wide_rhs.real, wide_rhs.imag
    by_zero = (c == 0) & (d == 0) & (~np.isnan(a) | ~np.isnan(b))
    scale = np.copysign(np.inf, c)
    quotient = np.where(by_zero, _pair(scale * a, scale * b), quotient)
    infinite = (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d) & ~by_zero
    ia, ib = _unit(a), _unit(b)
    quotient = np.where(infinite, _pair(np.inf * (ia * c + ib * d), np.inf * (ib * c - ia * d)), quotient)
    vanishing = (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    ic, id_ = _unit(c), _unit(d)
    return np.where(vanishing, _pair(0.0 * (a * ic + b * id_), 0.0 * (b * ic - a * id_)), quotient).astype(lhs.dtype)


def _unit(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.where(np.isinf(x), 1.0, 0.0), x)


def _pair(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    real, imag = np.broadcast_arrays(real, imag)
    result = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    result.real, result.imag = real, imag
    return result


def rsqrt(x: np.ndarray) -> np.ndarray:
    return divide(np.ones_like(x), np.sqrt(x))


def cbrt(x: np.ndarray) -> np.ndarray:
    """The principal cube root."""
    return power(x, np.full_like(x, 1 / 3))


def expm1(x: np.ndarray) -> np.ndarray:
    return special.expm1(x)


def log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x); NumPy's own value where x is not finite."""
    return np.where(np.isfinite(x), special.log1p(np.where(np.isfinite(x), x, 0)), np.log(1 + x))


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)); 0 where the real part is -inf."""
    return np.where(np.isneginf(np.real(x)), 0, 1 / (1 + np.exp(-x)))


def sign(x: np.ndarray) -> np.ndarray:
    """x / |x|, each part by itself; 0 stays, and NaN in either part is NaN in both."""
    size = np.where(x == 0, 1, np.abs(x))
    result = np.where(x == 0, x, _pair(np.real(x) / size, np.imag(x) / size))
    return np.where(np.isnan(np.real(x)) | np.isnan(np.imag(x)), complex(np.nan, np.nan), result).astype(x.dtype)


def power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """exp(exponent * log(base)); 0^0 is 1, and 0 to a power with positive real part is 0."""
    at_zero = np.where(exponent == 0, 1, np.where(np.real(exponent) > 0, 0, complex(np.nan, np.nan)))
    safe = np.where(base == 0, 1, base)
    return np.where(base == 0, at_zero, np.power(safe, exponent))


def atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """-i log((x + i y) / sqrt(x^2 + y^2))."""
    return -1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))


@pointwise("stablehlo.complex")
def evaluate_complex(op: Op, real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """real + i imag, part by part: no arithmetic, so infinities and zeros keep their signs."""
    return _pair(real, imag)
