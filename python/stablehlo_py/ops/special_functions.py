"""Special functions of real numbers, computed in f64 whatever the operand: gamma, zeta, error and Bessel functions.

Each is free of branches (both sides of a choice are computed), so that loops around it can be vectorised.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable

from stablehlo_py.mlir import ir, math
from stablehlo_py.ops.expression import Num, constant, polynomial, polynomial_by_pairs, where
from stablehlo_py.ops.libm import call

_PI = python_math.pi
_INFINITY, _NAN = float("inf"), float("nan")


def in_f64(function: Callable[..., Num]) -> Callable[..., ir.Value]:
    """`function` with its arithmetic in f64, rounded to the type of the operands."""

    def on_values(*values: ir.Value) -> ir.Value:
        return function(*(Num(v).to_f64() for v in values)).to(values[0].type).value

    on_values.__doc__ = function.__doc__
    return on_values


def _nan() -> Num:
    return constant(ir.IntegerType.get_signless(64), 0x7FF8000000000000).as_float()


def _log(x: Num) -> Num:
    return Num(math.log(x.value))


def _exp(x: Num) -> Num:
    return Num(math.exp(x.value))


def _pow(x: Num, y: Num) -> Num:
    return Num(math.powf(x.value, y.value))


@in_f64
def lgamma(x: Num) -> Num:
    """log |gamma(x)|."""
    return call("lgamma", x)


# --- digamma: rational approximation around its positive root, asymptotic series (coefficients: Boost.Math) -----------

_ROOT = (1569415565 / 2.0**30, (381566830 / 2.0**30) / 2.0**30, 0.9016312093258695918615325266959189453125e-19)
_NEAR_ROOT = 0.99558162689208984
_NEAR_NUMERATOR = (
    -0.0020713321167745952,
    -0.045251321448739056,
    -0.28919126444774784,
    -0.65031853770896507,
    -0.32555031186804491,
    0.25479851061131551,
)
_NEAR_DENOMINATOR = (
    -0.55789841321675513e-6,
    0.0021284987017821144,
    0.054151797245674225,
    0.43593529692665969,
    1.4606242909763515,
    2.0767117023730469,
    1.0,
)
# B(2k) / 2k for k = 8 .. 1
_ASYMPTOTIC = (
    -3617 / 8160,
    1 / 12,
    -691 / 32760,
    1 / 132,
    -1 / 240,
    1 / 252,
    -1 / 120,
    1 / 12,
)
_LARGE = 10


def _digamma(x: Num) -> Num:
    """psi(x), the derivative of log gamma; NaN at 0 and the negative integers."""
    # psi(x) = psi(1 - x) - pi / tan(pi x)
    reflected = x < 0.5
    y = where(reflected, 1.0 - x, x)
    fraction = x - Num(math.roundeven(x.value))
    reflection = _PI / Num(math.tan((fraction * _PI).value))
    # psi(y) = psi(y - 1) + 1 / (y - 1) brings y < 10 to [1, 2]
    small, shift = y, y.lift(0.0)
    for _ in range(_LARGE - 2):
        above = small > 2.0
        lower = small - 1.0
        shift = where(above, shift + 1.0 / lower, shift)
        small = where(above, lower, small)
    below = small < 1.0
    shift = where(below, shift - 1.0 / small, shift)
    small = where(below, small + 1.0, small)
    offset = small - _ROOT[0] - _ROOT[1] - _ROOT[2]
    ratio = polynomial(small - 1.0, _NEAR_NUMERATOR) / polynomial(small - 1.0, _NEAR_DENOMINATOR)
    near = offset * _NEAR_ROOT + offset * ratio + shift
    inverse = 1.0 / (y * y)
    far = _log(y) - 0.5 / y - inverse * polynomial(inverse, _ASYMPTOTIC)
    positive = where(y < float(_LARGE), near, far)
    result = where(reflected, positive - reflection, positive)
    pole = fraction.eq(0.0) & (x <= 0.0)
    return where(pole | (abs(x).eq(_INFINITY) & reflected), _nan(), result)


digamma = in_f64(_digamma)

# --- Hurwitz zeta: Euler-Maclaurin, 10 terms and 12 corrections -------------------------------------------------------

_TERMS = 10
# B(2k) / (2k)!, k = 1 .. 12
_CORRECTIONS = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
    77683 / 14101100039391805440000,
    -236364091 / 1693824136731743669452800000,
)


def _zeta_of_positive(x: Num, q: Num) -> Num:
    """sum over k >= 0 of (q + k) ** -x for x > 1 and q > 0."""
    total = _pow(q, -x)
    a = q
    for _ in range(_TERMS - 1):
        a = a + 1.0
        total = total + _pow(a, -x)
    a = a + 1.0
    power = _pow(a, -x)
    tail = power * a / (x - 1.0) + power * 0.5
    # the k-th correction is B(2k)/(2k)! x (x+1) ... (x+2k-2) a ** (-x-2k+1)
    factor = x / a
    inverse = 1.0 / (a * a)
    corrections = factor * _CORRECTIONS[0]
    for k, c in enumerate(_CORRECTIONS[1:], start=1):
        factor = factor * (x + (2.0 * k - 1.0)) * (x + 2.0 * k) * inverse
        corrections = corrections + factor * c
    # a power that vanished must not meet a factor that overflowed
    result = total + tail + where(power.eq(0.0), 0.0, power * corrections)
    return where(q.eq(_INFINITY), 0.0, result)


def _zeta(x: Num, q: Num) -> Num:
    """sum over k >= 0 of (q + k) ** -x; infinite at x == 1, NaN below, infinite at the poles q = 0, -1, ...

    For q < 0 and a whole x, with f the fraction of -q: the terms below zero are those of -q, -q - 1, ... down to f, so
    zeta(x, q) = zeta(x, 1 - f) + (-1)**x (zeta(x, f) - zeta(x, 1 - q)).
    """
    negative = q < 0.0
    fraction = -q - (-q).floor()
    half = x * 0.5
    sign = where(half.floor().eq(half), x.lift(1.0), -1.0)
    below = _zeta_of_positive(x, where(negative, fraction, 1.0)) - _zeta_of_positive(x, where(negative, 1.0 - q, 1.0))
    above = _zeta_of_positive(x, where(negative, 1.0 - fraction, q))
    result = where(negative, above + sign * below, above)
    pole = (q <= 0.0) & q.floor().eq(q)
    undefined = (x < 1.0) | x.is_nan | q.is_nan | (negative & x.floor().ne(x))
    result = where(pole, _INFINITY, result)
    return where(undefined, _nan(), where(x.eq(1.0), _INFINITY, result))


zeta = in_f64(_zeta)


@in_f64
def polygamma(n: Num, x: Num) -> Num:
    """The n-th derivative of digamma: (-1)**(n + 1) n! zeta(n + 1, x); NaN unless n is a natural number."""
    odd = (n * 0.5).floor().ne(n * 0.5)
    size = call("tgamma", n + 1.0) * _zeta(n + 1.0, x)
    derivative = where(odd, size, -size)
    result = where(n.eq(0.0), _digamma(x), derivative)
    return where((n < 0.0) | n.floor().ne(n), _nan(), result)


# --- erf_inv: polynomials in w = -log(1 - x^2), and in f64 one step of Newton ---
# M. Giles, "Approximating the erfinv function"

_ERF_INV_CENTER = (
    -3.6444120640178196996e-21,
    -1.685059138182016589e-19,
    1.2858480715256400167e-18,
    1.115787767802518096e-17,
    -1.333171662854620906e-16,
    2.0972767875968561637e-17,
    6.6376381343583238325e-15,
    -4.0545662729752068639e-14,
    -8.1519341976054721522e-14,
    2.6335093153082322977e-12,
    -1.2975133253453532498e-11,
    -5.4154120542946279317e-11,
    1.051212273321532285e-09,
    -4.1126339803469836976e-09,
    -2.9070369957882005086e-08,
    4.2347877827932403518e-07,
    -1.3654692000834678645e-06,
    -1.3882523362786468719e-05,
    0.0001867342080340571352,
    -0.00074070253416626697512,
    -0.0060336708714301490533,
    0.24015818242558961693,
    1.6536545626831027356,
)
_ERF_INV_MIDDLE = (
    2.2137376921775787049e-09,
    9.0756561938885390979e-08,
    -2.7517406297064545428e-07,
    1.8239629214389227755e-08,
    1.5027403968909827627e-06,
    -4.013867526981545969e-06,
    2.9234449089955446044e-06,
    1.2475304481671778723e-05,
    -4.7318229009055733981e-05,
    6.8284851459573175448e-05,
    2.4031110387097893999e-05,
    -0.0003550375203628474796,
    0.00095328937973738049703,
    -0.0016882755560235047313,
    0.0024914420961078508066,
    -0.0037512085075692412107,
    0.005370914553590063617,
    1.0052589676941592334,
    3.0838856104922207635,
)
_ERF_INV_TAIL = (
    -2.7109920616438573243e-11,
    -2.5556418169965252055e-10,
    1.5076572693500548083e-09,
    -3.7894654401267369937e-09,
    7.6157012080783393804e-09,
    -1.4960026627149240478e-08,
    2.9147953450901080826e-08,
    -6.7711997758452339498e-08,
    2.2900482228026654717e-07,
    -9.9298272942317002539e-07,
    4.5260625972231537039e-06,
    -1.9681778105531670567e-05,
    7.5995277030017761139e-05,
    -0.00021503011930044477347,
    -0.00013871931833623122026,
    1.0103004648645343977,
    4.8499064014085844221,
)


# What follows is printed by tools/fit_polynomials.py --special.
# erf_inv(x) / x in w - 3.125, w = -log(1 - x^2) <= 6.25, for results in f32: error 2^-27.0
_ERF_INV_CENTER_SHORT = (
    6.538113939136281e-10,
    -4.598471381456193e-09,
    -2.4548048926931187e-08,
    4.2545426026663336e-07,
    -1.3896388963985373e-06,
    -1.3885414773540106e-05,
    0.0001867944811237976,
    -0.0007407034281641245,
    -0.006033729761838913,
    0.24015818536281586,
    1.6536545753479004,
)

# the same in sqrt(w) - 3.25, 6.25 <= w <= 15.96: error 2^-25.3
_ERF_INV_MIDDLE_SHORT = (
    -2.673111157491803e-05,
    -0.0002584747562650591,
    0.000967587111517787,
    -0.0017302215564996004,
    0.002492777770385146,
    -0.00374454353004694,
    0.00537004042416811,
    1.0052586793899536,
    3.083885669708252,
)


def erf_inv(value: ir.Value) -> ir.Value:
    """y with erf(y) == x; infinite at -1 and 1, NaN beyond."""
    x = Num(value)
    size = abs(x)
    result = _erf_inv_of_f64(size) if isinstance(value.type, ir.F64Type) else _erf_inv_short(size)
    return where(size.eq(1.0), _INFINITY, result).copysign(x).value


def _erf_inv_short(size: Num) -> Num:
    """erf_inv of an f32 below 1.

    1 - x^2 is (1 - |x|) (1 + |x|), of which the first is exact from one half on, where w needs it. w is at most 15.95.
    """
    w = -Num(math.log(((1.0 - size) * (size + 1.0)).value))
    center = polynomial_by_pairs(w - 3.125, _ERF_INV_CENTER_SHORT)
    middle = polynomial_by_pairs(w.sqrt() - 3.25, _ERF_INV_MIDDLE_SHORT)
    return where(w < 6.25, center, middle) * size


def _erf_inv_of_f64(size: Num) -> Num:
    """erf_inv of an f64 below 1: the polynomials are off by some units in the last place, which one step of Newton repairs."""
    w = -Num(math.log1p((-(size * size)).value))
    root = w.sqrt()
    center = polynomial(w - 3.125, _ERF_INV_CENTER)
    middle = polynomial(root - 3.25, _ERF_INV_MIDDLE)
    tail = polynomial(root - 5.0, _ERF_INV_TAIL)
    guess = where(w < 6.25, center, where(w < 16.0, middle, tail)) * size
    # 1 - |x| is exact above one half, where erf itself would cancel
    error = where(
        size > 0.5,
        (1.0 - size) - Num(math.erfc(guess.value)),
        Num(math.erf(guess.value)) - size,
    )
    return where(size > 1.0, _nan(), guess - error * (python_math.sqrt(_PI) / 2) * _exp(guess * guess))


# --- exponentially scaled modified Bessel function (Chebyshev series: Cephes, i1.c) -----------------------------------

_I1E_SMALL = (
    2.77791411276104639959e-18,
    -2.11142121435816608115e-17,
    1.55363195773620046921e-16,
    -1.10559694773538630805e-15,
    7.60068429473540693410e-15,
    -5.04218550472791168711e-14,
    3.22379336594557470981e-13,
    -1.98397439776494371520e-12,
    1.17361862988909016308e-11,
    -6.66348972350202774223e-11,
    3.62559028155211703701e-10,
    -1.88724975172282928790e-9,
    9.38153738649577178388e-9,
    -4.44505912879632808065e-8,
    2.00329475355213526229e-7,
    -8.56872026469545474066e-7,
    3.47025130813767847674e-6,
    -1.32731636560394358279e-5,
    4.78156510755005422638e-5,
    -1.61760815825896745588e-4,
    5.12285956168575772895e-4,
    -1.51357245063125314899e-3,
    4.15642294431288815669e-3,
    -1.05640848946261981558e-2,
    2.47264490306265168283e-2,
    -5.29459812080949914269e-2,
    1.02643658689847095384e-1,
    -1.76416518357834055153e-1,
    2.52587186443633654823e-1,
)
_I1E_LARGE = (
    7.51729631084210481353e-18,
    4.41434832307170791151e-18,
    -4.65030536848935832153e-17,
    -3.20952592199342395980e-17,
    2.96262899764595013876e-16,
    3.30820231092092828324e-16,
    -1.88035477551078244854e-15,
    -3.81440307243700780478e-15,
    1.04202769841288027642e-14,
    4.27244001671195135429e-14,
    -2.10154184277266431302e-14,
    -4.08355111109219731823e-13,
    -7.19855177624590851209e-13,
    2.03562854414708950722e-12,
    1.41258074366137813316e-11,
    3.25260358301548823856e-11,
    -1.89749581235054123450e-11,
    -5.58974346219658380687e-10,
    -3.83538038596423702205e-9,
    -2.63146884688951950684e-8,
    -2.51223623787020892529e-7,
    -3.88256480887769039346e-6,
    -1.10588938762623716291e-4,
    -9.76109749136146840777e-3,
    7.78576235018280120474e-1,
)


def _chebyshev(x: Num, coefficients: tuple[float, ...]) -> Num:
    """Clenshaw's recurrence for a Chebyshev series in x / 2, highest order first, the last counted half."""
    b0 = b1 = b2 = x.lift(0.0)
    for c in coefficients:
        b0, b1, b2 = x * b0 - b1 + c, b0, b1
    return (b0 - b2) * 0.5


@in_f64
def bessel_i1e(x: Num) -> Num:
    """exp(-|x|) I1(x)."""
    size = abs(x)
    small = _chebyshev(size * 0.5 - 2.0, _I1E_SMALL) * size
    large = _chebyshev(32.0 / size - 2.0, _I1E_LARGE) / size.sqrt()
    result = where(size <= 8.0, small, where(size.eq(_INFINITY), 0.0, large))
    return where(x < 0.0, -result, result)
