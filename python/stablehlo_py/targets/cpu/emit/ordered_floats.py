"""The largest or smallest of many floats by integers in the same order.

maximum and minimum propagate NaN and tell -0 from 0, for which x86 needs seven instructions an element. Integers that
stand in the order of the floats, with all NaN beyond the end that is asked for, need four and only one of them waits
for the element before:

    key(x) = bits ^ (bits >> 31 & 0x7fffffff), minus the key of the first float of the order, unsigned

Where only the end of many steps counts, the bits need no turning: negative floats count down as integers, so that the
largest and the smallest float are each among the largest as signed bits, the smallest and the largest as unsigned ones.
These are three instructions an element, none of which waits for another; `Ends` says which of the three it is. AVX-512 has two
instructions instead, see `Numbers`, which two ports of an Intel core share, while one port has to do all maxima of integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import avx512_floats
from stablehlo_py.targets.cpu.emit.nest import constant_vector
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes


@record
class Order:
    """largest: whether the largest is asked for, and NaN counts as larger than all; else as smaller."""

    float_type: ir.Type
    largest: bool

    @property
    def width(self) -> int:
        return 8 * element_bytes(self.float_type)

    @property
    def integer(self) -> ir.Type:
        return ir.IntegerType.get_signless(self.width)

    @property
    def neutral(self) -> int:
        """The key of -inf, or of inf."""
        return 0 if self.largest else -1

    @property
    def infinity(self) -> int:
        """The bits of inf."""
        return 0x7F800000 if self.width == 32 else 0x7FF0000000000000

    @property
    def _first(self) -> int:
        """Where the order starts: -inf where the largest is asked for, else the NaN behind inf."""
        return -self.infinity - 1 if self.largest else self.infinity + 1

    def keys_of(self, floats: ir.Value) -> ir.Value:
        bits = self._flipped(arith.bitcast(_like(floats.type, self.integer), floats))
        return arith.subi(bits, _constant(bits.type, self._first))

    def join_keys(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return (arith.maxui if self.largest else arith.minui)(a, b)

    def float_of(self, key: ir.Value) -> ir.Value:
        bits = self._flipped(arith.addi(key, _constant(key.type, self._first)))
        return arith.bitcast(_like(key.type, self.float_type), bits)

    def _flipped(self, bits: ir.Value) -> ir.Value:
        """Negative floats count down as integers: their bits but the sign, inverted; its own inverse."""
        negative = arith.shrsi(bits, _constant(bits.type, self.width - 1))
        return arith.xori(bits, arith.andi(negative, _constant(bits.type, (1 << (self.width - 1)) - 1)))


@record
class Ends:
    """The largest signed, the smallest and the largest unsigned bits of many floats, and what they say of their order.

    Each starts from -inf, or from inf where the smallest is asked for.

    largest: a NaN with a sign, which is beyond -inf as unsigned bits; else the largest signed bits, NaN beyond inf;
    where these are negative all floats are, and the smallest unsigned bits are nearest to zero.
    smallest: a NaN without a sign, which is beyond inf as signed bits; else the largest unsigned bits where they have a sign:
    the negative float or NaN farthest from zero; else the smallest unsigned ones.
    """

    order: Order
    width: ClassVar[int] = 3

    def start(self, ty: ir.VectorType) -> list[ir.Value]:
        return [constant_vector(ty, self._infinity)] * 3

    def join(self, ends: Sequence[ir.Value], others: Sequence[ir.Value]) -> list[ir.Value]:
        joins = (arith.maxsi, arith.minui, arith.maxui)
        return [join(end, other) for join, end, other in zip(joins, ends, others, strict=True)]

    def join_floats(self, ends: Sequence[ir.Value], floats: ir.Value) -> list[ir.Value]:
        return self.join(ends, [arith.bitcast(_like(floats.type, self.order.integer), floats)] * 3)

    def floats(self, ends: Sequence[ir.Value]) -> ir.Value:
        """The largest or smallest float, lane by lane."""
        most_signed, least, most = ends
        ordinary, nans = (most_signed, most) if self.order.largest else (most, most_signed)
        turned = arith.cmpi(arith.CmpIPredicate.slt, ordinary, _constant(ordinary.type, 0))
        ordinary = arith.select(turned, *((least, ordinary) if self.order.largest else (ordinary, least)))
        is_nan = arith.cmpi(arith.CmpIPredicate.sgt, nans, _constant(nans.type, self._infinity))
        return arith.bitcast(_like(ordinary.type, self.order.float_type), arith.select(is_nan, nans, ordinary))

    @property
    def _infinity(self) -> int:
        """The bits of -inf or inf as a signed integer."""
        infinity = self.order.infinity
        return infinity - (1 << (self.order.width - 1)) if self.order.largest else infinity


@record
class Keys:
    """The largest or smallest of floats that come one by one to the same place, by their keys."""

    order: Order

    def of(self, floats: ir.Value) -> tuple[ir.Value, ...]:
        return (self.order.keys_of(floats),)

    def join_floats(self, state: Sequence[ir.Value], floats: ir.Value) -> Sequence[ir.Value]:
        return (self.order.join_keys(state[0], self.order.keys_of(floats)),)

    def floats(self, state: Sequence[ir.Value]) -> ir.Value:
        return self.order.float_of(state[0])


@record
class Numbers:
    """The largest or smallest of many floats that are numbers, and a NaN where one is among them: `emit.avx512_floats`.

    Each starts from -inf, or from inf where the smallest is asked for; of floats that come to the same place, from the first.
    """

    order: Order
    width: ClassVar[int] = 2

    def start(self, ty: ir.VectorType) -> list[ir.Value]:
        floats = ir.VectorType.get(ty.shape, self.order.float_type)
        start = constant_vector(floats, float("-inf") if self.order.largest else float("inf"))
        return [start, start]

    def of(self, floats: ir.Value) -> tuple[ir.Value, ...]:
        return (floats, floats)

    def join(self, ends: Sequence[ir.Value], others: Sequence[ir.Value]) -> list[ir.Value]:
        (number, nan), (other, other_nan) = ends, others
        return [avx512_floats.extreme(number, other, largest=self.order.largest), avx512_floats.nan_or(nan, other_nan)]

    def join_floats(self, ends: Sequence[ir.Value], floats: ir.Value) -> list[ir.Value]:
        return self.join(ends, [floats, floats])

    def floats(self, ends: Sequence[ir.Value]) -> ir.Value:
        """The largest or smallest float, lane by lane."""
        number, nan = ends
        return avx512_floats.nan_or(number, nan)


def order_of(op: ir.Operation, cpu: Cpu) -> Order | None:
    """The order by which a maximum or minimum of many can go, where the target has integer maxima of its width."""
    if op.name not in ("arith.maximumf", "arith.minimumf"):
        return None
    ty = op.results[0].type
    if not isinstance(ty, ir.F32Type) and not (isinstance(ty, ir.F64Type) and cpu.masks):
        return None
    return Order(ty, op.name == "arith.maximumf")


def _like(shape: ir.Type, element: ir.Type) -> ir.Type:
    return ir.VectorType.get(ir.VectorType(shape).shape, element) if isinstance(shape, ir.VectorType) else element


def _constant(ty: ir.Type, value: int) -> ir.Value:
    return constant_vector(ty, value) if isinstance(ty, ir.VectorType) else arith.constant(ty, value)
