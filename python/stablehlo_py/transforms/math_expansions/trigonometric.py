"""sin, cos and tan of f32 by way of f64: the quarter turns in x are counted exactly for every x, without branches.

Payne and Hanek: x is m 2^q with a whole m of 24 bits, so x 2/pi modulo 4 needs only those bits of 2/pi that lie after
its q-th. Four windows of them, chosen by selects, serve all exponents.
"""

from __future__ import annotations

import functools

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import Arithmetic, rounded
from stablehlo_py.transforms.math_expansions.coefficients import COS_TURNS, SIN_TURNS

_WINDOW = 27  # q in 0 .. 26 for the first window; 4 windows reach q = 107, and f32 ends at 104
_WINDOWS = 4
_PIECE = 26  # bits of a piece of 2/pi: m 2^26 times a piece has at most 24 + 26 bits and is exact


@functools.cache
def two_over_pi(bits: int) -> int:
    """floor(2/pi 2^bits), by Machin's formula for pi."""
    guard = bits + 64

    def arctangent(inverse: int) -> int:
        total, power, k = 0, (1 << guard) // inverse, 0
        while power:
            total += (-power if k % 2 else power) // (2 * k + 1)
            power, k = power // (inverse * inverse), k + 1
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return (2 << (guard + bits)) // pi


@functools.cache
def pieces(window: int) -> tuple[float, ...]:
    """2/pi 2^(27 window) modulo 4 as three doubles, each starting where the one before ends."""
    bits = 4 * 64
    value = (two_over_pi(bits + _WINDOW * window)) & ((1 << (bits + 2)) - 1)
    found = []
    for k in range(2):
        shift = bits + 2 - (k + 1) * _PIECE
        found.append((value >> shift) * 2.0 ** (shift - bits))
        value &= (1 << shift) - 1
    return (*found, value / (1 << bits))


def quarter_turns(m: Arithmetic, x: Num) -> tuple[Num, Num]:
    """n in -2 .. 2 and f in -1/2 .. 1/2 with x 2/pi = n + f modulo 4; x is f64 but has 24 bits."""
    size = abs(x)
    factor, parts = x.lift(1.0), [x.lift(c) for c in pieces(0)]
    for window in range(1, _WINDOWS):
        beyond = size >= 2.0 ** (24 + _WINDOW * window)
        factor = where(beyond, 2.0 ** (-_WINDOW * window), factor)
        parts = [where(beyond, c, part) for c, part in zip(pieces(window), parts, strict=True)]
    scaled = x * factor
    high, middle = _modulo_4(m, scaled * parts[0]), _modulo_4(m, scaled * parts[1])
    low = scaled * parts[2]
    n = rounded(high + middle + low)
    # high - n is exact, and so is the sum with middle unless low decides no bit that counts
    return n, ((high - n) + middle) + low


def _modulo_4(m: Arithmetic, x: Num) -> Num:
    return m.multiply_add(rounded(x * 0.25), -4.0, x)


def _sin_cos_of_rest(m: Arithmetic, f: Num) -> tuple[Num, Num]:
    square = f * f
    return m.horner(square, SIN_TURNS) * f, m.horner(square, COS_TURNS)


def _low_bit(n: Num) -> Num:
    """Whether a small whole number is odd."""
    half = n * 0.5
    return rounded(half).ne(half)


def _sine_from(m: Arithmetic, n: Num, f: Num) -> Num:
    """sin of n + f quarter turns."""
    sine, cosine = _sin_cos_of_rest(m, f)
    value = where(_low_bit(n), cosine, sine)
    # n modulo 4 is 2 or 3: the lower half circle
    lower = _low_bit((n * 0.5).floor())
    return where(lower, -value, value)


def sin(m: Arithmetic, x: Num) -> Num:
    n, f = quarter_turns(m, x.to_f64())
    return where(x.eq(0.0), x, _sine_from(m, n, f).to(x.type))


def cos(m: Arithmetic, x: Num) -> Num:
    n, f = quarter_turns(m, x.to_f64())
    return _sine_from(m, n + 1.0, f).to(x.type)


def tan(m: Arithmetic, x: Num) -> Num:
    n, f = quarter_turns(m, x.to_f64())
    sine, cosine = _sin_cos_of_rest(m, f)
    odd = _low_bit(n)
    return where(x.eq(0.0), x, (where(odd, -cosine, sine) / where(odd, sine, cosine)).to(x.type))
