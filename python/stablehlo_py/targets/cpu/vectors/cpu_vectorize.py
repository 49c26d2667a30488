"""Innermost loops over contiguous elements as loops over vectors.

vector_legality: what a loop may contain; vector_plan: whether and how it pays; vector_loops: the loops that are written,
vector_body: one vector of them (of complex numbers, two), vector_halves: two of bf16, vector_reductions: what they sum up,
early_ops: what is computed a step ahead. delayed_rows, early_rows, uniform_sums, float_exponents: rewrites that go before.
ordered_loops: those that LLVM's vectoriser need not try either.

The shape of a loop decides about its bits, not where it was cut: flat loops that the executor splits are cut at whole
blocks, so that no part but the last has a rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.collect import operations_named, operations_where
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.ordered_loops import is_ordered
from stablehlo_py.targets.cpu.emit.streaming import stream_end
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.vectors.delayed_rows import delay_last_loops
from stablehlo_py.targets.cpu.vectors.early_rows import take_first_loops_early
from stablehlo_py.targets.cpu.vectors.float_exponents import take_float_exponents
from stablehlo_py.targets.cpu.vectors.uniform_sums import join_uniform_sums
from stablehlo_py.targets.cpu.vectors.vector_halves import are_halves
from stablehlo_py.targets.cpu.vectors.vector_legality import Innermost, innermost, trip_count
from stablehlo_py.targets.cpu.vectors.vector_loops import write_loop
from stablehlo_py.targets.cpu.vectors.vector_plan import (
    BLOCK,
    EARLY_VECTORS,
    FEW_STEPS,
    MANY_BLOCKS,
    SMALL_BLOCK,
    Plan,
    early_of,
    is_worth,
    lanes_of,
    reads_ahead,
    rows_ahead,
    rows_around,
    stores_past,
    streams_of,
    unroll_of,
    vectors_wanted,
    written_past_caches,
)
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernels.kernel_parallel import EXTENT, GRAIN, RANGE, constant, i64, set_inputs

# beside the ops of the loops, on lanes
MADE = ("arith.", "builtin.unrealized_conversion_cast", "complex.", "llvm.", "memref.", "scf.", "vector.")
SHORT = 16  # steps of a loop that LLVM's vectoriser would make no difference to


class CpuVectorize(Pass):
    """Rewrite innermost loops over contiguous elements as loops over vectors.

    features: LLVM's names of what the target can do; the host's when empty.
    """

    name: ClassVar[str] = "cpu-vectorize"
    is_trusted: ClassVar[bool] = True
    features: str = ""

    def run(self, op: ir.Operation) -> Made:
        cpu = cpu_of(features_of(op, self.features))
        functions = [f.operation for f in op.regions[0].blocks[0].operations]
        found = [f for f in functions if KERNEL in f.attributes and nest.VECTOR_CODE not in f.attributes]
        for function in found:
            vectorize(function, cpu)
        return MADE if found else False


def vectorize(function: ir.Operation, cpu: Cpu) -> None:
    """Rewrite the innermost loops of a kernel; mark it by what is left, see nest.VECTOR_CODE and ORDERED_CODE."""
    found: list[Innermost] = []
    loops = operations_named(function, "scf.for", "scf.while", "scf.parallel")
    if delay_last_loops(function, [op for op in loops if op.name == "scf.for"], cpu):
        loops = operations_named(function, "scf.for", "scf.while", "scf.parallel")
    if take_first_loops_early(function, [op for op in loops if op.name == "scf.for"], cpu):
        loops = operations_named(function, "scf.for", "scf.while", "scf.parallel")
    left = [op for op in loops if op.name != "scf.for"]
    around = _ops_around(loops)
    for op in loops:
        if op.name != "scf.for" or op in around:
            continue
        loop, steps = innermost(op), trip_count(op)
        if loop is not None and join_uniform_sums(loop):
            loop = innermost(op)
        if loop is not None and is_worth(loop, cpu):
            if cpu.float_steps and take_float_exponents(loop, lanes_of(loop, cpu), cpu):
                loop = innermost(op)
                assert loop is not None
            found.append(loop)
        elif steps is None or steps > FEW_STEPS:
            left.append(op)
    if left and all(_is_short(op) or is_ordered(op) or operations_where(op, _is_on_vectors) for op in left):
        function.attributes[nest.ORDERED_CODE] = ir.UnitAttr.get()
    if not found:
        return
    streaming = False
    block = function.regions[0].blocks[0]
    plans = plans_of(function, found, cpu)
    with function.location, nest.shared_indices(block):
        for plan in plans:
            streaming |= write_loop(plan, cpu)
    if streaming:
        with ir.InsertionPoint(block.operations[len(block.operations) - 1]), function.location:
            stream_end()
    if not left:
        function.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()


def _is_on_vectors(op: ir.Operation) -> bool:
    """Whether an emitter wrote an op on vectors: LLVM's vectoriser leaves the loop around it as it is."""
    return op.name.startswith("vector.")


def _is_short(op: ir.Operation) -> bool:
    steps = trip_count(op) if op.name == "scf.for" else None
    return steps is not None and steps <= SHORT


def _ops_around(loops: Sequence[ir.Operation]) -> list[ir.Operation]:
    """The ops within a function that have one of the loops in them."""
    found: list[ir.Operation] = []
    for loop in loops:
        op = loop.parent
        while op is not None and op.name != "func.func" and op.operation not in found:
            found.append(op.operation)
            op = op.operation.parent
    return found


def plans_of(function: ir.Operation, loops: Sequence[Innermost], cpu: Cpu) -> list[Plan]:
    """A plan for each loop; where the executor cuts a kernel between them may change."""
    past, ahead = written_past_caches(function, cpu), reads_ahead(loops, cpu)
    cut = _cut_at_blocks(function, loops)
    plans = []
    for loop in loops:
        lanes, rows, is_cut = lanes_of(loop, cpu), rows_around(loop), loop.variable in cut
        steps = cut.get(loop.variable, trip_count(loop.op))
        runs = 1 if rows else streams_of(loop, lanes, cpu, is_cut=is_cut)
        early = early_of(loop, steps, lanes) if rows is None and runs == 1 else None
        most = 1 if rows else EARLY_VECTORS if early else vectors_wanted(loop, cpu)  # ROWS of them are many
        halves = rows is None and runs == 1 and are_halves(loop)
        most = max(most, 2) if halves else most
        unroll = most * runs if runs > 1 else unroll_of(loop, steps, lanes, most, is_cut=is_cut)
        plan = Plan(
            loop, lanes, unroll, steps, is_cut=is_cut, streams=runs, early=early, halves=halves and unroll % 2 == 0
        )
        if rows is not None:
            plan = replace(plan, rows=rows, ahead=rows_ahead(loop, rows.variable, cpu))
        else:
            in_line = is_cut or constant(loop.op.operands[0]) == 0
            stores = stores_past(loop, 2 * lanes if plan.halves else lanes, past) if in_line else ()
            plan = replace(plan, past=stores, ahead=ahead if runs == 1 else None)  # several have memory busy already
        plans.append(plan)
    return plans


def _cut_at_blocks(function: ir.Operation, loops: Sequence[Innermost]) -> dict[ir.Value, int]:
    """Let begin and end of a kernel count blocks from now on, where they bound nothing but these loops.

    The variables of the loops that run over blocks now, with the steps of all of them. A kernel of one block is not cut.
    """
    block = function.regions[0].blocks[0]
    bounds = list(block.arguments)[-2:]
    if EXTENT not in function.attributes or RANGE in function.attributes:
        return {}
    bounded = [loop for loop in loops if list(loop.op.operands)[:2] == bounds]
    if not bounded or any(len(list(v.uses)) != len(bounded) for v in bounds):
        return {}
    extent = ir.IntegerAttr(function.attributes[EXTENT]).value
    together = BLOCK if extent >= MANY_BLOCKS * BLOCK else SMALL_BLOCK
    is_cut = extent > together
    with ir.InsertionPoint.at_block_begin(block), function.location:
        low, high = nest.index(0), nest.index(extent)
        if is_cut:
            low = arith.muli(bounds[0], nest.index(together))
            high = arith.minsi(arith.muli(bounds[1], nest.index(together)), high)
    for loop in bounded:
        loop.op.operands[0], loop.op.operands[1] = low, high
    if is_cut:
        function.attributes[EXTENT] = i64(-(-extent // together))
        if GRAIN in function.attributes:
            function.attributes[GRAIN] = i64(-(-ir.IntegerAttr(function.attributes[GRAIN]).value // together))
        return {loop.variable: extent for loop in bounded}
    for _ in bounds:
        block.erase_argument(len(block.arguments) - 1)
    set_inputs(function)
    del function.attributes[EXTENT]
    return {}
