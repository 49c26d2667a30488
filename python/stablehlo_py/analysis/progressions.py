"""Integers that a counting loop moves by the same amount in each step: i, n - 1 - i, 2 i + 3."""

from __future__ import annotations

import numpy as np

from stablehlo_py.analysis.loops import Counter, integer_of
from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record


@record
class Progression:
    """first + t * step in step t of the loop, t = 0, 1, ..."""

    first: int
    step: int

    def bounds(self, trips: int) -> tuple[int, int]:
        """The least and the greatest over `trips` steps."""
        last = self.first + self.step * (trips - 1)
        return min(self.first, last), max(self.first, last)


@record
class Progressions:
    """What the values of a loop's body are in each of its steps, as far as they are progressions."""

    loop: ir.Operation
    counter: Counter

    def of(self, value: ir.Value) -> Progression | None:
        """The progression of a scalar integer; None where it is none, or leaves its type's range."""
        ty = tensor_type(value.type)
        if ty.size != 1 or not ty.element.is_integer or ty.element.bits < 8:
            return None
        found = self._of(value)
        if found is None:
            return None
        low, high = found.bounds(self.counter.trips)
        limits = np.iinfo(ty.element.dtype)
        return found if limits.min <= low and high <= limits.max else None

    def _of(self, value: ir.Value) -> Progression | None:
        body = self.loop.regions[1].blocks[0]
        if value in list(body.arguments):
            return self._carried(list(body.arguments).index(value))
        op = maker(value)
        if op is None:
            return None
        if (number := integer_of(value)) is not None:
            return Progression(number, 0)
        if op.name in ("stablehlo.reshape", "stablehlo.convert"):
            return self.of(op.operands[0])
        if op.name == "stablehlo.select":
            return self._selected(op)
        if op.name not in ("stablehlo.add", "stablehlo.subtract"):
            return None
        a, b = (self.of(v) for v in op.operands)
        if a is None or b is None:
            return None
        sign = 1 if op.name == "stablehlo.add" else -1
        return Progression(a.first + sign * b.first, a.step + sign * b.step)

    def _carried(self, number: int) -> Progression | None:
        """start, start + c, start + 2 c, ... for a carried value that each step adds a constant to."""
        body = self.loop.regions[1].blocks[0]
        argument, following = body.arguments[number], body.operations[len(body.operations) - 1].operands[number]
        start, op = integer_of(self.loop.operands[number]), made_by(following, "stablehlo.add")
        if start is None or op is None or argument not in list(op.operands):
            return None
        steps = [integer_of(v) for v in op.operands if v != argument]
        return Progression(start, steps[0]) if len(steps) == 1 and steps[0] is not None else None

    def _selected(self, op: ir.Operation) -> Progression | None:
        """select(i < 0, i + n, i) is i where i never is below 0: how JAX reads negative indices."""
        predicate, _, otherwise = op.operands
        compare = made_by(predicate, "stablehlo.compare")
        if compare is None or view(compare).enum("comparison_direction") != "LT":
            return None
        a, b = (self.of(v) for v in compare.operands)
        if a is None or b is None or a.bounds(self.counter.trips)[0] < b.bounds(self.counter.trips)[1]:
            return None
        return self.of(otherwise)
