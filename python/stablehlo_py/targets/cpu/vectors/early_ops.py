"""What of a long step with a sum is computed a step ahead.

    for j: s += b(a(j))   ->   v = a(0);  for j: w = a(j + 1), s += b(v), v = w

Where each op waits for the one before, a core gets through what it can hold at a time divided by how long that waits: what
is ready when its turn comes waits less. 1.1 to 1.2 times the speed for a softmax, a cross entropy and sums of tanh and of
logistic functions on a Zen 3, most while another thread has half of the core. Loops without sums gain nothing.

Early are the ops that the longest chain needs before some level of it. All else, stores and sums too, stays in its step.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.vectors.vector_legality import Innermost

LEAST_CHAIN = 12  # ops that wait for each other
MOST_CARRIED = 2  # values from step to step, which take registers: with three, sums of sines and of gelu get slower


@record(eq=False)
class Early:
    """values: what is computed a step ahead; carried: those of them that the rest uses."""

    values: frozenset[ir.Value]
    carried: Sequence[ir.Value]


def early_ops(loop: Innermost) -> Early | None:
    """Cut the body of a loop where fewest values cross, in the middle third of its longest chain; the first such place."""
    if not loop.reductions or loop.has_complex or loop.work < LEAST_CHAIN:
        return None
    levels = _latest_levels(loop)
    longest = max(levels)
    if longest < LEAST_CHAIN:
        return None
    middle = range(longest // 3, longest - longest // 3 + 1)
    cuts = [cut for level in middle if (cut := _cut(loop, levels, level)) is not None]
    best = min(cuts, key=lambda cut: len(cut.carried), default=None)
    return best if best is not None and len(best.carried) <= MOST_CARRIED else None


def _latest_levels(loop: Innermost) -> list[int]:
    """How far along the longest chain each op of the body must be done at the latest."""
    behind: dict[ir.Value, int] = {}  # ops from a value to the end
    rests: list[int] = []
    for op in reversed(loop.body):
        rests.append(max((behind.get(v, 0) for v in op.results), default=0))
        behind.update((v, max(behind.get(v, 0), rests[-1] + 1)) for v in op.operands)
    return [max(rests) - rest for rest in reversed(rests)]


def _cut(loop: Innermost, levels: Sequence[int], level: int) -> Early | None:
    """What must be done at a level; None where some of it belongs to its step."""
    by_level = list(zip(loop.body, levels, strict=True))
    early = [op for op, own in by_level if own <= level and not any(v in loop.linear for v in op.results)]
    sums = {r.op.results[0] for r in loop.reductions}
    if any(op.name == "memref.store" or _counts(loop, op) or op.results[0] in sums for op in early):
        return None
    values = frozenset(op.results[0] for op in early)
    late = [op for op in loop.body if not any(v in values for v in op.results)]
    carried = dict.fromkeys(v for op in late for v in op.operands if v in values)
    return Early(values, list(carried)) if carried else None


def _counts(loop: Innermost, op: ir.Operation) -> bool:
    """Whether an op computes with the number of its step; a load only reads there."""
    return op.name != "memref.load" and any(v in loop.linear for v in op.operands)
