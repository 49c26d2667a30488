"""Innermost loops as loops over vectors of the machine's width, where their steps can run side by side.

    for i: y[r, i] = exp(x[r, i]) - m[r]   ->   for i by 16: y[r, i .. i + 16] = exp(x[r, i .. i + 16]) - splat(m[r])

LLVM's vectoriser would do the same, in ten times the time. It is left to it where one loop of a kernel cannot be done
here. Each lane computes what the scalar loop does, bit for bit; sums that may be reordered are kept in lanes, four vectors
of them, and joined at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import operations_where
from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.mlir import arith, ir, scf, vector
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.loop_vectors import JOINS, Plan, plan_of
from stablehlo_py.targets.cpu.nest import VECTOR_CODE
from stablehlo_py.transforms.hlo_form_kernels import KERNEL

TOGETHER = 4  # vectors in one step of a sum, kept apart: an addition takes as many cycles


@dataclass(frozen=True)
class CpuVectorizeLoops(Pass):
    """Turn innermost loops of independent steps into loops over vectors, in kernels where that can be done to all of them."""

    name: ClassVar[str] = "cpu-vectorize-loops"

    features: str = ""

    def run(self, op: ir.Operation) -> None:
        cpu = cpu_of(features_of(op, self.features))
        for view in op.regions[0].blocks[0].operations:
            function = view.operation
            if KERNEL not in function.attributes or VECTOR_CODE in function.attributes:
                continue
            plans = plans_of(function, cpu.vector_bytes)
            for plan in plans:
                _Writer(plan, lanes_of(plan, cpu.vector_bytes)).write()
            if plans:
                function.attributes[VECTOR_CODE] = ir.UnitAttr.get()


def plans_of(function: ir.Operation, vector_bytes: int) -> list[Plan]:
    """Plans for all innermost loops of a kernel, or none."""
    nested = operations_where(function, lambda op: len(op.regions) > 0 and op.operation != function)
    if any(op.name != "scf.for" for op in nested):
        return []
    plans: list[Plan] = []
    for loop in nested:
        if any(len(op.operation.regions) > 0 for op in loop.regions[0].blocks[0].operations):
            continue
        plan = plan_of(loop)
        if plan is None or (plan.steps is not None and plan.steps < lanes_of(plan, vector_bytes)):
            return []
        plans.append(plan)
    return plans


def lanes_of(plan: Plan, vector_bytes: int) -> int:
    return 8 * vector_bytes // plan.widest


class _Writer:
    """Writes the loops that take the place of one."""

    def __init__(self, plan: Plan, lanes: int) -> None:
        self.plan, self.lanes = plan, lanes
        self.old = self.first = plan.loop  # the first of the new loops, when there is one
        self.scalars: dict[ir.Value, ir.Value] = {}  # uniform values, in front of the loops
        self.splats: dict[ir.Value, ir.Value] = {}

    def write(self) -> None:
        plan, old = self.plan, self.old
        with ir.InsertionPoint(old), old.location:
            for view in plan.body.operations:
                if len(view.results) and view.results[0] in plan.uniform:
                    self.scalars.update(zip(view.results, self.copy(view.operation, self.scalars).results, strict=True))
            low, high = list(old.operands)[:2]
            totals = list(old.operands)[3:]
            together = TOGETHER if plan.joins and (plan.steps is None or plan.steps >= TOGETHER * self.lanes) else 1
            done = low
            for count in dict.fromkeys((together, 1)):
                if plan.steps is not None and plan.steps % (self.lanes * together) == 0 and count != together:
                    break
                done, totals = self.vectors(done, high, count, totals)
            if plan.steps is None or plan.steps % self.lanes:
                totals = self.rest(done, high, totals)
        for result, total in zip(old.results, totals, strict=True):
            result.replace_all_uses_with(total)
        old.erase()

    def vectors(
        self, low: ir.Value, high: ir.Value, count: int, totals: list[ir.Value]
    ) -> tuple[ir.Value, list[ir.Value]]:
        """A loop by `count` vectors as far as they are whole; where it ends, and the totals so far."""
        by = _index(self.lanes * count)
        whole = arith.muli(arith.divui(arith.subi(high, low), by), by)
        end = arith.addi(low, whole)
        starts = [self.start(join) for join in self.plan.joins for _ in range(count)]
        loop = scf.ForOp(low, end, by, starts)
        if self.first is self.old:
            self.first = loop.operation
        with ir.InsertionPoint(loop.body):
            carried = list(loop.inner_iter_args)
            places = [loop.induction_variable]
            places += [arith.addi(places[0], _index(number * self.lanes)) for number in range(1, count)]
            ends = self.steps(places, [carried[number::count] for number in range(count)])
            scf.YieldOp([value for values in zip(*ends, strict=True) for value in values])
        results = list(loop.results_)
        joined = []
        for n, (join, total) in enumerate(zip(self.plan.joins, totals, strict=True)):
            parts = results[n * count : (n + 1) * count]
            while len(parts) > 1:
                parts = [self.like(join, [a, b], a.type) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            kind = ir.Attribute.parse(f"#vector.kind<{JOINS[join.name][0]}>")
            given = {"fastmath": join.attributes["fastmath"]} if "fastmath" in join.attributes else {}
            # The total takes part in it: by itself, a sum of lanes starts from 0.0, which a sum of -0.0 is not.
            lanes = ir.Operation.create(
                "vector.reduction", results=[total.type], operands=[*parts, total], attributes={"kind": kind, **given}
            )
            joined.append(lanes.results[0])
        return end, joined

    def steps(self, places: list[ir.Value], carried: list[list[ir.Value]]) -> list[list[ir.Value]]:
        """The body on the vectors at some places, op by op: so loads come before stores. What each carries on."""
        arguments = list(self.plan.body.arguments)
        states = [
            dict(zip(arguments, (place, *values), strict=True)) for place, values in zip(places, carried, strict=True)
        ]
        operations = [view.operation for view in self.plan.body.operations]
        for op in operations[:-1]:
            if not len(op.results) or op.results[0] not in self.plan.uniform:
                for now in states:
                    self.step(op, now)
        return [[now[v] for v in operations[-1].operands] for now in states]

    def step(self, op: ir.Operation, now: dict[ir.Value, ir.Value]) -> None:
        """One op on one vector; `now` has the values there."""
        if len(op.results) and op.results[0] in self.plan.addresses:
            now.update(zip(op.results, self.copy(op, {**self.scalars, **now}).results, strict=True))
        elif op.name == "memref.store":
            value, buffer, *indices = op.operands
            vector.store(self.lane_values(value, now), buffer, [self.scalar(v, now) for v in indices])
        elif op.name == "memref.load":
            buffer, *indices = op.operands
            ty = self.vector_type(op.results[0].type)
            now[op.results[0]] = vector.load(ty, buffer, [self.scalar(v, now) for v in indices])
        elif op.name in ("arith.index_cast", "arith.index_castui"):
            first = self.copy(op, {**self.scalars, **now}).results[0]
            spread = vector.broadcast(self.vector_type(first.type), first)
            now[op.results[0]] = arith.addi(spread, self.numbers(first.type))
        else:
            operands = [self.lane_values(v, now) for v in op.operands]
            now[op.results[0]] = self.like(op, operands, self.vector_type(op.results[0].type))

    def rest(self, low: ir.Value, high: ir.Value, totals: list[ir.Value]) -> list[ir.Value]:
        """The loop as it was, for the steps that fill no vector."""
        loop = scf.ForOp(low, high, self.old.operands[2], totals)
        now = dict(zip(self.plan.body.arguments, loop.body.arguments, strict=True))
        with ir.InsertionPoint(loop.body):
            for view in self.plan.body.operations:
                now.update(zip(view.results, self.copy(view.operation, now).results, strict=True))
        return list(loop.results_)

    def copy(self, op: ir.Operation, values: dict[ir.Value, ir.Value]) -> ir.Operation:
        """A scalar op with other operands."""
        clone = op.clone()
        for i, operand in enumerate(op.operands):
            if operand in values:
                clone.operands[i] = values[operand]
        return clone

    def like(self, op: ir.Operation, operands: list[ir.Value], ty: ir.Type) -> ir.Value:
        """The same op on other operands."""
        attributes = {name: op.attributes[name] for name in op.attributes}
        return ir.Operation.create(op.name, results=[ty], operands=operands, attributes=attributes).results[0]

    def scalar(self, value: ir.Value, now: dict[ir.Value, ir.Value]) -> ir.Value:
        return now.get(value) or self.scalars.get(value) or value

    def lane_values(self, value: ir.Value, now: dict[ir.Value, ir.Value]) -> ir.Value:
        """A value as a vector; what is uniform is spread once, in front of the loop."""
        if value in now:
            return now[value]
        if value not in self.splats:
            scalar = self.scalars.get(value, value)
            with ir.InsertionPoint(self.first):
                self.splats[value] = vector.broadcast(self.vector_type(scalar.type), scalar)
        return self.splats[value]

    def vector_type(self, element: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], element)

    def numbers(self, element: ir.Type) -> ir.Value:
        """0, 1, 2, ... in the lanes."""
        ty = self.vector_type(element)
        dtype = np.int32 if ir.IntegerType(element).width == 32 else np.int64
        return arith.ConstantOp(ty, ir.DenseElementsAttr.get(np.arange(self.lanes, dtype=dtype), type=ty)).result

    def start(self, join: ir.Operation) -> ir.Value:
        """Lanes that change nothing when they are joined."""
        element = join.results[0].type
        neutral = JOINS[join.name][1]
        attribute = (
            ir.IntegerAttr.get(element, int(neutral))
            if isinstance(element, ir.IntegerType)
            else ir.FloatAttr.get(element, neutral)
        )
        ty = self.vector_type(element)
        return arith.ConstantOp(ty, ir.DenseElementsAttr.get_splat(ty, attribute)).result


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)
