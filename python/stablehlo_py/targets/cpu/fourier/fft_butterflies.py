"""Short Fourier transforms on vectors: what one pass of a long transform does to as many values as its factor.

Values are pairs of vectors, real and imaginary parts apart, so that a multiplication is four products and no shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.ops.fft import roots
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit.nest import Vectors, constant_vector

LARGEST = 13  # factors above this are left to others


@record
class Pair:
    """Complex numbers: the vector of their real parts and that of their imaginary parts."""

    re: ir.Value
    im: ir.Value

    def __add__(self, other: Pair) -> Pair:
        return Pair(arith.addf(self.re, other.re), arith.addf(self.im, other.im))

    def __sub__(self, other: Pair) -> Pair:
        return Pair(arith.subf(self.re, other.re), arith.subf(self.im, other.im))

    def __mul__(self, other: Pair) -> Pair:
        cross = arith.mulf(self.im, other.im)
        re = vector.fma(self.re, other.re, arith.negf(cross))
        return Pair(re, vector.fma(self.re, other.im, arith.mulf(self.im, other.re)))

    def conjugate(self) -> Pair:
        return Pair(self.re, arith.negf(self.im))

    def scaled(self, factor: ir.Value) -> Pair:
        return Pair(arith.mulf(self.re, factor), arith.mulf(self.im, factor))

    def turned(self, inverse: bool) -> Pair:
        """Times -i, or i for the inverse."""
        return Pair(arith.negf(self.im), self.re) if inverse else Pair(self.im, arith.negf(self.re))


def factors_of(length: int, registers: int) -> list[int] | None:
    """The passes of a transform, or None if a prime is too large; 8 needs the 32 registers of AVX-512."""
    twos, rest = 0, length
    while rest % 2 == 0:
        twos, rest = twos + 1, rest // 2
    # three at a time, but never a lone 2 where two 4 do
    eights = max(twos // 3 - (twos % 3 == 1), 0) if registers >= 32 else 0
    left = twos - 3 * eights
    result = [8] * eights + [4] * (left // 2) + [2] * (left % 2)
    for prime in range(3, LARGEST + 1, 2):
        while rest % prime == 0:
            result.append(prime)
            rest //= prime
    return result if rest == 1 else None


def short_transform(values: Sequence[Pair], inverse: bool, vectors: Vectors) -> list[Pair]:
    """sum over q of exp(-2 pi i q j / r) x[q] for all j < r; exp(+...) for the inverse."""
    r = len(values)
    if r == 2:
        return [values[0] + values[1], values[0] - values[1]]
    if r == 4:
        return _of_four(values, inverse)
    if r == 8:
        return _of_eight(values, inverse, vectors)
    return _of_odd(values, inverse, vectors)


def _of_four(x: Sequence[Pair], inverse: bool) -> list[Pair]:
    even, odd, other = x[0] + x[2], x[1] + x[3], x[0] - x[2]
    turned = (x[1] - x[3]).turned(inverse)
    return [even + odd, other + turned, even - odd, other - turned]


def _of_eight(x: Sequence[Pair], inverse: bool, vectors: Vectors) -> list[Pair]:
    """Two of four, the odd one turned by eighths."""
    even, odd = _of_four(x[0::2], inverse), _of_four(x[1::2], inverse)
    eighth = constant(vectors, math.sqrt(0.5))
    # (1 - i) / sqrt 2 * z, and (-1 - i) / sqrt 2 * z; conjugates for the inverse
    one, three = odd[1], odd[3]
    if inverse:
        first = Pair(arith.subf(one.re, one.im), arith.addf(one.re, one.im)).scaled(eighth)
        third = Pair(arith.negf(arith.addf(three.re, three.im)), arith.subf(three.re, three.im)).scaled(eighth)
    else:
        first = Pair(arith.addf(one.re, one.im), arith.subf(one.im, one.re)).scaled(eighth)
        third = Pair(arith.subf(three.im, three.re), arith.negf(arith.addf(three.re, three.im))).scaled(eighth)
    turned = [odd[0], first, odd[2].turned(inverse), third]
    return [a + b for a, b in zip(even, turned, strict=True)] + [a - b for a, b in zip(even, turned, strict=True)]


def _of_odd(x: Sequence[Pair], inverse: bool, vectors: Vectors) -> list[Pair]:
    """x[q] and x[r - q] have conjugate factors: their sum goes with the cosines, their difference with the sines."""
    r = len(x)
    half = range(1, (r + 1) // 2)
    sums, differences = [x[q] + x[r - q] for q in half], [x[q] - x[r - q] for q in half]
    table = roots(r, inverse)
    total = x[0]
    for pair in sums:
        total = total + pair
    results = [total] * r
    for j in half:
        even, odd = x[0], None
        for q, s, d in zip(half, sums, differences, strict=True):
            turn = table[j * q % r]
            cosine, sine = constant(vectors, turn.real), constant(vectors, turn.imag)
            even = Pair(vector.fma(s.re, cosine, even.re), vector.fma(s.im, cosine, even.im))
            odd = (
                d.scaled(sine) if odd is None else Pair(vector.fma(d.re, sine, odd.re), vector.fma(d.im, sine, odd.im))
            )
        assert odd is not None
        turned = Pair(arith.negf(odd.im), odd.re)  # times i
        results[j], results[r - j] = even + turned, even - turned
    return results


def constant(vectors: Vectors, value: float) -> ir.Value:
    return constant_vector(vectors.type, value)
