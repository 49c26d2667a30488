"""The bodies of the ops in CHLO_RULES."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.core.registry import lower, scalar
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.later import Later
from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.ops import build
from stablehlo_py.ops.convert import from_bits, to_bits
from stablehlo_py.ops.elementwise import Row, register
from stablehlo_py.ops.expression import Num, where

if TYPE_CHECKING:
    from stablehlo_py.ops import complex_functions as cx
    from stablehlo_py.ops import special_functions
else:
    cx, special_functions = Later("stablehlo_py.ops.complex_functions"), Later("stablehlo_py.ops.special_functions")

_INFINITY = float("inf")


def is_inf(x: ir.Value) -> ir.Value:
    return abs(Num(x)).eq(_INFINITY).value


def is_pos_inf(x: ir.Value) -> ir.Value:
    return Num(x).eq(_INFINITY).value


def is_neg_inf(x: ir.Value) -> ir.Value:
    return Num(x).eq(-_INFINITY).value


def same(x: ir.Value) -> ir.Value:
    return x


TABLE: dict[str, Row] = {
    # angles
    "chlo.acos": Row(math.acos, complex=cx.acos),
    "chlo.acosh": Row(math.acosh, complex=cx.acosh),
    "chlo.asin": Row(math.asin, complex=cx.asin),
    "chlo.asinh": Row(math.asinh, complex=cx.asinh),
    "chlo.atan": Row(math.atan, complex=cx.atan),
    "chlo.atanh": Row(math.atanh, complex=cx.atanh),
    "chlo.cosh": Row(math.cosh, complex=cx.cosh),
    "chlo.sinh": Row(math.sinh, complex=cx.sinh),
    "chlo.tan": Row(math.tan, complex=cx.tan),
    # special functions
    "chlo.erf": Row(math.erf),
    "chlo.erfc": Row(math.erfc),
    "chlo.erf_inv": Row(special_functions.erf_inv),
    "chlo.lgamma": Row(special_functions.lgamma),
    "chlo.digamma": Row(special_functions.digamma),
    "chlo.zeta": Row(special_functions.zeta),
    "chlo.polygamma": Row(special_functions.polygamma),
    "chlo.bessel_i1e": Row(special_functions.bessel_i1e),
    # parts and products
    "chlo.conj": Row(same, same, complex=cx.conjugate),
    "chlo.square": Row(lambda x: arith.mulf(x, x), lambda x: arith.muli(x, x), complex=lambda z: cx.multiply(z, z)),
    "chlo.mulhi": Row(
        int=lambda x, y: arith.mulsi_extended(x, y)[1],
        uint=lambda x, y: arith.mului_extended(x, y)[1],
    ),
    "chlo.is_inf": Row(is_inf),
    "chlo.is_pos_inf": Row(is_pos_inf),
    "chlo.is_neg_inf": Row(is_neg_inf),
}

for _name, _row in TABLE.items():
    register(_name, _row)


@scalar("chlo.next_after")
def scalar_next_after(op: Op, x: ir.Value, y: ir.Value) -> ir.Value:
    """The next value of the element type after x towards y."""
    element = op.type.element
    start, end = Num(x), Num(y)
    bits = to_bits(element, x)
    smallest = (to_bits(element, y) & (1 << (bits.width - 1))) | 1
    away = (start < end) ^ (start < 0.0)
    stepped = where(start.eq(0.0), smallest, where(away, bits + 1, bits - 1))
    moved = Num(from_bits(element, stepped))
    return where(start.is_nan | end.is_nan, start + end, where(start.eq(end), end, moved)).value


lower.add("chlo.next_after", build.elementwise)
