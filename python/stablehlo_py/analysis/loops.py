"""Loops that count: what a `stablehlo.while` says of its own steps."""

from __future__ import annotations

from stablehlo_py.core.collect import made_by
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.mlir import ir
from stablehlo_py.records import record


@record
class Counter:
    """while (i = start; i < end; i += step), all constants and step > 0; number: which carried value i is."""

    number: int
    start: int
    end: int
    step: int

    @property
    def trips(self) -> int:
        return max(-(-(self.end - self.start) // self.step), 0)


def counter_of(loop: ir.Operation) -> Counter | None:
    """The counter of a while; None where its steps are not known."""
    condition, body = (region.blocks[0] for region in loop.regions)
    (predicate,) = condition.operations[len(condition.operations) - 1].operands
    compare = made_by(predicate, "stablehlo.compare")
    if compare is None or view(compare).enum("comparison_direction") != "LT":
        return None
    counter, bound = compare.operands
    if counter not in list(condition.arguments):
        return None
    number = list(condition.arguments).index(counter)
    following = made_by(body.operations[len(body.operations) - 1].operands[number], "stablehlo.add")
    if following is None:
        return None
    steps = [integer_of(v) for v in following.operands if v != body.arguments[number]]
    start, end = integer_of(loop.operands[number]), integer_of(bound)
    if len(steps) != 1 or start is None or end is None or not steps[0] or steps[0] < 0:
        return None
    return Counter(number, start, end, steps[0])


def integer_of(value: ir.Value) -> int | None:
    """The number that an integer constant of one element is."""
    op = made_by(value, "stablehlo.constant")
    if op is None:
        return None
    constant = view(op)
    assert isinstance(constant, Constant)
    if constant.type.size != 1 or not constant.type.element.is_integer:
        return None
    return int(constant.value.reshape(-1)[0])
