"""The cost of a whole program: its ops added up, loops by their trip count where it can be read off."""

from __future__ import annotations

from dataclasses import dataclass

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.mlir import ir
from stablehlo_py.ops.cost import Cost, cost_of


@dataclass(frozen=True)
class ProgramCost:
    """total, and each op's share, largest flops first; unknown_loops: while loops counted once for want of a count."""

    total: Cost
    by_op: dict[str, Cost]
    unknown_loops: int


def program_cost(main: ir.Operation) -> ProgramCost:
    """The cost of a function on StableHLO without calls."""
    import stablehlo_py.ops  # noqa: F401 - registers the rules

    counter = _Counter()
    counter.block(main.regions[0].blocks[0], 1)
    by_op = dict(sorted(counter.by_op.items(), key=lambda item: (-item[1].flops, -item[1].bytes)))
    return ProgramCost(sum(by_op.values(), Cost()), by_op, counter.unknown_loops)


class _Counter:
    def __init__(self) -> None:
        self.by_op: dict[str, Cost] = {}
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
                self.take(max(branches, key=lambda b: sum(c.flops + c.bytes for c in b.by_op.values())))
            elif op.name not in ("func.return", "stablehlo.return"):
                self.add(op.name, cost_of(view(op)).times(times))

    def add(self, name: str, cost: Cost) -> None:
        self.by_op[name] = self.by_op.get(name, Cost()) + cost

    def take(self, other: _Counter) -> None:
        self.unknown_loops += other.unknown_loops
        for name, cost in other.by_op.items():
            self.add(name, cost)
