#!/usr/bin/env python3
"""Fit the polynomials of transforms/math_expansions: prints coefficients.py; with --special those of ops/special_functions.

Weighted least squares over Chebyshev nodes (close to the minimax polynomial), in decimal arithmetic of 90 digits.
Coefficients are rounded one after the other, lowest power first, and the rest fitted again to what the rounding left.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext

import numpy as np

getcontext().prec = 90
Function = Callable[[Decimal], Decimal]
ONE, HALF = Decimal(1), Decimal("0.5")


def _alternating(x: Decimal, first: Decimal, step: Callable[[int], Decimal]) -> Decimal:
    """first - first * step(1) x^2 + ..."""
    total = term = first
    for k in range(1, 400):
        term = -term * x * x * step(k)
        total += term
        if abs(term) < Decimal(10) ** -85:
            break
    return total


def sin(x: Decimal) -> Decimal:
    return _alternating(x, x, lambda k: ONE / (2 * k * (2 * k + 1)))


def cos(x: Decimal) -> Decimal:
    return _alternating(x, ONE, lambda k: ONE / (2 * k * (2 * k - 1)))


def atan(x: Decimal) -> Decimal:
    total, power, k = Decimal(0), x, 0
    while abs(power) > Decimal(10) ** -60:
        total += (-power if k % 2 else power) / (2 * k + 1)
        power, k = power * x * x, k + 1
    return total


PI = 4 * (4 * atan(ONE / 5) - atan(ONE / 239))
SQRT_PI = PI.sqrt()


def erf(x: Decimal) -> Decimal:
    """2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!"""
    total = term = x
    n = 0
    while abs(term) > Decimal(10) ** -85:
        n += 1
        term = term * 2 * x * x / (2 * n + 1)
        total += term
    return 2 * total * (-x * x).exp() / SQRT_PI


def scaled_erfc(x: Decimal) -> Decimal:
    """exp(x^2) erfc(x)."""
    if x < 6:
        return (ONE - erf(x)) * (x * x).exp()
    tail = x
    for n in range(200, 0, -1):
        tail = x + Decimal(n) / 2 / tail
    return 1 / tail / SQRT_PI


def erf_inv_by_root(root: Decimal) -> Decimal:
    """erf_inv(x) / x where -log(1 - x^2) is the square of `root`, by Newton's method on log(erfc(y))."""
    rest = (-root * root).exp()  # 1 - x^2
    x = (1 - rest).sqrt()
    y, wanted = (x if x < Decimal("0.9") else root), (rest / (1 + x)).ln()
    for _ in range(60):
        scaled = scaled_erfc(y)
        step = (scaled.ln() - y * y - wanted) * scaled * SQRT_PI / 2
        y += step
        if abs(step) < Decimal(10) ** -40:
            break
    return y / x


def _solve(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    n = len(right)
    rows = [[*row, r] for row, r in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    solution = [Decimal(0)] * n
    for i in reversed(range(n)):
        solution[i] = (rows[i][n] - sum(rows[i][j] * solution[j] for j in range(i + 1, n))) / rows[i][i]
    return solution


@dataclass(frozen=True)
class Fit:
    """function on [low, high] by `terms` coefficients of width `bits`; errors count by `weight`."""

    name: str
    what: str
    function: Function
    low: Decimal
    high: Decimal
    terms: int
    bits: int
    weight: Function = lambda x: ONE

    def coefficients(self) -> tuple[list[float], float]:
        """Lowest power first, and the largest weighted error over the nodes."""
        count = 4 * self.terms
        middle, radius = (self.low + self.high) / 2, (self.high - self.low) / 2
        nodes = [middle + radius * Decimal(math.cos(math.pi * (i + 0.5) / count)) for i in range(count)]
        weights = [self.weight(x) for x in nodes]
        wanted = [self.function(x) for x in nodes]
        left, done = list(wanted), []
        while len(done) < self.terms:
            powers = range(len(done), self.terms)
            basis = [[w * x**p for p in powers] for x, w in zip(nodes, weights, strict=True)]
            right = [w * y for w, y in zip(weights, left, strict=True)]
            n = len(powers)
            normal = [[sum((row[i] * row[j] for row in basis), Decimal(0)) for j in range(n)] for i in range(n)]
            found = _solve(
                normal, [sum((row[i] * r for row, r in zip(basis, right, strict=True)), Decimal(0)) for i in range(n)]
            )
            lowest = float(found[0])
            # one rounding for all: double coefficients are so close that fitting again buys nothing
            taken = [float(np.float32(lowest))] if self.bits == 32 else [float(c) for c in found]
            for c in taken:
                left = [y - Decimal(c) * x ** len(done) for x, y in zip(nodes, left, strict=True)]
                done.append(c)
        return done, float(max(abs(w * y) for w, y in zip(weights, left, strict=True)))


def _log_ratio(z: Decimal) -> Decimal:
    """(log((1 + s) / (1 - s)) - 2 s) / s^3 with z = s^2."""
    s = z.sqrt()
    return (((1 + s) / (1 - s)).ln() - 2 * s) / s**3


def _odd(f: Function) -> Function:
    """f(x) / x as a function of x^2."""
    return lambda u: f(u.sqrt()) / u.sqrt()


LN2_HALF = Decimal("0.3475")
SMALL_LOG = (Decimal("-0.2930"), Decimal("0.4143"))
TINY = Decimal("1e-14")
TAN_PI_8 = Decimal("0.41422")
S2 = (Decimal(3) - Decimal(8).sqrt()) ** 2 + Decimal("1e-6")
ERFC_CENTER, ERFC_CENTER_32 = 4, 2
SQUARE_PI_4 = (PI / 4) ** 2 + Decimal("1e-6")


def _exp_rest(r: Decimal) -> Decimal:
    return (r.exp() - 1 - r) / r**2


def _sin_rest(u: Decimal) -> Decimal:
    return (sin(u.sqrt()) - u.sqrt()) / (u * u.sqrt())


def _cos_rest(u: Decimal) -> Decimal:
    return (cos(u.sqrt()) - 1 + u / 2) / u**2


FITS = (
    Fit("EXP_32", "(exp(r) - 1 - r) / r^2, |r| <= log(2) / 2", _exp_rest, -LN2_HALF, LN2_HALF, 5, 32),
    Fit("EXP_64", "the same", _exp_rest, -LN2_HALF, LN2_HALF, 10, 64),
    Fit("EXP_64_SHORT", "the same to 2^-40, for results in f32", _exp_rest, -LN2_HALF, LN2_HALF, 7, 64),
    Fit(
        "LOG_32",
        "(log(1 + f) - f + f^2 / 2) / f^3, sqrt(1/2) <= 1 + f <= sqrt(2)",
        lambda f: ((1 + f).ln() - f + f * f / 2) / f**3,
        *SMALL_LOG,
        8,
        32,
        lambda f: abs(f) ** 2,
    ),
    Fit("LOG_64", "(log((1 + s) / (1 - s)) - 2 s) / s^3 in z = s^2", _log_ratio, TINY, S2, 8, 64),
    Fit("LOG_64_SHORT", "the same to 2^-40, for results in f32", _log_ratio, TINY, S2, 5, 64),
    Fit(
        "SIN_TURNS",
        "sin(pi / 2 f) / f in f^2, |f| <= 1/2",
        _odd(lambda f: sin(PI / 2 * f)),
        TINY,
        Decimal("0.2501"),
        6,
        64,
    ),
    Fit("COS_TURNS", "cos(pi / 2 f) in f^2", lambda u: cos(PI / 2 * u.sqrt()), TINY, Decimal("0.2501"), 6, 64),
    Fit("SIN_64", "(sin(r) - r) / r^3 in r^2, r <= pi / 4", _sin_rest, TINY, SQUARE_PI_4, 6, 64),
    Fit("COS_64", "(cos(r) - 1 + r^2 / 2) / r^4 in r^2, r <= pi / 4", _cos_rest, TINY, SQUARE_PI_4, 6, 64),
    Fit("ATAN_64", "atan(z) / z in z^2, z <= tan(pi / 8)", _odd(atan), TINY, TAN_PI_8**2, 13, 64),
    Fit("ATAN_64_SHORT", "the same to 2^-34, for results in f32", _odd(atan), TINY, TAN_PI_8**2, 8, 64),
    Fit(
        "ERF_32",
        "erf(x) / x - 1 in x^2, x <= 0.9375",
        lambda u: erf(u.sqrt()) / u.sqrt() - 1,
        TINY,
        Decimal("0.88"),
        6,
        32,
    ),
    Fit(
        "ERF_32_TAIL",
        "log(1 - erf(x)) + x, 0.9375 <= x <= 4",
        lambda x: (scaled_erfc(x)).ln() - x * x + x,
        Decimal("0.93"),
        Decimal("4"),
        7,
        32,
        lambda x: scaled_erfc(x) * (-x * x).exp(),
    ),
    Fit("ERF_64", "erf(x) / x in x^2, x <= 1", _odd(erf), TINY, Decimal("1.0001"), 13, 64),
    Fit(
        "ERFC_64",
        f"(1 + 2 x) exp(x^2) erfc(x) in q = (x - {ERFC_CENTER}) / (x + {ERFC_CENTER}), 0 <= x <= 28",
        lambda q: (lambda x: (1 + 2 * x) * scaled_erfc(x))(ERFC_CENTER * (1 + q) / (1 - q)),
        Decimal(-1),
        Decimal(28 - ERFC_CENTER) / (28 + ERFC_CENTER),
        24,
        64,
    ),
    Fit(
        "ERFC_32",
        f"the same in q = (x - {ERFC_CENTER_32}) / (x + {ERFC_CENTER_32}), 1/2 <= x <= 10.1",
        lambda q: (lambda x: (1 + 2 * x) * scaled_erfc(x))(ERFC_CENTER_32 * (1 + q) / (1 - q)),
        (HALF - ERFC_CENTER_32) / (HALF + ERFC_CENTER_32),
        (Decimal("10.1") - ERFC_CENTER_32) / (Decimal("10.1") + ERFC_CENTER_32),
        9,
        32,
    ),
    Fit("CBRT", "m^(-1/3), 1 <= m <= 2", lambda m: (-(m.ln()) / 3).exp(), ONE, Decimal(2), 5, 64),
)

_CENTER, _MIDDLE = Decimal("3.125"), Decimal("3.25")
SPECIAL_FITS = (
    Fit(
        "_ERF_INV_CENTER_SHORT",
        "erf_inv(x) / x in w - 3.125, w = -log(1 - x^2) <= 6.25, for results in f32",
        lambda t: erf_inv_by_root((t + _CENTER).sqrt()),
        -_CENTER + TINY,
        _CENTER,
        11,
        32,
        lambda t: 1 / erf_inv_by_root((t + _CENTER).sqrt()),
    ),
    Fit(
        "_ERF_INV_MIDDLE_SHORT",
        "the same in sqrt(w) - 3.25, 6.25 <= w <= 15.96",
        lambda t: erf_inv_by_root(t + _MIDDLE),
        Decimal("2.5") - _MIDDLE,
        Decimal("3.995") - _MIDDLE,
        9,
        32,
        lambda t: 1 / erf_inv_by_root(t + _MIDDLE),
    ),
)


def main() -> None:
    if "--special" in sys.argv[1:]:
        print_fits(SPECIAL_FITS)
        return
    print('"""Coefficients of polynomials, highest power first: printed by tools/fit_polynomials.py."""\n')
    print("from __future__ import annotations")
    print_fits(FITS)


def print_fits(fits: tuple[Fit, ...]) -> None:
    for fit in fits:
        found, error = fit.coefficients()
        print(f"\n# {fit.what}: error 2^{math.log2(error):.1f}")
        print(f"{fit.name} = (")
        for c in reversed(found):
            print(f"    {c!r},")
        print(")")


if __name__ == "__main__":
    main()
