"""Floats below 32 bits: from storage to f32 and back, rounding to nearest even.

f16 goes through the conversions of the machine. bf16 is done on the bits: the AVX-512 instruction for it flushes
subnormals. The 8-, 6- and 4-bit kinds are done on the bits for any split into exponent and mantissa.
"""

from __future__ import annotations

from stablehlo_py.core.types import ElementType
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import arith, ir


def widen(element: ElementType, stored: ir.Value) -> ir.Value:
    """Storage to f32, exactly."""
    if element.name == "f16":
        return arith.extf(ir.F32Type.get(), stored)
    if element.name == "bf16":
        i32 = ir.IntegerType.get_signless(32)
        bits = arith.extui(i32, arith.bitcast(ir.IntegerType.get_signless(16), stored))
        return arith.bitcast(ir.F32Type.get(), arith.shli(bits, arith.constant(i32, 16)))
    raise UnsupportedOp("stablehlo.convert", f"from {element.name}")


def narrow(element: ElementType, value: ir.Value) -> ir.Value:
    """f32 to storage, rounded to nearest even."""
    if element.name == "f16":
        return arith.truncf(ir.F16Type.get(), value)
    if element.name == "bf16":
        i16, i32 = ir.IntegerType.get_signless(16), ir.IntegerType.get_signless(32)

        def number(n: int) -> ir.Value:
            return arith.constant(i32, n)

        bits = arith.bitcast(i32, value)
        odd = arith.andi(arith.shrui(bits, number(16)), number(1))
        up = arith.shrui(arith.addi(arith.addi(bits, number(0x7FFF)), odd), number(16))
        quiet = arith.ori(arith.shrui(bits, number(16)), number(0x40))  # a NaN keeps its sign and stays a NaN
        is_nan = arith.cmpf(arith.CmpFPredicate.UNO, value, value)
        return arith.bitcast(ir.BF16Type.get(), arith.trunci(i16, arith.select(is_nan, quiet, up)))
    raise UnsupportedOp("stablehlo.convert", f"to {element.name}")
