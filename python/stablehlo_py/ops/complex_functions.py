"""Complex scalar functions: no overflow on the way, special values as in C's Annex G.

complex<f32> is computed in f64 and rounded once; complex<f64> calls the C library where it has the function.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable

from stablehlo_py.mlir import arith, complex, ir, math
from stablehlo_py.ops.expression import Num, polynomial, where
from stablehlo_py.ops.libm import call, call_libm
from stablehlo_py.ops.math_functions import atan2 as angle
from stablehlo_py.records import record

_INFINITY = float("inf")


@record(eq=False)
class Complex:
    """A complex scalar as its two parts."""

    re: Num
    im: Num

    def to(self, ty: ir.Type) -> Complex:
        return Complex(self.re.to(ty), self.im.to(ty))

    @property
    def value(self) -> ir.Value:
        return complex.create_(ir.ComplexType.get(self.re.type), self.re.value, self.im.value)


def parts(value: ir.Value) -> Complex:
    """The parts of a complex value."""
    return Complex(Num(complex.re(value)), Num(complex.im(value)))


def wide(function: Callable[..., Complex]) -> Callable[..., ir.Value]:
    """`function` of complex values, its arithmetic in f64 whatever the type of the operands."""

    def on_values(*values: ir.Value) -> ir.Value:
        part = ir.ComplexType(values[0].type).element_type
        return function(*(parts(v).to(ir.F64Type.get()) for v in values)).to(part).value

    on_values.__doc__ = function.__doc__
    return on_values


def from_libm(name: str) -> Callable[..., ir.Value]:
    """A function of C's <complex.h> on `double _Complex`."""

    @wide
    def function(*numbers: Complex) -> Complex:
        flat = [part.value for z in numbers for part in (z.re, z.im)]
        re, im = call_libm(name, flat, [ir.F64Type.get()] * 2)
        return Complex(Num(re), Num(im))

    return function


# --- without rounding or in the operands' own precision ---------------------------------------------------------------


def real(value: ir.Value) -> ir.Value:
    return complex.re(value)


def imag(value: ir.Value) -> ir.Value:
    return complex.im(value)


def create(re: ir.Value, im: ir.Value) -> ir.Value:
    return Complex(Num(re), Num(im)).value


def add(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    x, y = parts(lhs), parts(rhs)
    return Complex(x.re + y.re, x.im + y.im).value


def subtract(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    x, y = parts(lhs), parts(rhs)
    return Complex(x.re - y.re, x.im - y.im).value


def multiply(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """(a + bi)(c + di) = (ac - bd) + (ad + bc)i, as written."""
    x, y = parts(lhs), parts(rhs)
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re).value


def negate(value: ir.Value) -> ir.Value:
    z = parts(value)
    return Complex(-z.re, -z.im).value


def conjugate(value: ir.Value) -> ir.Value:
    z = parts(value)
    return Complex(z.re, -z.im).value


def equal(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    x, y = parts(lhs), parts(rhs)
    return (x.re.eq(y.re) & x.im.eq(y.im)).value


def not_equal(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    x, y = parts(lhs), parts(rhs)
    return (x.re.ne(y.re) | x.im.ne(y.im)).value


def is_finite(value: ir.Value) -> ir.Value:
    z = parts(value)
    return ((abs(z.re) < _INFINITY) & (abs(z.im) < _INFINITY)).value


# --- magnitude, division ----------------------------------------------------------------------------------------------


def absolute(value: ir.Value) -> ir.Value:
    """|z| without overflow; infinite when either part is, even beside a NaN."""
    z = parts(value)
    if isinstance(z.re.type, ir.F64Type):
        return _hypot(z).value
    wide = z.to(ir.F64Type.get())  # where squares of f32 neither overflow nor vanish
    size = (wide.re * wide.re + wide.im * wide.im).sqrt().to(z.re.type)
    infinite = abs(z.re).eq(_INFINITY) | abs(z.im).eq(_INFINITY)
    return where(infinite, _INFINITY, size).value


def _hypot(z: Complex) -> Num:
    return call("hypot", z.re, z.im)


def _power_of_two(exponent: Num) -> Num:
    """2**exponent for an i64 exponent in the normal range of f64."""
    return ((exponent + 1023) << 52).as_float()


def _balanced(z: Complex) -> tuple[Complex, Num]:
    """(z 2**n, n) with the larger part about 1, or at least 2**-74 where it is subnormal; infinities and NaN stay."""
    exponent = abs(z.re).maximum(abs(z.im)).bits.shift_right_logical(52) - 1023
    shift = where(exponent > 1021, exponent.lift(-1021), where(exponent < -1000, 1000, -exponent))
    scale = _power_of_two(shift)
    return Complex(z.re * scale, z.im * scale), shift


def _plain_quotient(x: Complex, y: Complex) -> Complex:
    """x / y where no square of a part overflows or vanishes."""
    size = y.re * y.re + y.im * y.im
    return Complex((x.re * y.re + x.im * y.im) / size, (x.im * y.re - x.re * y.im) / size)


def _scaled_quotient(x: Complex, y: Complex) -> Complex:
    """x / y of any size: both are brought to about 1 first, and what that took is given back in two steps."""
    near_x, of_x = _balanced(x)
    near_y, of_y = _balanced(y)
    quotient, shift = _plain_quotient(near_x, near_y), of_y - of_x
    half = shift >> 1
    first, second = _power_of_two(half), _power_of_two(shift - half)
    return Complex(quotient.re * first * second, quotient.im * first * second)


def _quotient(x: Complex, y: Complex, by: Callable[[Complex, Complex], Complex] = _scaled_quotient) -> Complex:
    """x / y by `by`; infinities and zeros as Annex G recovers them, even where only one part was lost."""
    quotient = by(x, y)
    re, im = quotient.re, quotient.im

    by_zero = y.re.eq(0.0) & y.im.eq(0.0) & ~(x.re.is_nan & x.im.is_nan)
    huge = re.lift(_INFINITY).copysign(y.re)
    x_infinite = abs(x.re).eq(_INFINITY) | abs(x.im).eq(_INFINITY)
    y_infinite = abs(y.re).eq(_INFINITY) | abs(y.im).eq(_INFINITY)
    x_finite = (abs(x.re) < _INFINITY) & (abs(x.im) < _INFINITY)
    y_finite = (abs(y.re) < _INFINITY) & (abs(y.im) < _INFINITY)
    a, b = _unit(x.re), _unit(x.im)
    u, v = _unit(y.re), _unit(y.im)
    re_special = where(
        by_zero,
        huge * x.re,
        where(
            x_infinite & y_finite,
            (a * y.re + b * y.im) * _INFINITY,
            where(y_infinite & x_finite, (x.re * u + x.im * v) * 0.0, re),
        ),
    )
    im_special = where(
        by_zero,
        huge * x.im,
        where(
            x_infinite & y_finite,
            (b * y.re - a * y.im) * _INFINITY,
            where(y_infinite & x_finite, (x.im * u - x.re * v) * 0.0, im),
        ),
    )
    return Complex(re_special, im_special)


def _unit(x: Num) -> Num:
    """1 for an infinity, else 0, with the sign of x."""
    return where(abs(x).eq(_INFINITY), x.lift(1.0), 0.0).copysign(x)


def divide(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    """x / y; squares of f32 neither overflow nor vanish in f64, so only f64 is scaled."""
    narrow = isinstance(ir.ComplexType(lhs.type).element_type, ir.F32Type)
    return wide(lambda x, y: _quotient(x, y, _plain_quotient if narrow else _scaled_quotient))(lhs, rhs)


@wide
def sign(z: Complex) -> Complex:
    """z / |z|; zero stays zero, NaN where a part is one."""
    near, _ = _balanced(z)  # |z| itself may overflow
    magnitude = _hypot(near)
    zero = magnitude.eq(0.0)
    nan = z.re.is_nan | z.im.is_nan
    bad = magnitude.lift(0.0) / 0.0
    return Complex(
        where(nan, bad, where(zero, z.re, near.re / magnitude)),
        where(nan, bad, where(zero, z.im, near.im / magnitude)),
    )


# --- exponentials and logarithms --------------------------------------------------------------------------------------

_libm_exponential = from_libm("cexp")


def exponential(value: ir.Value) -> ir.Value:
    """exp(a + bi) = e^a cos b + i e^a sin b; of complex<f32> with e^a in f64, which does not overflow where a part is finite.

    As in C, b = 0 keeps a result real, whatever a; for a = -inf it is zero and for a = inf infinite, whatever b.
    """
    if isinstance(ir.ComplexType(value.type).element_type, ir.F64Type):
        return _libm_exponential(value)
    z, f64 = parts(value), ir.F64Type.get()
    # sine and cosine of f32 are rounded correctly, in half the time of those of f64
    sin, cos = (Num(function(z.im.value)).to(f64) for function in (math.sin, math.cos))
    grown = Num(math.exp(z.re.to(f64).value))
    endless = z.im.is_nan | abs(z.im).eq(_INFINITY)
    vanishes = endless & z.re.eq(-_INFINITY)
    re = where(vanishes, 0.0, where(endless & z.re.eq(_INFINITY), _INFINITY, grown * cos))
    im = where(vanishes, 0.0, where(z.im.eq(0.0), z.im.to(f64), grown * sin))
    return Complex(re, im).to(z.re.type).value


log = from_libm("clog")
sqrt = from_libm("csqrt")
tanh = from_libm("ctanh")
tan = from_libm("ctan")
acos = from_libm("cacos")
acosh = from_libm("cacosh")
asin = from_libm("casin")
asinh = from_libm("casinh")
atan = from_libm("catan")
atanh = from_libm("catanh")


# The series of sinh, highest power first.
_SINH = tuple(1 / python_math.factorial(n) for n in range(19, 0, -2))
_COSH_BEYOND = 700.0  # from here on exp(y) is taken in two steps, since a small sine may bring the product back


@record(eq=False)
class _Sum:
    """(high + low) * scale, where high + low has more digits than one number."""

    high: Num
    low: Num
    scale: Num


def _hyperbolic(y: Num) -> tuple[_Sum, _Sum]:
    """sinh y and cosh y; the scale is 1, or a large number where the functions themselves would overflow."""
    size = abs(y)
    large = size > _COSH_BEYOND
    scale = where(large, y.lift(python_math.exp(_COSH_BEYOND)), 1.0)
    grown = Num(math.exp(where(large, size - _COSH_BEYOND, size).value)) * 0.5
    shrunk = where(large, 0.0, 0.25 / grown)
    difference, sum_ = grown - shrunk, grown + shrunk
    lost_of_difference = (grown - difference) - shrunk
    lost_of_sum = shrunk - (sum_ - grown)
    small = size < 1.0
    series = y * (y * y) * polynomial(y * y, _SINH[:-1])
    sinh = _Sum(
        where(small, y, difference.copysign(y)),
        where(small, series, where(y < 0.0, -lost_of_difference, lost_of_difference)),
        scale,
    )
    return sinh, _Sum(sum_, lost_of_sum, scale)


def _sin_cos(x: Num) -> tuple[Num, Num]:
    return Num(math.sin(x.value)), Num(math.cos(x.value))


def _times(trigonometric: Num, hyperbolic: _Sum, *, leads_at: Num | None = None) -> Num:
    """The product; zero times infinity is zero.

    leads_at: the argument of the hyperbolic function, in the part that leads: at an infinity it is infinite beside NaN.
    """
    high = trigonometric * hyperbolic.high
    rest = _fused(trigonometric, hyperbolic.high, -high) + trigonometric * hyperbolic.low
    product = where(abs(high) < _INFINITY, high + rest, high) * hyperbolic.scale
    if leads_at is not None:
        product = where(trigonometric.is_nan & abs(leads_at).eq(_INFINITY), hyperbolic.high, product)
    zero = trigonometric.eq(0.0) | hyperbolic.high.eq(0.0)
    return where(zero, high.lift(0.0).copysign(trigonometric) * high.lift(1.0).copysign(hyperbolic.high), product)


@wide
def sine(z: Complex) -> Complex:
    """sin(a + bi) = sin a cosh b + i cos a sinh b."""
    sin, cos = _sin_cos(z.re)
    sinh, cosh = _hyperbolic(z.im)
    return Complex(_times(sin, cosh), _times(cos, sinh, leads_at=z.im))


@wide
def cosine(z: Complex) -> Complex:
    """cos(a + bi) = cos a cosh b - i sin a sinh b."""
    sin, cos = _sin_cos(z.re)
    sinh, cosh = _hyperbolic(z.im)
    return Complex(_times(cos, cosh, leads_at=z.im), -_times(sin, sinh))


@wide
def sinh(z: Complex) -> Complex:
    """sinh(a + bi) = sinh a cos b + i cosh a sin b."""
    sin, cos = _sin_cos(z.im)
    sinh_, cosh_ = _hyperbolic(z.re)
    return Complex(_times(cos, sinh_, leads_at=z.re), _times(sin, cosh_))


@wide
def cosh(z: Complex) -> Complex:
    """cosh(a + bi) = cosh a cos b + i sinh a sin b."""
    sin, cos = _sin_cos(z.im)
    sinh_, cosh_ = _hyperbolic(z.re)
    return Complex(_times(cos, cosh_, leads_at=z.re), _times(sin, sinh_))


def _exp(z: Complex) -> Complex:
    re, im = call_libm("cexp", [z.re.value, z.im.value], [ir.F64Type.get()] * 2)
    return Complex(Num(re), Num(im))


def _log(z: Complex) -> Complex:
    re, im = call_libm("clog", [z.re.value, z.im.value], [ir.F64Type.get()] * 2)
    return Complex(Num(re), Num(im))


def _product(x: Complex, y: Complex) -> Complex:
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


@wide
def exponential_minus_one(z: Complex) -> Complex:
    """expm1(a + bi) = (expm1(a) cos b - 2 sin(b/2)^2) + e^a sin(b) i."""
    cos, half = Num(math.cos(z.im.value)), Num(math.sin((z.im * 0.5).value))
    grown = Num(math.expm1(z.re.value))
    whole = _exp(z)
    # beyond 1 nothing cancels and the exponential has the special values right
    small = abs(z.re) < 1.0
    re = where(small, grown * cos - half * half * 2.0, whole.re - 1.0)
    return Complex(re, whole.im)


@wide
def log_plus_one(z: Complex) -> Complex:
    """log(1 + z) = log1p(a (2 + a) + b^2) / 2 + i atan2(b, 1 + a) where |1 + z| is about 1, elsewhere log of 1 + z.

    Where |1 + z|^2 is below 1/2, 1 + a is exact to half an ULP and the excess over 1 would cancel.
    """
    one_plus = Complex(z.re + 1.0, z.im)
    excess = _excess(z.re, z.im)
    near = (abs(z.re) < 3.0) & (abs(z.im) < 3.0) & (excess > -0.5)
    re = where(near, Num(math.log1p(excess.value)) * 0.5, _log(one_plus).re)
    return Complex(re, Num(angle(z.im.value, one_plus.re.value)))


def _excess(a: Num, b: Num) -> Num:
    """a^2 + 2a + b^2 with the rounding errors of the products and sums added back."""
    a2, b2 = a * a, b * b
    a2_error, b2_error = _fused(a, a, -a2), _fused(b, b, -b2)
    first, first_error = _two_sum(a * 2.0, b2)
    second, second_error = _two_sum(first, a2)
    return second + (first_error + second_error + a2_error + b2_error)


def _fused(x: Num, y: Num, z: Num) -> Num:
    return Num(math.fma(x.value, y.value, z.value))


def _two_sum(x: Num, y: Num) -> tuple[Num, Num]:
    """x + y and its rounding error."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


@wide
def rsqrt(z: Complex) -> Complex:
    """1 / sqrt(z)."""
    re, im = call_libm("csqrt", [z.re.value, z.im.value], [ir.F64Type.get()] * 2)
    return _quotient(Complex(z.re.lift(1.0), z.re.lift(0.0)), Complex(Num(re), Num(im)))


@wide
def cbrt(z: Complex) -> Complex:
    """r = exp(log(z) / 3) and one step of Newton, r - (r^3 - z) / (3 r^2); zero at zero."""
    logarithm = _log(z)
    root = _exp(Complex(logarithm.re / 3.0, logarithm.im / 3.0))
    rest = _quotient(z, _product(root, root))  # about r itself: squares of roots are far from the ends of the range
    closer = Complex(root.re + (rest.re - root.re) / 3.0, root.im + (rest.im - root.im) / 3.0)
    usual = (_largest(z) > 0.0) & (_largest(z) < _INFINITY)
    zero = z.re.eq(0.0) & z.im.eq(0.0)
    return Complex(
        where(zero, 0.0, where(usual, closer.re, root.re)), where(zero, z.im, where(usual, closer.im, root.im))
    )


@wide
def logistic(z: Complex) -> Complex:
    """1 / (1 + exp(-z)), and exp(z) / (1 + exp(z)) left of zero, where exp(-z) would overflow."""
    left = z.re < 0.0
    small = _exp(Complex(-abs(z.re), where(left, z.im, -z.im)))
    above = Complex(where(left, small.re, 1.0), where(left, small.im, 0.0))
    return _quotient(above, Complex(small.re + 1.0, small.im))


def _times_exactly_zero(x: Num, y: Num) -> Num:
    """x y, where a zero is exact: times an infinity or a NaN it is zero."""
    zero = x.eq(0.0) | y.eq(0.0)
    return where(zero, x.lift(0.0).copysign(x) * x.lift(1.0).copysign(y), x * y)


@wide
def power(x: Complex, y: Complex) -> Complex:
    """exp(y log(x)) as C99 has it, where a part that is zero is exact: a real y, or an x > 0, adds no NaN.

    x ** 0 is 1, and 0 ** y is 0 where y has a positive real part.
    """
    log = _log(x)
    result = _exp(
        Complex(
            _times_exactly_zero(y.re, log.re) - _times_exactly_zero(y.im, log.im),
            _times_exactly_zero(y.re, log.im) + _times_exactly_zero(y.im, log.re),
        )
    )
    x_zero = x.re.eq(0.0) & x.im.eq(0.0)
    y_zero = y.re.eq(0.0) & y.im.eq(0.0)
    vanishes = x_zero & (y.re > 0.0)
    re = where(y_zero, 1.0, where(vanishes, 0.0, result.re))
    return Complex(re, where(y_zero | vanishes, 0.0, result.im))


def _sum_of_products(a: Num, b: Num, c: Num, d: Num) -> Num:
    """a b + c d with the right sign: what the products lose in rounding is added last."""
    first, second = a * b, c * d
    return (first + second) + (_fused(a, b, -first) + _fused(c, d, -second))


@wide
def atan2(y: Complex, x: Complex) -> Complex:
    """-i log((x + iy) / sqrt(x^2 + y^2)).

    With p = x + iy, m = x - iy and arg p, arg m within (-pi, pi], that is (arg p - arg m) / 2 + i log(|m| / |p|) / 2,
    plus pi where the arguments of p and m add up to more than pi either way, since the square root then has the other sign.
    Modulo pi the same is atan(y / x), which loses no digits where y is small.
    """
    _, shift = _balanced(Complex(_largest(x), _largest(y)))
    scale = _power_of_two(shift)
    near_x, near_y = Complex(x.re * scale, x.im * scale), Complex(y.re * scale, y.im * scale)
    p = Complex(near_x.re - near_y.im, near_x.im + near_y.re)
    m = Complex(near_x.re + near_y.im, near_x.im - near_y.re)
    arg_p, arg_m = (Num(angle(z.im.value, z.re.value)) for z in (p, m))
    half = (arg_p - arg_m) * 0.5
    # arg p + arg m leaves (-pi, pi]: both have one sign, and the sine of their sum, the imaginary part of x^2 + y^2,
    # has the other; a zero has the sign that it gets in the formula as written
    sine = _sum_of_products(p.re, m.im, p.im, m.re)
    as_written = near_x.re * near_x.im + near_y.re * near_y.im
    below = where(sine.eq(0.0), as_written, sine).bits < 0
    lower = p.im.bits < 0
    both_right, both_left = (p.re > 0.0) & (m.re > 0.0), (p.re < 0.0) & (m.re < 0.0)
    turned = lower.eq(m.im.bits < 0) & (both_left | (lower.ne(below) & ~both_right))
    pi = half.lift(python_math.pi)
    unit_x, unit_y = _balanced(x)[0], _balanced(y)[0]
    lean = _sum_of_products(unit_x.re, unit_y.re, unit_x.im, unit_y.im)  # has the sign of arg p - arg m
    behind = where(lean > 0.0, half - pi, where(lean < 0.0, half + pi, pi.copysign(p.im)))
    about = where(turned, behind, half)
    size_p, size_m = _hypot(p), _hypot(m)
    growth = (Num(math.log(size_m.value)) - Num(math.log(size_p.value))) * 0.5
    growth = where(size_m.eq(size_p), 0.0, growth)

    quotient = _quotient(y, x)
    re, im = (Num(v) for v in call_libm("catan", [quotient.re.value, quotient.im.value], [ir.F64Type.get()] * 2))
    small = _largest(y) < _largest(x) * 0.25
    turns = Num(math.roundeven((about / pi).value))
    return Complex(where(small, re + turns * pi, about), where(small, im, growth))


def _largest(z: Complex) -> Num:
    return abs(z.re).maximum(abs(z.im))


def _ordered(lhs: ir.Value, rhs: ir.Value, *, larger: bool) -> ir.Value:
    """The larger or smaller of two complex numbers in lexicographic order of their parts; NaN wins."""
    x, y = parts(lhs), parts(rhs)
    ahead = (x.re > y.re) | (x.re.eq(y.re) & (x.im > y.im))
    first = (ahead if larger else ~ahead) | x.re.is_nan | x.im.is_nan
    first = first & ~((y.re.is_nan | y.im.is_nan) & ~(x.re.is_nan | x.im.is_nan))
    return arith.select(first.value, lhs, rhs)


def maximum(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return _ordered(lhs, rhs, larger=True)


def minimum(lhs: ir.Value, rhs: ir.Value) -> ir.Value:
    return _ordered(lhs, rhs, larger=False)
