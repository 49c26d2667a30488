"""Mathematical functions with their truth in long double, inputs to try them on, and the errors of results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Truth = Callable[..., np.ndarray]
Wide = np.longdouble
_SQRT_PI = np.sqrt(np.arctan(Wide(1)) * 4)


def _erf_series(x: np.ndarray) -> np.ndarray:
    """2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!, whose terms have one sign."""
    total, term = x.copy(), x.copy()
    for n in range(1, 80):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 * total * np.exp(-x * x) / _SQRT_PI


def _erfc_tail(x: np.ndarray) -> np.ndarray:
    """The continued fraction of erfc, for x >= 2."""
    fraction = x
    for n in range(140, 0, -1):
        fraction = x + n / Wide(2) / fraction
    return np.exp(-x * x) / fraction / _SQRT_PI


def erf(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    result = np.where(size < 2, _erf_series(np.minimum(size, 2)), 1 - _erfc_tail(np.maximum(size, 2)))
    return np.copysign(result, x)


def erfc(x: np.ndarray) -> np.ndarray:
    tail = _erfc_tail(np.maximum(np.abs(x), 2))
    near = np.copysign(_erf_series(np.minimum(np.abs(x), 2)), x)
    return np.where(np.isnan(x), x, np.where(x >= 2, tail, np.where(x <= -2, 2 - tail, 1 - near)))


def _logistic(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


@dataclass(frozen=True)
class Function:
    """op: of StableHLO or chlo. truth: on long double. low, high: where most inputs are taken from."""

    op: str
    truth: Truth
    low: float
    high: float
    operands: int = 1
    numpy: Truth | None = None  # the same in the type itself, for comparison

    @property
    def name(self) -> str:
        return self.op.partition(".")[2]

    def text(self, ty: str, count: int) -> str:
        """A program of this op on vectors."""
        arguments = ", ".join(f"%{i}: tensor<{count}x{ty}>" for i in range(self.operands))
        names = ", ".join(f"%{i}" for i in range(self.operands))
        kind = f"tensor<{count}x{ty}>"
        types = f"({', '.join([kind] * self.operands)}) -> {kind}"
        return (
            f'func.func @main({arguments}) -> {kind} {{\n  %r = "{self.op}"({names}) : {types}\n'
            f"  return %r : {kind}\n}}\n"
        )


FUNCTIONS = (
    Function("stablehlo.exponential", np.exp, -110, 90, numpy=np.exp),
    Function("stablehlo.exponential_minus_one", np.expm1, -20, 90, numpy=np.expm1),
    Function("stablehlo.log", np.log, 0, 4, numpy=np.log),
    Function("stablehlo.log_plus_one", np.log1p, -1, 3, numpy=np.log1p),
    Function("stablehlo.logistic", _logistic, -100, 20),
    Function("stablehlo.tanh", np.tanh, -10, 10, numpy=np.tanh),
    Function("stablehlo.sine", np.sin, -100, 100, numpy=np.sin),
    Function("stablehlo.cosine", np.cos, -100, 100, numpy=np.cos),
    Function("stablehlo.tan", np.tan, -10, 10, numpy=np.tan),
    Function("stablehlo.rsqrt", lambda x: 1 / np.sqrt(x), 0, 10, numpy=lambda x: 1 / np.sqrt(x)),
    Function("stablehlo.cbrt", np.cbrt, -10, 10, numpy=np.cbrt),
    Function("stablehlo.power", np.power, 0, 20, operands=2, numpy=np.power),
    Function("stablehlo.atan2", np.arctan2, -10, 10, operands=2, numpy=np.arctan2),
    Function("chlo.erf", erf, -6, 6),
    Function("chlo.erfc", erfc, -6, 28),
    Function("chlo.sinh", np.sinh, -90, 90, numpy=np.sinh),
    Function("chlo.cosh", np.cosh, -90, 90, numpy=np.cosh),
    Function("chlo.asin", np.arcsin, -1, 1, numpy=np.arcsin),
    Function("chlo.acos", np.arccos, -1, 1, numpy=np.arccos),
    Function("chlo.atan", np.arctan, -10, 10, numpy=np.arctan),
    Function("chlo.asinh", np.arcsinh, -10, 10, numpy=np.arcsinh),
    Function("chlo.acosh", np.arccosh, 1, 20, numpy=np.arccosh),
    Function("chlo.atanh", np.arctanh, -1, 1, numpy=np.arctanh),
)


def specials(dtype: np.dtype) -> np.ndarray:
    """Zeros, infinities, NaN, subnormals, the ends of the range, whole and half numbers, and what lies beside them."""
    info = np.finfo(dtype)
    values = [0, 1, 2, 3, 0.5, 1.5, 2.5, 10, 100, 1e5, 2**24, 2**31, 88.5, 709.7, 710.2, 745.1, 103.9, np.pi, np.pi / 2]
    values += [info.max, info.tiny, info.smallest_subnormal, info.tiny / 2, info.eps, info.eps / 2, np.inf]
    with np.errstate(all="ignore"):
        positive = np.array(values).astype(dtype)
        positive = np.concatenate([positive, np.nextafter(positive, 0), np.nextafter(positive, dtype.type(np.inf))])
    return np.concatenate([positive, -positive, np.array([np.nan], dtype)])


def samples(function: Function, dtype: np.dtype, count: int, seed: int = 0) -> tuple[np.ndarray, ...]:
    """`count` inputs: half from the interval, a quarter over all bits, a quarter near 0 or 1, and the special ones.

    A function of two operands gets every pair of special ones.
    """
    random = np.random.default_rng(seed)
    grid = np.meshgrid(*[specials(dtype)] * function.operands, indexing="ij")
    found = []
    for special in grid:
        wide = random.uniform(function.low, function.high, count // 2).astype(dtype)
        bits = random.integers(0, 2 ** (dtype.itemsize * 8), count // 4, dtype=f"u{dtype.itemsize}").view(dtype)
        small = np.exp(random.uniform(-20, 2, count // 4)) * random.choice([-1, 1], count // 4)
        small[::2] += 1
        usual = np.concatenate([wide, bits, small.astype(dtype)])
        found.append(np.concatenate([special.ravel(), random.permutation(usual)]))
    return tuple(found)


def truth_of(function: Function, *arrays: np.ndarray) -> np.ndarray:
    """The function in long double."""
    with np.errstate(all="ignore"):
        return function.truth(*(x.astype(Wide) for x in arrays))


def errors(actual: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """|actual - truth| in units of the last place; infinite where only one is finite, or a zero has the wrong sign."""
    dtype = actual.dtype
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        rounded = truth.astype(dtype)
        finite = np.isfinite(actual) & np.isfinite(rounded)
        unit = np.spacing(np.where(finite, np.abs(rounded), info.max))
        distance = np.abs(actual.astype(Wide) - truth) / unit
        edge = Wide(info.max) + 2 * np.spacing(info.max)
        # a truth at the very edge of the range may become the largest number or infinity
        beyond = (np.abs(truth) >= info.max) & (np.abs(truth) < edge) & (np.abs(actual) >= info.max)
    beyond &= np.signbit(actual) == np.signbit(rounded)
    same = (actual == rounded) | (np.isnan(actual) & np.isnan(rounded))
    distance = np.where(finite, distance, np.where(same, 0, np.where(beyond, 1, np.inf)))
    wrong_sign = (rounded == 0) & (actual == 0) & (np.signbit(actual) != np.signbit(rounded))
    return np.where(wrong_sign, np.inf, distance).astype(np.float64)
