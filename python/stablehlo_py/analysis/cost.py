"""The cost of a whole program: its ops added up, loops by their trip count where it can be read off."""

from __future__ import annotations

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.ops.cost import Cost, cost_of
from stablehlo_py.records import record

_PRODUCTS = ("stablehlo.dot_general", "stablehlo.convolution")


@record
class ProgramCost:
    """total, and each op's share, largest flops first; unknown_loops: while loops counted once for want of a count.

    flops_by_element: the same flops by what they are done in, as far as a machine has another rate for it.
    """

    total: Cost
    by_op: dict[str, Cost]
    flops_by_element: dict[str, int]
    unknown_loops: int


def arithmetic_of(op: Op) -> str:
    """Products of narrow elements are done in them, doubles as doubles; f32 stands for all the rest."""
    elements = {ty.element.name for ty in op.operand_types}
    if len(elements) == 1 and op.name in _PRODUCTS and elements <= {"bf16", "i8", "ui8"}:
        return elements.pop()
    return "f64" if "f64" in elements else "f32"


def program_cost(main: ir.Operation) -> ProgramCost:
    """The cost of a function on StableHLO without calls."""
    import stablehlo_py.ops  # noqa: F401 - registers the rules

    counter = _Counter()
    counter.block(main.regions[0].blocks[0], 1)
    by_op: dict[str, Cost] = {}
    by_element: dict[str, int] = {}
    for (name, element), cost in counter.costs.items():
        by_op[name] = by_op.get(name, Cost()) + cost
        by_element[element] = by_element.get(element, 0) + cost.flops
    by_op = dict(sorted(by_op.items(), key=lambda item: (-item[1].flops, -item[1].bytes)))
    return ProgramCost(sum(by_op.values(), Cost()), by_op, by_element, counter.unknown_loops)


class _Counter:
    def __init__(self) -> None:
        self.costs: dict[tuple[str, str], Cost] = {}  # by op and by what its arithmetic is done in
        self.unknown_loops = 0

    def block(self, block: ir.Block, times: int) -> None:
        for operation in block.operations:
            op = operation.operation
            if op.name == "stablehlo.while":
                counter = counter_of(op)
                self.unknown_loops += counter is None
                for region in op.regions:
                    self.block(region.blocks[0], times * (1 if counter is None else counter.trips))
            elif op.name in ("stablehlo.if", "stablehlo.case"):
                # the costliest branch stands for all
                branches = []
                for region in op.regions:
                    inner = _Counter()
                    inner.block(region.blocks[0], times)
                    branches.append(inner)
                self.take(max(branches, key=lambda b: sum(c.flops + c.bytes for c in b.costs.values())))
            elif op.name not in ("func.return", "stablehlo.return"):
                self.add((op.name, arithmetic_of(view(op))), cost_of(view(op)).times(times))

    def add(self, key: tuple[str, str], cost: Cost) -> None:
        self.costs[key] = self.costs.get(key, Cost()) + cost

    def take(self, other: _Counter) -> None:
        self.unknown_loops += other.unknown_loops
        for key, cost in other.costs.items():
            self.add(key, cost)
