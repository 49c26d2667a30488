"""Scalar arithmetic as Python expressions: `Num` wraps a float, integer or boolean value of a body.

Operators build arith ops; a Python number beside a `Num` becomes a constant of its type. Comparisons of floats are
ordered (false on NaN). Integers are signless: `<` and `>>` are the signed forms, named methods the unsigned ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir, math
from stablehlo_py.records import record

_F, _I = arith.CmpFPredicate, arith.CmpIPredicate


@record(eq=False)
class Num:
    """A scalar value with operators."""

    value: ir.Value

    @property
    def type(self) -> ir.Type:
        return self.value.type

    @property
    def is_float(self) -> bool:
        return isinstance(self.type, ir.F32Type | ir.F64Type)

    @property
    def width(self) -> int:
        return (64 if isinstance(self.type, ir.F64Type) else 32) if self.is_float else ir.IntegerType(self.type).width

    def lift(self, other: Number) -> Num:
        """`other` as a value of this type."""
        return other if isinstance(other, Num) else constant(self.type, other)

    def __add__(self, other: Number) -> Num:
        return Num((arith.addf if self.is_float else arith.addi)(self.value, self.lift(other).value))

    def __sub__(self, other: Number) -> Num:
        return Num((arith.subf if self.is_float else arith.subi)(self.value, self.lift(other).value))

    def __mul__(self, other: Number) -> Num:
        return Num((arith.mulf if self.is_float else arith.muli)(self.value, self.lift(other).value))

    def __truediv__(self, other: Number) -> Num:
        return Num(arith.divf(self.value, self.lift(other).value))

    def __radd__(self, other: Number) -> Num:
        return self.lift(other) + self

    def __rsub__(self, other: Number) -> Num:
        return self.lift(other) - self

    def __rmul__(self, other: Number) -> Num:
        return self.lift(other) * self

    def __rtruediv__(self, other: Number) -> Num:
        return self.lift(other) / self

    def __neg__(self) -> Num:
        return Num(arith.negf(self.value)) if self.is_float else 0 - self

    def __abs__(self) -> Num:
        return Num(math.absf(self.value)) if self.is_float else where(self < 0, -self, self)

    def __and__(self, other: Number) -> Num:
        return Num(arith.andi(self.value, self.lift(other).value))

    def __or__(self, other: Number) -> Num:
        return Num(arith.ori(self.value, self.lift(other).value))

    def __xor__(self, other: Number) -> Num:
        return Num(arith.xori(self.value, self.lift(other).value))

    def __invert__(self) -> Num:
        return self ^ -1

    def __lshift__(self, other: Number) -> Num:
        return Num(arith.shli(self.value, self.lift(other).value))

    def __rshift__(self, other: Number) -> Num:
        return Num(arith.shrsi(self.value, self.lift(other).value))

    def shift_right_logical(self, other: Number) -> Num:
        return Num(arith.shrui(self.value, self.lift(other).value))

    def _compare(self, float_predicate: arith.CmpFPredicate, predicate: arith.CmpIPredicate, other: Number) -> Num:
        rhs = self.lift(other).value
        if self.is_float:
            return Num(arith.cmpf(float_predicate, self.value, rhs))
        return Num(arith.cmpi(predicate, self.value, rhs))

    def __lt__(self, other: Number) -> Num:
        return self._compare(_F.OLT, _I.slt, other)

    def __le__(self, other: Number) -> Num:
        return self._compare(_F.OLE, _I.sle, other)

    def __gt__(self, other: Number) -> Num:
        return self._compare(_F.OGT, _I.sgt, other)

    def __ge__(self, other: Number) -> Num:
        return self._compare(_F.OGE, _I.sge, other)

    def eq(self, other: Number) -> Num:
        return self._compare(_F.OEQ, _I.eq, other)

    def ne(self, other: Number) -> Num:
        """Unequal; true on NaN."""
        return self._compare(_F.UNE, _I.ne, other)

    def below(self, other: Number) -> Num:
        """Unsigned <."""
        return Num(arith.cmpi(_I.ult, self.value, self.lift(other).value))

    @property
    def is_nan(self) -> Num:
        return Num(arith.cmpf(_F.UNO, self.value, self.value))

    @property
    def bits(self) -> Num:
        """The bits of a float as an integer."""
        return Num(arith.bitcast(ir.IntegerType.get_signless(self.width), self.value))

    def as_float(self) -> Num:
        """Integer bits as the float of the same width."""
        return Num(arith.bitcast(ir.F64Type.get() if self.width == 64 else ir.F32Type.get(), self.value))

    def copysign(self, sign: Num) -> Num:
        return Num(math.copysign(self.value, sign.value))

    def floor(self) -> Num:
        return Num(math.floor(self.value))

    def sqrt(self) -> Num:
        return Num(math.sqrt(self.value))

    def maximum(self, other: Number) -> Num:
        """The larger; NaN wins."""
        return Num(arith.maximumf(self.value, self.lift(other).value))

    def minimum(self, other: Number) -> Num:
        return Num(arith.minimumf(self.value, self.lift(other).value))

    def to_f64(self) -> Num:
        return self if isinstance(self.type, ir.F64Type) else Num(arith.extf(ir.F64Type.get(), self.value))

    def to(self, ty: ir.Type) -> Num:
        """This float as another float type."""
        if self.type == ty:
            return self
        return Num((arith.extf if isinstance(ty, ir.F64Type) else arith.truncf)(ty, self.value))

    def resize(self, width: int, *, signed: bool = False) -> Num:
        """This integer with another width: cut, or extended by zeros or by the sign."""
        ty = ir.IntegerType.get_signless(width)
        if width == self.width:
            return self
        if width < self.width:
            return Num(arith.trunci(ty, self.value))
        return Num((arith.extsi if signed else arith.extui)(ty, self.value))


Number = Num | int | float


def constant(ty: ir.Type, value: float) -> Num:
    """A constant of a float or integer type."""
    if isinstance(ty, ir.IntegerType):
        return Num(_integer(ty, int(value)))
    return Num(arith.constant(ty, float(value)))


def _integer(ty: ir.IntegerType, value: int) -> ir.Value:
    value &= (1 << ty.width) - 1
    return arith.constant(ty, value - (1 << ty.width) if value >> (ty.width - 1) else value)


def where(condition: Num, yes: Number, no: Number) -> Num:
    """`yes` where the condition holds, else `no`; at least one of them is a `Num`."""
    like = yes if isinstance(yes, Num) else no
    assert isinstance(like, Num)
    return Num(arith.select(condition.value, like.lift(yes).value, like.lift(no).value))


def polynomial(x: Num, coefficients: Sequence[float]) -> Num:
    """Horner's scheme, highest power first."""
    result = x.lift(coefficients[0])
    for c in coefficients[1:]:
        result = result * x + c
    return result


def polynomial_by_pairs(x: Num, coefficients: Sequence[float]) -> Num:
    """The same by powers of x^2 of pairs a x + b: half of the sums wait for each other. They are fused where the target can.

    The last coefficient, which is mostly the largest, has a sum of its own, the only one whose rounding counts.
    """
    *others, last = coefficients
    pairs = [others[i : i + 2] for i in range(len(others) % 2, len(others), 2)]
    terms = [_multiply_add(x.lift(a), x, x.lift(b)) for a, b in pairs]
    result, *terms = [x.lift(c) for c in others[: len(others) % 2]] + terms
    square = x * x
    for term in terms:
        result = _multiply_add(result, square, term)
    return _multiply_add(result, x, x.lift(last))


def _multiply_add(x: Num, y: Num, z: Num) -> Num:
    flag = ir.Attribute.parse("#arith.fastmath<contract>")
    return Num(arith.addf(arith.mulf(x.value, y.value, fastmath=flag), z.value, fastmath=flag))
