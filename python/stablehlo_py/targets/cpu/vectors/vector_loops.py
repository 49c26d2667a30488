"""The loops that take the place of one: over whole vectors, and what is left.

    for j in a .. b: s(j)   ->   for j in a .. b' by unroll * lanes: S(j), S(j + lanes), ..;   the rest

What has as many vectors as a step or fewer is no loop. The rest is masked where the target has masks, else the loop as
it was. Reductions keep `unroll` vectors of partial results.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from stablehlo_py.core.rewire import remap
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.vectors.vector_body import Body
from stablehlo_py.targets.cpu.vectors.vector_plan import LONG, ROWS, Plan, Rows
from stablehlo_py.transforms.kernels.kernel_parallel import constant


def write_loop(plan: Plan, cpu: Cpu) -> bool:
    """Replace a loop by its vectors; whether some of them are stored past the caches."""
    op = plan.loop.op
    if plan.rows is not None:
        _write_rows(plan, plan.rows, cpu)
        return False
    with ir.InsertionPoint(op), op.location:
        _move_uniform(plan, op)
        body = Body(plan, cpu)
        results = _Loops(plan, cpu, body).write()
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return bool(body.past)


def _write_rows(plan: Plan, rows: Rows, cpu: Cpu) -> None:
    """for i: for j: s(i, j)   ->   for i by ROWS: for j: s(i, j), s(i + 1, j), ..;   the rows that are left, one by one"""
    whole = rows.count // ROWS * ROWS

    def write(first: ir.Value, count: int) -> None:
        _Loops(plan, cpu, Body(plan, cpu, first, count), first, count).write()

    with ir.InsertionPoint(rows.op), rows.op.location:
        _move_uniform(plan, rows.op)
        nest.loop(0, whole, ROWS, lambda first: write(first, ROWS))
        if whole != rows.count:
            nest.loop(whole, rows.count, 1, lambda first: write(first, 1))
    rows.op.erase()


def _move_uniform(plan: Plan, before: ir.Operation) -> None:
    for op in plan.loop.uniform:
        op.move_before(before)


class _Loops:
    """row, count: the rows that are taken at once."""

    def __init__(self, plan: Plan, cpu: Cpu, body: Body, row: ir.Value | None = None, count: int = 1) -> None:
        self.plan, self.cpu, self.body, self.row, self.count = plan, cpu, body, row, count
        self.masks = cpu.masks and not plan.loop.has_complex  # a mask of numbers is none of their parts

    def write(self) -> list[ir.Value]:
        """What the loop gives."""
        plan, operands = self.plan, list(self.plan.loop.op.operands)
        low, high = (v if (number := constant(v)) is None else number for v in operands[:2])
        partial = [start for r in self.body.reductions for part in r.start() for start in [part] * plan.unroll]
        end, over = self._whole_vectors(low, high)
        partial = self._main(low, end, partial)
        if over and self.masks:
            partial = self._masked_rest(end, high, partial)
        states = zip(*(self.body.states_of(partial[u :: plan.unroll]) for u in range(plan.unroll)), strict=True)
        totals = [r.total(s, init) for r, s, init in zip(self.body.reductions, states, operands[3:], strict=True)]
        if over and not self.masks:
            return self._scalar_rest(end, high, totals)
        return totals

    def _whole_vectors(self, low: int | ir.Value, high: int | ir.Value) -> tuple[int | ir.Value, bool]:
        """Where the steps of the main loop end, and whether any may be left."""
        plan = self.plan
        if plan.steps is None:
            left = arith.remui(nest.index(nest.subtract(high, low)), nest.index(plan.step))
            return nest.subtract(high, left), True
        whole = plan.steps // plan.step * plan.step
        if not plan.is_cut:
            return nest.add(low, whole), whole != plan.steps
        return (high, False) if whole == plan.steps else (nest.minimum(high, whole), True)

    def _main(self, low: int | ir.Value, end: int | ir.Value, starts: list[ir.Value]) -> list[ir.Value]:
        most = self.plan.unroll
        if self.plan.streams > 1:
            return self._over(low, nest.add(low, self.plan.run), starts, most)
        if not self.body.past:
            return self._over(low, end, starts, most)
        # where the buffers are aligned for it, as those of the runtime are
        aligned = functools.reduce(
            arith.andi, [address.is_aligned(self.cpu.vector_bytes) for address in self.body.past]
        )
        if starts and self.plan.loop.work > LONG:
            # a branch in each step, where one vector waits for sums anyway, is less code than the loop once more
            self.body.is_streaming = aligned
            return self._over(low, end, starts, most)

        def over(streaming: bool, count: int) -> list[ir.Value]:
            self.body.is_streaming = streaming
            return self._over(low, end, starts, count)

        return nest.choose(
            aligned,
            [v.type for v in starts],
            lambda: over(True, most),
            # the bits of a reduction must not depend on where its buffers are
            lambda: over(False, most if starts else 1),
        )

    def _over(self, low: int | ir.Value, end: int | ir.Value, starts: list[ir.Value], count: int) -> list[ir.Value]:
        """Whole vectors from low to end, `count` a step: a loop, where there is more than one step of them."""
        by = self.plan.lanes * count // self.plan.streams
        if isinstance(low, int) and isinstance(end, int) and end - low <= by:
            return self._step(low, starts, count) if end > low else starts
        if self.plan.early is not None:
            return self._over_early(low, end, starts, count)
        return nest.loop(low, end, by, lambda place, *carried: self._step(place, carried, count), starts)

    def _over_early(
        self, low: int | ir.Value, end: int | ir.Value, starts: Sequence[ir.Value], count: int
    ) -> list[ir.Value]:
        """The same where part of a step is done a step ahead: for the last step again, since nothing may be behind it."""
        plan, behind = self.plan, [self.plan.behind(u) for u in range(count)]
        assert plan.steps is not None
        by = plan.lanes * count
        last = nest.add(0 if plan.is_cut else low, plan.steps // by * by - by)

        def early(place: int | ir.Value) -> list[ir.Value]:
            return self.body.write_early(nest.minimum(place, last), behind)

        def step(place: ir.Value, *values: ir.Value) -> list[ir.Value]:
            carried, before = values[: len(starts)], values[len(starts) :]
            here, ahead = self.body.addresses_at(place), early(nest.add(place, by))
            after = self.body.write_late(place, here, [(b, carried[u::count]) for u, b in enumerate(behind)], before)
            return [after[u][k] for k in range(len(after[0])) for u in range(count)] + ahead

        return nest.loop(low, end, by, step, [*starts, *early(low)])[: len(starts)]

    def _step(self, place: int | ir.Value, carried: Sequence[ir.Value], count: int) -> list[ir.Value]:
        here = self.body.addresses_at(place)
        after = self.body.write_all(place, here, [(self.plan.behind(u), carried[u::count]) for u in range(count)])
        return [after[u][k] for k in range(len(after[0])) for u in range(count)]

    def _masked_rest(self, low: int | ir.Value, high: int | ir.Value, partial: list[ir.Value]) -> list[ir.Value]:
        """What is left, by vectors of which the last is not full; it goes to the first partial results."""
        plan, n = self.plan, self.plan.unroll
        ends_within = plan.steps is not None and plan.steps % plan.step <= plan.lanes

        def write(place: int | ir.Value, *carried: ir.Value) -> list[ir.Value]:
            mask = nest.first_lanes(plan.lanes, nest.subtract(high, place))
            return self.body.write(place, self.body.addresses_at(place), 0, carried, mask)

        first = partial[::n]
        once = n == 1 or ends_within
        first = write(low, *first) if once else nest.loop(low, high, plan.lanes, write, first)
        after = list(partial)
        after[::n] = first
        return after

    def _scalar_rest(self, low: int | ir.Value, high: int | ir.Value, results: list[ir.Value]) -> list[ir.Value]:
        """The loop as it was for the steps that are left; with several rows, once for each."""
        first, last = nest.index(low), nest.index(high)
        rows = [] if self.row is None else [nest.index(nest.add(self.row, r)) for r in range(self.count)]
        for number in range(self.count):
            clone = self.plan.loop.op.clone().operation
            clone.operands[0], clone.operands[1] = first, last
            for k, result in enumerate(results):
                clone.operands[3 + k] = result
            if self.row is not None and self.plan.rows is not None:
                remap(clone, {self.plan.rows.variable: rows[number]})
            results = list(clone.results)
        return results
