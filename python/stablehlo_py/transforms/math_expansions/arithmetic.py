"""Arithmetic that the expansions share: fused or split products, sums with their errors, powers of two from bits.

Everything is branch-free and free of conversions that vector units lack, so that LLVM can vectorise what comes out.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops.expression import Num, where
from stablehlo_py.ops.llvm_ops import LDEXP, call_intrinsic
from stablehlo_py.records import record

INFINITY, NAN = float("inf"), float("nan")


@record
class Format:
    """A binary float format by its stored bits of the significand and its exponent bias."""

    fraction: int
    bias: int

    @property
    def magic(self) -> float:
        """1.5 * 2^fraction: x + magic rounds x to an integer n, and the bits of the sum end in n."""
        return 1.5 * 2.0**self.fraction

    @property
    def magic_bits(self) -> int:
        return ((self.bias + self.fraction) << self.fraction) | 1 << (self.fraction - 1)

    @property
    def exponent_sign_mask(self) -> int:
        """The bits above the fraction."""
        return -(1 << self.fraction)

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (1 - self.bias)


F32, F64 = Format(23, 127), Format(52, 1023)


def format_of(x: Num) -> Format:
    return F64 if isinstance(x.type, ir.F64Type) else F32


@record
class Arithmetic:
    """What the target has instructions for.

    fma: a fused multiply-add; without one, exact products are split. ldexp: the product with a power of two.
    """

    fma: bool
    ldexp: bool = False

    def multiply_add(self, x: Num, y: Num | float, z: Num | float) -> Num:
        """x y + z, rounded once where the target can."""
        y, z = x.lift(y), x.lift(z)
        return Num(math.fma(x.value, y.value, z.value)) if self.fma else x * y + z

    def horner(self, x: Num, coefficients: Sequence[float]) -> Num:
        """A polynomial, highest power first."""
        result = x.lift(coefficients[0])
        for c in coefficients[1:]:
            result = self.multiply_add(result, x, c)
        return result

    def horner_by_pairs(self, x: Num, square: Num, coefficients: Sequence[float]) -> Num:
        """The same by powers of x^2 of pairs a x + b: as many instructions, half of which wait for each other."""
        pairs = [coefficients[i : i + 2] for i in range(len(coefficients) % 2, len(coefficients), 2)]
        terms = [self.multiply_add(x.lift(a), x, b) for a, b in pairs]
        result, *terms = [x.lift(c) for c in coefficients[: len(coefficients) % 2]] + terms
        for term in terms:
            result = self.multiply_add(result, square, term)
        return result

    def product(self, x: Num, y: Num) -> tuple[Num, Num]:
        """x y as rounded value and error."""
        high = x * y
        if self.fma:
            return high, Num(math.fma(x.value, y.value, (-high).value))
        # Dekker: halves of the significands multiply exactly
        (a, b), (c, d) = _halves(x), _halves(y)
        return high, b * d - (((high - a * c) - b * c) - a * d)

    def scale(self, x: Num, n: Whole, offset: int = 0) -> Num:
        """x 2^(n + offset): rounded once where the result is subnormal, infinite where it overflows."""
        if self.ldexp:
            return self._ldexp(x, n, offset)
        first, second = _two_powers(n, x, offset)
        return x * first * second

    def scale_one_and(self, e: Num, n: Whole, offset: int = 0) -> Num:
        """(1 + e) 2^(n + offset), like `scale`; e is no smaller than -1/2, and not much larger than 1."""
        if self.ldexp:
            return self._ldexp(e + 1.0, n, offset)
        first, second = _two_powers(n, e, offset)
        return self.multiply_add(e, first, first) * second

    def _ldexp(self, x: Num, n: Whole, offset: int) -> Num:
        power = n.shifted - (format_of(x).magic_bits + n.plus - offset)
        return Num(call_intrinsic([x.type], LDEXP, [x.value, power.value]).results[0])


def _halves(x: Num) -> tuple[Num, Num]:
    spread = x * (2.0 ** ((format_of(x).fraction + 2) // 2) + 1)
    high = spread - (spread - x)
    return high, x - high


def two_sum(x: Num, y: Num) -> tuple[Num, Num]:
    """x + y as rounded value and error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def fast_two_sum(x: Num, y: Num) -> tuple[Num, Num]:
    """The same for |x| >= |y|."""
    total = x + y
    return total, y - (total - x)


def rounded(x: Num) -> Num:
    """To the nearest integer, ties to even."""
    return Num(math.roundeven(x.value))


@record
class Whole:
    """An integer n as a float, and n + plus as the low bits of `shifted`, the bits of magic + plus + n.

    With `plus` the bias of exponents, or twice as much where 2^n is made of two, powers of two are `shifted` moved up.
    """

    value: Num
    shifted: Num
    plus: int = 0


def nearest(m: Arithmetic, x: Num, factor: float, plus: int = 0) -> Whole:
    """The integer nearest to factor * x, which must be below 2^(fraction - 2); free of float-to-integer conversions.

    Those are undefined on NaN, and vector units lack them for f64.
    """
    magic = format_of(x).magic + plus
    sum_ = m.multiply_add(x, factor, magic)
    return Whole(sum_ - magic, sum_.bits, plus)


def power_of_two(n: Whole, offset: int = 0) -> Num:
    """2^(n + offset), which is no subnormal number."""
    return _with_exponent(n.shifted, format_of(n.value).bias + offset - n.plus, n.value)


def _two_powers(n: Whole, like: Num, offset: int) -> tuple[Num, Num]:
    """Two powers of two whose product is 2^(n + offset), which alone may be out of range."""
    more = 2 * format_of(like).bias - n.plus
    half = n.shifted.shift_right_logical(1)  # what is above n + plus is lost when it becomes an exponent
    return _with_exponent(half, more // 2, like), _with_exponent(n.shifted - half, more - more // 2 + offset, like)


def _with_exponent(low_bits: Num, more: int, like: Num) -> Num:
    """The float whose bits of the exponent are the low ones of an integer, and so many more."""
    bits = low_bits + more if more else low_bits
    return (bits << format_of(like).fraction).as_float()


def clamp(x: Num, low: float | None, high: float | None) -> Num:
    """x within bounds; NaN stays."""
    if high is not None:
        x = where(x > high, high, x)
    return x if low is None else where(x < low, low, x)


def with_sign_of(size: Num, sign: Num) -> Num:
    """A number without a sign of its own (+0, positive or NaN) with that of another: an instruction less than copysign."""
    return (size.bits | (sign.bits & -(1 << (size.width - 1)))).as_float()


def integer_to_float(n: Num, ty: ir.Type) -> Num:
    return Num(arith.sitofp(ty, n.value))


def nan_like(x: Num) -> Num:
    return x.lift(NAN)
