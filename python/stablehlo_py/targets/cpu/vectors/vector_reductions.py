"""Reductions in vectors: what the lanes start from, and how they become one scalar.

The order is that of the shape alone: vectors by pairs, lanes by halves, the start last.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.rewire import like
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.emit.avx512_floats import has_instructions
from stablehlo_py.targets.cpu.emit.nest import constant_vector
from stablehlo_py.targets.cpu.emit.ordered_floats import Ends, Numbers, Order, order_of
from stablehlo_py.targets.cpu.vectors.vector_legality import Reduction

# op: its name as a reduction of lanes, and what changes nothing: a number, or an end of the range of integers
_KINDS: dict[str, tuple[str, float | str]] = {
    "arith.addi": ("add", 0),
    "arith.muli": ("mul", 1),
    "arith.andi": ("and", -1),
    "arith.ori": ("or", 0),
    "arith.xori": ("xor", 0),
    "arith.addf": ("add", -0.0),
    "arith.mulf": ("mul", 1.0),
    "arith.maximumf": ("maximumf", float("-inf")),
    "arith.minimumf": ("minimumf", float("inf")),
    "arith.maxsi": ("maxsi", "least"),
    "arith.minsi": ("minsi", "most"),
    "arith.maxui": ("maxui", 0),
    "arith.minui": ("minui", -1),
}


# vectors: each saves two instructions, the end has some twenty more; each saves three, the end has one more
_MANY, _SOME = 12, 4

State = list[ir.Value]  # the partial results of a vector: one, or the `Ends` or `Numbers` of an order


class Lanes:
    """One reduction while it is in lanes: of floats in the order of integers where that is quicker.

    vectors: how many there are, None where that is unknown.
    """

    def __init__(self, of: Reduction, lanes: int, vectors: int | None, cpu: Cpu) -> None:
        self.of, self.order = of, order_of(of.op, cpu)
        self.ends = _ends(self.order, lanes, vectors, cpu) if self.order else None
        element = self.order.integer if self.order else of.carried.type
        self.type = ir.VectorType.get([lanes], element)

    @property
    def width(self) -> int:
        """Values in a State."""
        return self.ends.width if self.ends else 1

    def start(self) -> State:
        """Lanes that change nothing."""
        element, (_, neutral) = self.type.element_type, _KINDS[self.of.op.name]
        if self.ends:
            return self.ends.start(self.type)
        if self.order:
            return [constant_vector(self.type, self.order.neutral)]
        if isinstance(neutral, str):
            most = (1 << (ir.IntegerType(element).width - 1)) - 1
            return [constant_vector(self.type, most if neutral == "most" else -most - 1)]
        return [constant_vector(self.type, neutral)]

    def with_floats(self, state: Sequence[ir.Value], floats: ir.Value) -> State:
        """The partial results after a vector more, of a reduction that goes by an order."""
        assert self.order is not None
        if self.ends:
            return self.ends.join_floats(state, floats)
        return [self.order.join_keys(state[0], self.order.keys_of(floats))]

    def total(self, partial: Sequence[State], init: ir.Value) -> ir.Value:
        """The partial results of all lanes and the start as one scalar."""
        values = list(partial)
        while len(values) > 1:
            pairs = [self._join(a, b) for a, b in zip(values[::2], values[1::2], strict=False)]
            values = pairs + values[len(values) // 2 * 2 :]
        kind, state = _KINDS[self.of.op.name][0], values[0]
        if self.order:
            keys = self.order.keys_of(self.ends.floats(state)) if self.ends else state[0]
            kind = "maxui" if self.order.largest else "minui"
            key = self._reduced(kind, [keys], self.type.element_type)
            return self._on([init, self.order.float_of(key)])
        # With the start, since by itself a sum of lanes starts from 0.0, which a sum of -0.0 is not.
        return self._reduced(kind, [*state, init], init.type)

    def _join(self, a: State, b: State) -> State:
        if self.ends:
            return self.ends.join(a, b)
        return [self.order.join_keys(a[0], b[0]) if self.order else self._on([a[0], b[0]])]

    def _on(self, operands: Sequence[ir.Value]) -> ir.Value:
        return like(self.of.op, operands, operands[0].type).results[0]

    def _reduced(self, kind: str, operands: list[ir.Value], ty: ir.Type) -> ir.Value:
        attributes = {"kind": ir.Attribute.parse(f"#vector.kind<{kind}>")}
        if not self.order and "fastmath" in self.of.op.attributes:
            attributes["fastmath"] = self.of.op.attributes["fastmath"]
        return ir.Operation.create("vector.reduction", results=[ty], operands=operands, attributes=attributes).results[
            0
        ]


def _ends(order: Order, lanes: int, vectors: int | None, cpu: Cpu) -> Ends | Numbers | None:
    """Several partial results, where what they save in each step is more than they cost at the end.

    x86 without AVX has no maxima of words, and makes each of compares.
    """

    def are(many: int) -> bool:
        return vectors is None or vectors >= many

    if has_instructions(ir.VectorType.get([lanes], order.float_type), cpu):
        return Numbers(order) if are(_SOME) else None
    return Ends(order) if cpu.vector_bytes >= 32 and are(_MANY) else None
