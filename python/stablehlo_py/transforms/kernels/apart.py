"""Why two kernels are two: for each value that one leaves in memory for another, what kept them from being one.

The same questions as in `grouping`, asked once more of the units as they are in the end and answered in words.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from stablehlo_py.core.types import tensor_type
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.grouping import (
    ALIASES,
    LONGEST_ROW,
    MOST_OPS,
    PRODUCT,
    ROWS,
    SINGLE,
    STAYS,
    Grouping,
    Unit,
    uses,
)


@record
class Apart:
    """`bytes` of values that kernel `first` makes and kernel `second` reads from memory, and why these are not one."""

    first: str
    second: str
    bytes: int
    why: str


def pairs(grouping: Grouping) -> Iterator[tuple[Unit, Unit, int, str]]:
    """Each unit, each that reads of it, the bytes read and why they are not one."""
    for second in grouping.all.values():
        if second.kind == STAYS:
            continue
        for first, reshaped in _makers(grouping, second):
            made = {r for op in first.ops for r in op.results}
            values = {v for op in second.ops for v in _behind_views(grouping, op) if v in made}
            count = sum(tensor_type(v.type).bytes for v in values)
            if count:
                yield first, second, count, _why(grouping, first, second, reshaped)


def _makers(grouping: Grouping, unit: Unit) -> Iterator[tuple[Unit, bool]]:
    """The kernels that a unit reads of; True where a reshape, which is no kernel, lies between."""
    waiting = [(number, False) for number in unit.parents]
    seen: set[int] = set()
    while waiting:
        number, reshaped = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        other = grouping.all[number]
        if other.kind != STAYS:
            yield other, reshaped
        elif other.ops[0].name in ALIASES:
            waiting += [(parent, True) for parent in other.parents]


def _behind_views(grouping: Grouping, op: ir.Operation) -> Iterator[ir.Value]:
    """The values that an op reads, those behind views and reshapes too."""
    waiting = list(uses(op))
    while waiting:
        value = waiting.pop()
        yield value
        producer = grouping.producers.get(value)
        if producer is not None and (value in grouping.repeated or producer.name in ALIASES):
            waiting.extend(producer.operands)


def _why(grouping: Grouping, first: Unit, second: Unit, reshaped: bool) -> str:
    made = {r for op in first.ops for r in op.results}
    for unit, other in ((first, "reads"), (second, "makes")):
        if unit.kind == SINGLE:
            return f"{_short(unit.ops[-1])} is a kernel of its own: nothing joins what it {_verb(other)}"
    count = len(first.ops) + len(second.ops)
    if count > MOST_OPS:
        return f"{count} ops in all, more than the {MOST_OPS} that a kernel may have"
    if reshaped:
        return "a reshape between them gives the second other loops"
    if any(grouping.all[p].before >> first.number & 1 for p in second.parents if p != first.number):
        return "another kernel reads of the first and is read by the second"
    if ROWS in (first.kind, second.kind):
        wide = first if first.kind == ROWS else second
        assert wide.shape is not None
        length = math.prod(wide.shape[wide.rows :])
        if length > LONGEST_ROW:
            return f"a row of {length} elements is passed over once only: {LONGEST_ROW} stay in the cache"
    if second.kind == PRODUCT and any(v in made for v in _behind_views(grouping, second.product)):
        return f"{_short(second.product)} reads the whole of its operands before its first element is done"
    if first.kind == PRODUCT and second.kind == ROWS:
        return f"the tiles of {_short(first.ops[0])} are no whole rows"
    if first.shape != second.shape or first.rows != second.rows:
        return f"their loops differ: {_loops(first)} and {_loops(second)}"
    return "the second reads elements at other places than where the first makes them"


def _verb(other: str) -> str:
    return "writes" if other == "reads" else "reads"


def _loops(unit: Unit) -> str:
    shape = "x".join(map(str, unit.shape or ())) or "one element"
    return shape if unit.rows is None else f"rows of {shape} by {len(unit.shape or ()) - unit.rows} dimensions"


def _short(op: ir.Operation) -> str:
    return op.name.removeprefix("stablehlo.")
