"""Loops that count: what a `stablehlo.while` says of its own steps."""

from __future__ import annotations

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
    compare = _maker(predicate)
    if compare is None or compare.name != "stablehlo.compare" or view(compare).enum("comparison_direction") != "LT":
        return None
    counter, bound = compare.operands
    if counter not in list(condition.arguments):
        return None
    number = list(condition.arguments).index(counter)
    following = _maker(body.operations[len(body.operations) - 1].operands[number])
    if following is None or following.name != "stablehlo.add":
        return None
    steps = [_number(v) for v in following.operands if v != body.arguments[number]]
    start, end = _number(loop.operands[number]), _number(bound)
    if len(steps) != 1 or start is None or end is None or not steps[0] or steps[0] < 0:
        return None
    return Counter(number, start, end, steps[0])


def _maker(value: ir.Value) -> ir.Operation | None:
    return None if isinstance(value.owner, ir.Block) else value.owner.operation


def _number(value: ir.Value) -> int | None:
    """The number that an integer constant of one element is."""
    maker = _maker(value)
    if maker is None or maker.name != "stablehlo.constant":
        return None
    constant = view(maker)
    assert isinstance(constant, Constant)
    if constant.type.size != 1 or not constant.type.element.is_integer:
        return None
    return int(constant.value.reshape(-1)[0])
