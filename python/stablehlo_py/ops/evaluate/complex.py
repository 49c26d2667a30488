"""Complex numbers: parts, and the functions that NumPy lacks or has with too few right digits."""

from __future__ import annotations

import numpy as np

from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.pointwise import pointwise
from stablehlo_py.ops.evaluate.special import special


def multiply(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, each step rounded: NumPy's own fuses some of them on some machines."""
    a, b, c, d = np.real(lhs), np.imag(lhs), np.real(rhs), np.imag(rhs)
    return _pair(a * c - b * d, a * d + b * c)


def divide(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """lhs / rhs; a non-zero over zero is infinite and a finite over an infinite is zero, as C99's Annex G has it."""
    wide_lhs, wide_rhs = lhs.astype(np.complex128), rhs.astype(np.complex128)
    (near_lhs, of_lhs), (near_rhs, of_rhs) = _balanced(wide_lhs), _balanced(wide_rhs)
    near = np.asarray(near_lhs / near_rhs)
    quotient = _pair(np.ldexp(np.real(near), of_lhs - of_rhs), np.ldexp(np.imag(near), of_lhs - of_rhs))
    a, b, c, d = np.real(wide_lhs), np.imag(wide_lhs), np.real(wide_rhs), np.imag(wide_rhs)
    by_zero = (c == 0) & (d == 0) & (~np.isnan(a) | ~np.isnan(b))
    scale = np.copysign(np.inf, c)
    quotient = np.where(by_zero, _pair(scale * a, scale * b), quotient)
    infinite = (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d) & ~by_zero
    ia, ib = _unit(a), _unit(b)
    quotient = np.where(infinite, _pair(np.inf * (ia * c + ib * d), np.inf * (ib * c - ia * d)), quotient)
    vanishing = (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    ic, id_ = _unit(c), _unit(d)
    return np.where(vanishing, _pair(0.0 * (a * ic + b * id_), 0.0 * (b * ic - a * id_)), quotient).astype(lhs.dtype)


def _balanced(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(z / 2**n, n) with the larger part between 1/2 and 1; zeros, infinities and NaN as they are."""
    _, exponent = np.frexp(np.maximum(np.abs(np.real(z)), np.abs(np.imag(z))))
    return _pair(np.ldexp(np.real(z), -exponent), np.ldexp(np.imag(z), -exponent)), exponent


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
    """The principal cube root: exp(log(x) / 3), and one step of Newton."""
    log = np.log(x)
    root = np.exp(_pair(np.real(log) / 3, np.imag(log) / 3))
    usual = (x != 0) & np.isfinite(x)
    safe = np.where(usual, root, 1)
    closer = root + (divide(np.where(usual, x, 1), multiply(safe, safe)) - root) / 3
    return np.where(usual, closer, np.where(x == 0, _pair(np.zeros(x.shape), np.imag(x)), root))


def expm1(x: np.ndarray) -> np.ndarray:
    """exp(x) - 1; from the exponential where that is large or NaN."""
    grown = np.exp(x)
    return np.where(np.real(x) < 600, special.expm1(x), _pair(np.real(grown) - 1, np.imag(grown)))


def log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x); NumPy's own value where x is not finite."""
    above = np.log(_pair(1 + np.real(x), np.imag(x)))
    return np.where(np.isfinite(x), special.log1p(np.where(np.isfinite(x), x, 0)), above)


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), and exp(x) / (1 + exp(x)) left of zero."""
    left = np.real(x) < 0
    small = np.exp(_pair(-np.abs(np.real(x)), np.where(left, np.imag(x), -np.imag(x))))
    return divide(np.where(left, small, 1), _pair(np.real(small) + 1, np.imag(small)))


def sign(x: np.ndarray) -> np.ndarray:
    """x / |x|, each part by itself; 0 stays, and NaN in either part is NaN in both."""
    near, _ = _balanced(x)
    size = np.where(x == 0, 1, np.hypot(np.real(near), np.imag(near)))
    result = np.where(x == 0, x, _pair(np.real(near) / size, np.imag(near) / size))
    return np.where(np.isnan(np.real(x)) | np.isnan(np.imag(x)), complex(np.nan, np.nan), result).astype(x.dtype)


def power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """exp(exponent * log(base)), zero parts exact; x^0 is 1, and 0 to a power with positive real part is 0."""
    log = np.log(base)
    real = _exact_zero(np.real(exponent), np.real(log)) - _exact_zero(np.imag(exponent), np.imag(log))
    imag = _exact_zero(np.real(exponent), np.imag(log)) + _exact_zero(np.imag(exponent), np.real(log))
    result = np.where((base == 0) & (np.real(exponent) > 0), 0, np.exp(_pair(real, imag)))
    return np.where(exponent == 0, 1, result)


def _exact_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """x y; zero times an infinity or a NaN is zero."""
    zero = np.copysign(0.0, np.copysign(1.0, x) * np.copysign(1.0, y))
    return np.where((x == 0) | (y == 0), zero, x * y)


def _product(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x y as a number and what it loses in rounding (Dekker), for numbers of about 1."""
    product = x * y
    (x1, x2), (y1, y2) = _halves(x), _halves(y)
    return product, ((x1 * y1 - product) + x1 * y2 + x2 * y1) + x2 * y2


def _halves(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shifted = x * 134217729.0  # 2**27 + 1
    high = shifted - (shifted - x)
    return high, x - high


def _sum_of_products(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """a b + c d with the right sign."""
    (first, first_lost), (second, second_lost) = _product(a, b), _product(c, d)
    return (first + second) + (first_lost + second_lost)


def atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """-i log((x + iy) / sqrt(x^2 + y^2)) = (arg p - arg m) / 2 + i log(|m| / |p|) / 2 of p = x + iy and m = x - iy.

    pi is added where arg p + arg m leaves (-pi, pi]. Modulo pi it is atan(y / x), which is better where y is small.
    """
    size_x, size_y = (np.maximum(np.abs(np.real(z)), np.abs(np.imag(z))) for z in (x, y))
    _, exponent = np.frexp(np.maximum(size_x, size_y))
    a, b, c, d = (np.ldexp(part, -exponent) for part in (np.real(x), np.imag(x), np.real(y), np.imag(y)))
    p, m = _pair(a - d, b + c), _pair(a + d, b - c)
    half = (np.angle(p) - np.angle(m)) / 2
    sine = _sum_of_products(np.real(p), np.imag(m), np.imag(p), np.real(m))
    lower = np.signbit(np.imag(p))
    below = np.signbit(np.where(sine == 0, a * b + c * d, sine))
    both_right, both_left = (np.real(p) > 0) & (np.real(m) > 0), (np.real(p) < 0) & (np.real(m) < 0)
    turned = (lower == np.signbit(np.imag(m))) & (both_left | ((lower != below) & ~both_right))
    unit_x, unit_y = _balanced(x)[0], _balanced(y)[0]
    lean = _sum_of_products(
        np.real(unit_x), np.real(unit_y), np.imag(unit_x), np.imag(unit_y)
    )  # has the sign of arg p - arg m
    behind = np.where(lean > 0, half - np.pi, np.where(lean < 0, half + np.pi, np.copysign(np.pi, np.imag(p))))
    about = np.where(turned, behind, half)
    size_p, size_m = np.hypot(np.real(p), np.imag(p)), np.hypot(np.real(m), np.imag(m))
    growth = np.where(size_p == size_m, 0.0, (np.log(size_m) - np.log(size_p)) / 2)
    arc = np.arctan(divide(y, x))
    turns = np.rint(about / np.pi)
    return np.where(size_y < size_x * 0.25, _pair(np.real(arc) + turns * np.pi, np.imag(arc)), _pair(about, growth))


@pointwise("stablehlo.complex")
def evaluate_complex(op: Op, real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    """real + i imag, part by part: no arithmetic, so infinities and zeros keep their signs."""
    return _pair(real, imag)
