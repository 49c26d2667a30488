"""Floats below 32 bits: from storage to f32 and back, rounding to nearest even.

f16 goes through the conversions of the machine. bf16 is done on the bits: the AVX-512 instruction for it flushes
subnormals. The 8-, 6- and 4-bit kinds are done on the bits for any split into exponent and mantissa.
"""

from __future__ import annotations

from stablehlo_py.core.types import ElementType
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops.expression import Num, where
from stablehlo_py.records import record


@record
class Format:
    """A sign bit, `exponent` bits and `mantissa` bits; a value is 1.m * 2**(e - bias), or 0.m * 2**(1 - bias).

    specials: what encodes no number. `ieee`: the largest exponent is infinity and NaNs. `fn`: only all ones is NaN.
    `fnuz`: only the pattern of -0 is NaN. `none`: everything is a number, and what is too large becomes the largest.
    """

    exponent: int
    mantissa: int
    bias: int
    specials: str

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.exponent + self.mantissa)

    @property
    def infinity(self) -> int:
        return ((1 << self.exponent) - 1) << self.mantissa

    @property
    def largest(self) -> int:
        """The bits of the largest finite value."""
        return {"ieee": self.infinity - 1, "fn": self.sign - 2}.get(self.specials, self.sign - 1)

    @property
    def nan(self) -> int:
        """The NaN that conversions give, without a sign."""
        return {"ieee": self.infinity | 1 << (self.mantissa - 1), "fn": self.sign - 1}.get(self.specials, self.sign)


FORMATS = {
    "f8E3M4": Format(3, 4, 3, "ieee"),
    "f8E4M3": Format(4, 3, 7, "ieee"),
    "f8E4M3B11FNUZ": Format(4, 3, 11, "fnuz"),
    "f8E4M3FN": Format(4, 3, 7, "fn"),
    "f8E4M3FNUZ": Format(4, 3, 8, "fnuz"),
    "f8E5M2": Format(5, 2, 15, "ieee"),
    "f8E5M2FNUZ": Format(5, 2, 16, "fnuz"),
    "f6E2M3FN": Format(2, 3, 1, "none"),
    "f6E3M2FN": Format(3, 2, 3, "none"),
    "f4E2M1FN": Format(2, 1, 1, "none"),
}
_F32_MANTISSA, _F32_BIAS, _F32_INFINITY, _F32_NAN = 23, 127, 0x7F800000, 0x7FC00000


def widen(element: ElementType, stored: ir.Value) -> ir.Value:
    """Storage to f32, exactly."""
    if element.name == "f16":
        return arith.extf(ir.F32Type.get(), stored)
    if element.name == "bf16":
        return (Num(stored).resize(32) << 16).as_float().value
    bits = Num(stored).resize(32)
    if element.name == "f8E8M0FNU":
        return _widen_exponent(bits).value
    return _widen(FORMATS[element.name], bits).value


def narrow(element: ElementType, value: ir.Value) -> ir.Value:
    """f32 or f64 to storage, rounded to nearest even, once."""
    x = Num(value)
    if isinstance(x.type, ir.F64Type):
        x = round_to_odd(x)
    if element.name == "f16":
        return arith.truncf(ir.F16Type.get(), x.value)
    if element.name == "bf16":
        return _narrow_bf16(x).resize(16).value
    if element.name == "f8E8M0FNU":
        return _narrow_exponent(x).resize(8).value
    return _narrow(FORMATS[element.name], x).resize(8).value


def round_to_odd(wide: Num) -> Num:
    """f64 to f32 such that a second rounding to at most 22 bits gives what a single one would.

    Cut off towards zero; where that loses something, the last bit is set.
    """
    near = wide.to(ir.F32Type.get())
    back = near.to_f64()
    bits = near.bits
    cut = where(abs(back) > abs(wide), bits - 1, bits)
    return where(back.eq(wide) | wide.is_nan, near, (cut | 1).as_float())


def _narrow_bf16(x: Num) -> Num:
    bits = x.bits
    odd = bits.shift_right_logical(16) & 1
    up = (bits + 0x7FFF + odd).shift_right_logical(16)
    quiet = bits.shift_right_logical(16) | 0x40  # a NaN keeps its sign and stays a NaN
    return where(x.is_nan, quiet, up)


def _widen(form: Format, bits: Num) -> Num:
    """The value of the bits (i32, zero-extended)."""
    magnitude = bits & (form.sign - 1)
    shift = _F32_MANTISSA - form.mantissa
    normal = (magnitude << shift) + ((_F32_BIAS - form.bias) << _F32_MANTISSA)
    # below the smallest normal the value is the integer times a power of two
    integer = Num(arith.uitofp(ir.F32Type.get(), magnitude.value))
    subnormal = (integer * 2.0 ** (1 - form.bias - form.mantissa)).bits
    result = where(magnitude.below(1 << form.mantissa), subnormal, normal)
    if form.specials == "ieee":
        result = where(magnitude.below(form.infinity), result, (magnitude << shift) | _F32_INFINITY)
    if form.specials == "fn":
        result = where(magnitude.eq(form.sign - 1), _F32_NAN, result)
    result = result | ((bits & form.sign) << (31 - form.exponent - form.mantissa))
    if form.specials == "fnuz":
        result = where(bits.eq(form.sign), _F32_NAN, result)
    return result.as_float()


def _narrow(form: Format, x: Num) -> Num:
    """The bits (i32) of x rounded to the format."""
    bits = x.bits
    magnitude = bits & 0x7FFFFFFF
    sign = bits.shift_right_logical(31) << (form.exponent + form.mantissa)
    shift = _F32_MANTISSA - form.mantissa
    odd = magnitude.shift_right_logical(shift) & 1
    rebias = (_F32_BIAS - form.bias) << form.mantissa
    normal = (magnitude + ((1 << (shift - 1)) - 1) + odd).shift_right_logical(shift) - rebias
    # in units of the smallest subnormal, adding 2**23 rounds to an integer and leaves it in the mantissa
    units = abs(x) * 2.0 ** (form.bias - 1 + form.mantissa) + 2.0**_F32_MANTISSA
    subnormal = units.bits & 0x7FFFFF
    smallest_normal = (_F32_BIAS + 1 - form.bias) << _F32_MANTISSA
    result = where(magnitude.below(smallest_normal), subnormal, normal)
    too_large = {"ieee": form.infinity, "none": form.largest}.get(form.specials, form.nan)
    overflows = ~result.below(form.largest + 1)
    result = where(overflows, too_large, result)
    if form.specials == "fnuz":
        return where(x.is_nan | overflows, form.sign, where(result.eq(0), 0, result | sign))
    if form.specials == "none":
        # no NaN to give: a zero of the other sign, as ml_dtypes does
        return where(x.is_nan, sign ^ form.sign, result | sign)
    return where(x.is_nan, form.nan, result) | sign


def _widen_exponent(bits: Num) -> Num:
    """2**(bits - 127); all ones is NaN."""
    normal = where(bits.eq(0), 1 << (_F32_MANTISSA - 1), bits << _F32_MANTISSA)
    return where(bits.eq(0xFF), _F32_NAN, normal).as_float()


def _narrow_exponent(x: Num) -> Num:
    """The exponent of x, a tie going up; NaN for zero, negative numbers and infinity."""
    bits = x.bits
    up = (bits + (1 << (_F32_MANTISSA - 1))).shift_right_logical(_F32_MANTISSA)
    up = where(bits.below(0x00600000), 0, up)  # 2**-127 is a subnormal f32: up to halfway to 2**-126
    return where((x > 0.0) & up.below(0xFF), up, 0xFF)
