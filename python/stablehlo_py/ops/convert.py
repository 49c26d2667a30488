"""convert, bitcast_convert, reduce_precision: from one element type to another.

Floats become integers by cutting towards zero, saturating, NaN as 0; anything becomes bool by != 0; every conversion to
a float rounds once.
"""

from __future__ import annotations

import functools
import operator

from stablehlo_py.core.registry import lower, scalar
from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, complex, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.expression import Num, where


@scalar("stablehlo.convert")
def scalar_convert(op: Op, value: ir.Value) -> ir.Value:
    return convert(op.operand_types[0].element, op.type.element, value)


def convert(source: ElementType, target: ElementType, value: ir.Value) -> ir.Value:
    """A compute scalar of `source` as one of `target`."""
    if source == target:
        return value
    if source.is_complex:
        if target.is_complex:
            re, im = (convert(source.part, target.part, part(value)) for part in (complex.re, complex.im))
            return complex.create_(build.compute_type(target), re, im)
        return convert(source.part, target, complex.re(value))
    if target.is_complex:
        re = convert(source, target.part, value)
        return complex.create_(build.compute_type(target), re, build.scalar(target.part, 0))
    if source.is_float:
        return _from_float(target, Num(value))
    return _from_integer(source, target, Num(value))


def _from_float(target: ElementType, x: Num) -> ir.Value:
    if target.is_bool:
        return x.ne(0.0).value
    if target.is_float:
        if target.bits < 32 and isinstance(x.type, ir.F64Type):
            return build.rounded(target, x.value)
        return x.to(build.compute_type(target)).value
    low = 0.0 if target.is_unsigned else -(2.0 ** (target.bits - 1))
    limit = 2.0**target.bits if target.is_unsigned else -low  # the first value too large, a power of two
    smallest = 0 if target.is_unsigned else -1 << (target.bits - 1)
    # outside of the range the machine's conversion is undefined; NaN is outside as well and becomes 0
    inside = where((x > (low - 1.0 if target.is_unsigned else low)) & (x < limit), x, 0.0)
    to_integer = arith.fptoui if target.is_unsigned else arith.fptosi
    cut = Num(to_integer(build.compute_type(target), inside.value))
    return where(x >= limit, ~cut.lift(smallest), where(x <= low, smallest, cut)).value


def _from_integer(source: ElementType, target: ElementType, x: Num) -> ir.Value:
    signed = source.kind == "int"
    if target.is_bool:
        return x.ne(0).value
    if not target.is_float:
        return x.resize(target.bits, signed=signed).value
    to_float = arith.sitofp if signed else arith.uitofp
    if source.bits < 32 or target.bits == 64 or (source.bits <= 32 and target.bits == 32):
        wide = x.resize(32, signed=signed) if source.bits < 32 else x
        converted = to_float(build.compute_type(target), wide.value)  # to f32 exactly, or the one rounding
        return build.rounded(target, converted)
    if target.bits == 32:
        return to_float(build.compute_type(target), x.value)
    if source.bits == 32:
        return build.rounded(target, to_float(ir.F64Type.get(), x.value))
    return build.rounded(target, _to_odd_f64(x, signed=signed).value)


def _to_odd_f64(x: Num, *, signed: bool) -> Num:
    """A 64-bit integer as an f64 that a later rounding to at most 40 bits rounds as the integer itself."""
    # where f64 cannot hold it, the lowest 11 bits are folded into the bit above them
    negative = x < 0
    magnitude = where(negative, -x, x) if signed else x
    large = magnitude.shift_right_logical(53).ne(0)
    sticky = where((magnitude & 0x7FF).ne(0), x.lift(0x800), 0)
    folded = where(large, (magnitude & ~0x7FF) | sticky, magnitude)
    result = Num(arith.uitofp(ir.F64Type.get(), folded.value))
    return where(negative, -result, result) if signed else result


@scalar("stablehlo.reduce_precision")
def scalar_reduce_precision(op: Op, value: ir.Value) -> ir.Value:
    return reduce_precision(Num(value), op.integer("exponent_bits"), op.integer("mantissa_bits")).value


def reduce_precision(x: Num, exponent_bits: int, mantissa_bits: int) -> Num:
    """x rounded to nearest even in a format of the given widths: subnormals become zero, too large becomes infinity."""
    bits = x.bits
    mantissa = 52 if x.width == 64 else 23
    exponent = x.width - 1 - mantissa
    sign = bits & (1 << (x.width - 1))
    magnitude = bits & ((1 << (x.width - 1)) - 1)
    if mantissa_bits < mantissa:
        cut = mantissa - mantissa_bits
        odd = magnitude.shift_right_logical(cut) & 1
        magnitude = (magnitude + ((1 << (cut - 1)) - 1) + odd) & ~((1 << cut) - 1)
    if exponent_bits < exponent:
        bias, source_bias = (1 << (exponent_bits - 1)) - 1, (1 << (exponent - 1)) - 1
        smallest = (source_bias + 1 - bias) << mantissa
        overflow = (source_bias + bias + 1) << mantissa
        infinity = ((1 << exponent) - 1) << mantissa
        magnitude = where(magnitude.below(smallest), 0, magnitude)
        magnitude = where(magnitude.below(overflow), magnitude, infinity)
    return where(x.is_nan, x, (magnitude | sign).as_float())


# --- bitcast_convert --------------------------------------------------------------------------------------------------


def _bits(element: ElementType) -> int:
    """Bits of an element on the wire: of both parts for complex."""
    return element.bits * 2 if element.is_complex else element.bits


def to_bits(element: ElementType, value: ir.Value) -> Num:
    """The bits of a compute scalar as a signless integer of the element's width."""
    if element.is_complex:
        low, high = (to_bits(element.part, part(value)) for part in (complex.re, complex.im))
        width = 2 * element.bits
        return low.resize(width) | (high.resize(width) << element.bits)
    if not element.is_float:
        return Num(value)
    stored = build.narrow(element, value)
    if element.bits <= 8:
        return Num(stored).resize(element.bits)
    return Num(arith.bitcast(ir.IntegerType.get_signless(element.bits), stored))


def from_bits(element: ElementType, bits: Num) -> ir.Value:
    """The compute scalar that has these bits."""
    if element.is_complex:
        low = bits.resize(element.bits)
        high = bits.shift_right_logical(element.bits).resize(element.bits)
        re, im = from_bits(element.part, low), from_bits(element.part, high)
        return complex.create_(build.compute_type(element), re, im)
    if not element.is_float:
        return bits.value
    if element.bits <= 8:
        return build.widen(element, bits.resize(8).value)
    return build.widen(element, arith.bitcast(build.storage_type(element), bits.value))


@scalar("stablehlo.bitcast_convert")
def scalar_bitcast_convert(op: Op, value: ir.Value) -> ir.Value:
    source, target = op.operand_types[0].element, op.type.element
    return value if source == target else from_bits(target, to_bits(source, value))


@lower("stablehlo.bitcast_convert")
def lower_bitcast_convert(op: Op, operand: Tensor) -> Tensor:
    """Equal widths elementwise; otherwise the last dimension of the wider side counts parts, lowest bits first."""
    source, target = _bits(operand.element), _bits(op.type.element)
    if source == target:
        return build.elementwise(op, operand)
    return _split(op, operand) if source > target else _join(op, operand)


def _split(op: Op, operand: Tensor) -> Tensor:
    """tensor<SHAPE x wide> -> tensor<SHAPE x N x narrow>."""
    target = op.type.element
    rank = op.type.rank

    def body(value: ir.Value) -> ir.Value:
        bits = to_bits(operand.element, value)
        part = Num(arith.index_cast(bits.type, build.loop_index(rank - 1)))
        return from_bits(target, bits.shift_right_logical(part * _bits(target)).resize(_bits(target)))

    maps = [build.dims_map(rank, range(rank - 1)), build.identity_map(rank)]
    return build.generic([operand], [op.type], body, maps=maps)[0]


def _join(op: Op, operand: Tensor) -> Tensor:
    """tensor<SHAPE x N x narrow> -> tensor<SHAPE x wide>."""
    target, width = op.type.element, _bits(operand.element)
    rank, parts = op.type.rank, operand.shape[-1]
    here = [ir.AffineExpr.get_dim(d) for d in range(rank)]

    def body(*elements: ir.Value) -> ir.Value:
        pieces = [to_bits(operand.element, e).resize(_bits(target)) << (i * width) for i, e in enumerate(elements)]
        return from_bits(target, functools.reduce(operator.or_, pieces))

    maps = [ir.AffineMap.get(rank, 0, [*here, ir.AffineExpr.get_constant(part)]) for part in range(parts)]
    return build.generic([operand] * parts, [op.type], body, maps=[*maps, build.identity_map(rank)])[0]


for _name in ("stablehlo.convert", "stablehlo.reduce_precision"):
    lower.add(_name, build.elementwise)
