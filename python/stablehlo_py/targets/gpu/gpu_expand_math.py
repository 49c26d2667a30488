"""exp, log and tanh of f32 in GPU kernels by formula.

The other functions of the math dialect (sin, pow, f64, ...) become calls of NVIDIA's libdevice, which only the CUDA
toolkit brings; most models need none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops.expression import Num, constant, where

# ln 2 in two parts: the first has nine bits, so its product with an exponent is exact
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


class GpuExpandMath(Pass):
    """Replace exp, log and tanh of f32 in GPU kernels by polynomials and exact steps."""

    name: ClassVar[str] = "gpu-expand-math"
    anchor: ClassVar[str] = "gpu.module"

    def run(self, op: ir.Operation) -> None:
        for found in operations_named(op, *_FORMULAS):
            if isinstance(found.results[0].type, ir.F32Type):
                with ir.InsertionPoint(found), found.location:
                    _replace(found, _FORMULAS[found.name](Num(found.operands[0])).value)


def exp(x: Num) -> Num:
    """2^n exp(r), x = n ln 2 + r: a polynomial for exp(r), and 2^n in two steps so that subnormals come out right."""
    n = Num(math.roundeven((x * 1.44269504088896341).value))
    r = _fma(n, -_LN2_LOW, _fma(n, -_LN2_HIGH, x))
    p = _horner(
        r, (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
    )
    p = _fma(r * r, p, r) + 1.0
    i32 = ir.IntegerType.get_signless(32)
    # outside this range the result is 0 or infinity already; it also keeps the conversion defined
    power = Num(arith.fptosi(i32, n.maximum(-252.0).minimum(252.0).value))
    half = power >> 1
    scaled = p * _power_of_two(half) * _power_of_two(power - half)
    scaled = where(x > 88.8, float("inf"), where(x < -104.0, 0.0, scaled))
    return where(x.is_nan, x, scaled)


def log(x: Num) -> Num:
    """e ln 2 + log(m), x = 2^e m with m in [sqrt 1/2, sqrt 2): a polynomial in m - 1."""
    tiny = x < 1.17549435e-38
    bits = where(tiny, x * 8388608.0, x).bits
    exponent = where(tiny, constant(bits.type, -23), 0) + (bits.shift_right_logical(23) - 126)
    m = ((bits & 0x007F_FFFF) | 0x3F00_0000).as_float()  # in [1/2, 1)
    low = m < 0.70710678
    f = where(low, m + m, m) - 1.0
    e = Num(arith.sitofp(x.type, (exponent - where(low, constant(bits.type, 1), 0)).value))
    z = f * f
    p = _horner(
        f,
        (
            *(7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1),
            *(-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1),
        ),
    )
    y = _fma(z, -0.5, _fma(e, _LN2_LOW, p * f * z))
    y = _fma(e, _LN2_HIGH, f + y)
    y = where(x.eq(float("inf")), x, where(x.eq(0.0), float("-inf"), y))
    return where(x < 0.0, float("nan"), where(x.is_nan, x, y))


def tanh(x: Num) -> Num:
    """1 - 2 / (exp(2|x|) + 1) with the sign of x; near 0, where that cancels, an odd polynomial."""
    a = abs(x)
    z = x * x
    p = _horner(z, (-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1))
    far = 1.0 - 2.0 / (exp(a + a) + 1.0)
    return where(x.is_nan, x, where(a < 0.625, _fma(p * z, a, a), far).copysign(x))


_FORMULAS: dict[str, Callable[[Num], Num]] = {"math.exp": exp, "math.log": log, "math.tanh": tanh}


def _fma(a: Num, b: Num | float, c: Num | float) -> Num:
    return Num(math.fma(a.value, a.lift(b).value, a.lift(c).value))


def _horner(x: Num, coefficients: tuple[float, ...]) -> Num:
    """A polynomial, highest power first."""
    result = x.lift(coefficients[0])
    for c in coefficients[1:]:
        result = _fma(result, x, c)
    return result


def _power_of_two(n: Num) -> Num:
    """2^n for n in [-126, 127]."""
    return ((n + 127) << 23).as_float()


def _replace(op: ir.Operation, value: ir.Value) -> None:
    op.results[0].replace_all_uses_with(value)
    op.erase()
