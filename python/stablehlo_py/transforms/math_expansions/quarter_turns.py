"""How many quarter turns are in an angle: exact for every x, without branches and without a table in memory.

Payne and Hanek: x is m 2^q with a whole m, so x 2/pi modulo 4 needs only those bits of 2/pi that lie after its q-th.
Selects find the window of bits; for f32 (in f64) there are four windows, for f64 a shifter of five steps.
"""

from __future__ import annotations

import functools

from stablehlo_py.ops.expression import Num, where
from stablehlo_py.transforms.math_expansions.arithmetic import Arithmetic, rounded, two_sum

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


def quarter_turns_32(m: Arithmetic, x: Num) -> tuple[Num, Num]:
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


_CHUNK = 53  # bits of a chunk of 2/pi, and the width of a window
_CHUNKS = 5  # of one product: the angle closest to a multiple of pi/2 needs 53 + 61 bits after the point
_STEPS = 5  # 2^5 windows are more than the 971 / 53 that f64 has


@functools.cache
def chunks() -> tuple[float, ...]:
    """2/pi in whole numbers of 53 bits; the first starts at the bit of weight 2."""
    count = 2**_STEPS + _CHUNKS
    value = two_over_pi(count * _CHUNK - 2)
    mask = (1 << _CHUNK) - 1
    return tuple(float(value >> (_CHUNK * (count - 1 - k)) & mask) for k in range(count))


def quarter_turns_64(m: Arithmetic, x: Num) -> tuple[Num, Num, Num]:
    """n in -2 .. 2 and f in -1/2 .. 1/2 in two doubles, with x 2/pi = n + f modulo 4."""
    size = abs(x)
    window: list[Num | float] = list(chunks()[: 18 + _CHUNKS])  # 18 windows reach 2^1024
    for step in reversed(range(_STEPS)):
        distance = 2**step
        bound = 2.0 ** min(_CHUNK * (distance + 1), 1023)
        beyond = size >= bound
        shift = where(beyond, x.lift(2.0 ** (-_CHUNK * distance)), 1.0)
        x, size = x * shift, size * shift
        kept = min(len(window), distance - 1 + _CHUNKS)
        window = [
            where(beyond, x.lift(window[k + distance] if k + distance < len(window) else 0.0), window[k])
            for k in range(kept)
        ]
    terms: list[Num] = []
    for k in range(_CHUNKS):
        position = 2.0 ** (2 - _CHUNK * (k + 1))
        terms += m.product(x, x.lift(window[k]) * position)
    terms = [_modulo_4(m, term) for term in terms[:4]] + terms[4:-1]
    terms = _gathered(terms)
    n = rounded(terms[0])
    terms = _gathered([terms[0] - n, *terms[1:]])
    return n, terms[0], terms[1]


def _gathered(terms: list[Num]) -> list[Num]:
    """The same sum, with as much of it as possible in the first term, then in the second."""
    total, lost = terms[-1], []
    for term in reversed(terms[:-1]):
        total, rest = two_sum(term, total)
        lost.append(rest)
    return [total, *reversed(lost)]
