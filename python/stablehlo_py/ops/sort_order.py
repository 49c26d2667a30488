"""What order a comparator asks for: keys read off its region, each mapped to an unsigned integer.

    before(a, b) = f(a) < f(b), or f(a) = f(b) and g(a) < g(b), or ..     ->   the keys f, g, ..

f may be any elementwise function of the elements of one side, the same on both sides (JAX makes all NaNs one and -0 a 0
by it). A key is compared as an unsigned integer u(f), where

    unsigned, i1       u = x
    signed             u = x with its sign bit flipped
    float, TOTALORDER  u = its bits with the sign bit flipped where it is clear, with all bits flipped where it is set
    float, FLOAT       the same after -0 -> 0 and NaN -> the last place: the partial order says nothing of NaN
    GT instead of LT   u = all bits of that flipped (a NaN of a partial order stays last)
"""

from __future__ import annotations

from collections.abc import Callable

from stablehlo_py.core import registry
from stablehlo_py.core.collect import maker
from stablehlo_py.core.types import ElementType, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import build
from stablehlo_py.ops.convert import to_bits
from stablehlo_py.ops.expression import Num, where
from stablehlo_py.records import record

MOST_OPS = 200  # of a comparator that is looked at
_FLIPPED = {"LT": "GT", "GT": "LT"}


@record
class Key:
    """One key of an order: what the comparator compares, as its region makes it of the left elements."""

    value: ir.Value
    element: ElementType
    total: bool  # of floats: TOTALORDER
    descending: bool
    operand: int | None  # the operand whose elements the key is, where no function is between

    @property
    def bits(self) -> int:
        """The width of the unsigned integer; floats below 16 bits are compared as f32."""
        if self.element.is_float:
            return max(self.element.bits, 32 if self.element.bits < 16 else 16)
        return max(self.element.bits, 8)

    @property
    def is_invertible(self) -> bool:
        """Whether the element of the operand is known from the integer."""
        exact = self.total and self.element.bits >= 16 if self.element.is_float else True
        return self.operand is not None and exact


def keys_of(op: Op) -> tuple[Key, ...] | None:
    """The keys of a sort by its comparator, most significant first; None for a comparator of another form."""
    block = op.block()
    if len(block.operations) > MOST_OPS:
        return None
    return _Comparator(block).keys()


def unsigned(key: Key, value: ir.Value) -> Num:
    """The unsigned integer of a key from the compute scalar that is compared, `key.bits` wide."""
    element = key.element
    if not element.is_float:
        x = Num(value).resize(key.bits, signed=element.kind == "int")
        if element.kind == "int":
            x = x ^ (1 << (key.bits - 1))
        return ~x if key.descending else x
    number = Num(value)
    is_nan = number.is_nan
    if not key.total:
        number = where(number.eq(0.0), 0.0, number)
    bits = to_bits(element, number.value) if key.bits == element.bits else number.bits
    ordered = bits ^ ((bits >> (bits.width - 1)) | (1 << (bits.width - 1)))
    if key.descending:
        ordered = ~ordered
    return ordered if key.total else where(is_nan, -1, ordered)


def stored_of(key: Key, ordered: Num) -> ir.Value:
    """The stored element of a key's operand from its unsigned integer, where that is invertible."""
    element = key.element
    x = ~ordered if key.descending else ordered
    if not element.is_float:
        x = x ^ (1 << (key.bits - 1)) if element.kind == "int" else x
        return x.value
    bits = x ^ where(x < 0, x.lift(1 << (x.width - 1)), -1)
    storage = build.storage_type(element)
    return bits.value if bits.type == storage else arith.bitcast(storage, bits.value)


def evaluate_key(key: Key, op: Op, element_of: Callable[[int], ir.Value]) -> Num:
    """The unsigned integer of a key; element_of(i): the compute scalar of operand i on one side."""
    arguments = list(op.block().arguments)
    known: dict[ir.Value, ir.Value] = {}

    def scalar_of(value: ir.Value) -> ir.Value:
        found = known.get(value)
        if found is None:
            if value in arguments:
                found = element_of(arguments.index(value) // 2)
            elif (made := maker(value)) is None or made.block != op.block():
                found = build.outer_scalar(value)
            else:
                inner = view(made)
                found = build.scalar_op(inner, *(scalar_of(v) for v in inner.operation.operands))
            known[value] = found
        return found

    return unsigned(key, scalar_of(key.value))


class _Comparator:
    """Reads a region: values get numbers that are equal where the two sides do the same."""

    def __init__(self, block: ir.Block) -> None:
        self.block = block
        self.arguments = {argument: i for i, argument in enumerate(block.arguments)}
        self.numbers: dict[object, int] = {}
        self.seen: dict[ir.Value, tuple[int, frozenset[int]] | None] = {}

    def keys(self) -> tuple[Key, ...] | None:
        end = self.block.operations[len(self.block.operations) - 1].operation
        return self.before(end.operands[0])

    def before(self, value: ir.Value) -> tuple[Key, ...] | None:
        """The keys of a predicate `left comes before right`."""
        op = self.inner(value)
        if op is None:
            return None
        if op.name == "stablehlo.compare":
            found = self.compared(op)
            return None if found is None or found[0] == "EQ" else (found[1],)
        operands = list(op.operation.operands)
        if op.name == "stablehlo.or":
            # f(a) < f(b) | (f(a) = f(b) & rest)
            for first, other in (operands, reversed(operands)):
                both = self.inner(other)
                if both is None or both.name != "stablehlo.and":
                    continue
                pair = list(both.operation.operands)
                for tie, rest in (pair, reversed(pair)):
                    keys = self.lexicographic(first, tie, rest)
                    if keys is not None:
                        return keys
        if op.name == "stablehlo.select":
            # f(a) = f(b) ? rest : f(a) < f(b)
            return self.lexicographic(operands[2], operands[0], operands[1])
        return None

    def lexicographic(self, first: ir.Value, tie: ir.Value, rest: ir.Value) -> tuple[Key, ...] | None:
        comparison, equality = self.inner(first), self.inner(tie)
        if comparison is None or equality is None:
            return None
        if comparison.name != "stablehlo.compare" or equality.name != "stablehlo.compare":
            return None
        key, same = self.compared(comparison), self.compared(equality)
        if key is None or same is None or key[0] == "EQ" or same[0] != "EQ" or key[2] != same[2]:
            return None
        following = self.before(rest)
        return None if following is None else (key[1], *following)

    def compared(self, op: Op) -> tuple[str, Key, object] | None:
        """(direction, key, what is compared and how) of a comparison of one function of both sides."""
        direction = op.enum("comparison_direction")
        lhs, rhs = op.operation.operands
        left, right = self.number(lhs), self.number(rhs)
        if left is None or right is None or left[0] != right[0] or direction not in ("LT", "GT", "EQ"):
            return None
        if (left[1], right[1]) == (frozenset({1}), frozenset({0})):
            lhs, direction = rhs, _FLIPPED.get(direction, direction)
        elif (left[1], right[1]) != (frozenset({0}), frozenset({1})):
            return None
        element = tensor_type(lhs.type).element
        if element.is_complex:
            return None
        total = op.enum("compare_type") == "TOTALORDER"
        argument = self.arguments.get(lhs)
        key = Key(lhs, element, total, direction == "GT", None if argument is None else argument // 2)
        return direction, key, (left[0], total)

    def number(self, value: ir.Value) -> tuple[int, frozenset[int]] | None:
        """(a number of the function that makes a value, the sides it reads); None for what no rule of scalars makes."""
        if value not in self.seen:
            self.seen[value] = self.look(value)
        return self.seen[value]

    def look(self, value: ir.Value) -> tuple[int, frozenset[int]] | None:
        place = self.arguments.get(value)
        if place is not None:
            return self.known(("argument", place // 2)), frozenset({place % 2})
        op = self.inner(value)
        if op is None:
            return self.known(("outside", value)), frozenset()
        if isinstance(op, Constant):
            return self.known(("constant", str(value.type), op.value.tobytes())), frozenset()
        views = ("stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.optimization_barrier")
        if registry.scalar.find(op.name) is None and op.name not in views:
            return None
        parts = [self.number(v) for v in op.operation.operands]
        found = [part for part in parts if part is not None]
        if len(found) < len(parts):
            return None
        attributes = sorted((name, str(op.operation.attributes[name])) for name in op.operation.attributes)
        what = (op.name, str(value.type), tuple(attributes), tuple(part[0] for part in found))
        return self.known(what), frozenset().union(*(part[1] for part in found))

    def known(self, what: object) -> int:
        return self.numbers.setdefault(what, len(self.numbers))

    def inner(self, value: ir.Value) -> Op | None:
        """The op of the region that makes a value."""
        op = maker(value)
        return view(op) if op is not None and op.block == self.block else None
