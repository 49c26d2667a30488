"""mxu-schedule: the order of a program's kernels, and when what they need is brought to fast memory behind others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_verify import is_shared
from stablehlo_py.dialects.mxu_verify_program import argument_of, kernel_blocks, kernels_of, origin_of
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import record
from stablehlo_py.targets.tpu import emit

WORTH = 0.99  # another order than the program's must be at least so much shorter

# Ops that may not change their places, and what may not pass them.
FIXED = ("custom_call", "infeed", "outfeed", "send", "recv", "rng", "while", "if", "case", "all_reduce")


class MxuSchedule(Pass):
    """List scheduling of kernels on two resources, the core's units and the HBM; then prefetches as late as hides them.

    kernel(%w in VMEM)   ->   %s = prefetch_start %w; other kernels; %p = prefetch_wait %s; kernel(%p)
    """

    name: ClassVar[str] = "mxu-schedule"
    vmem_limit: int = 0

    def run(self, op: ir.Operation) -> None:
        mxu.load(op.context)
        for block in kernel_blocks(op):
            machine = chip(ir.StringAttr(kernels_of(block)[0].attributes["chip"]).value)
            reorder(block, machine)
            prefetch(block, machine, machine.vmem_for_blocks(self.vmem_limit))


@record
class Cost:
    """Of one kernel: cycles, cycles of the HBM in them, and of the HBM for what has to be there when it starts."""

    cycles: float
    hbm: float
    need: float


def cost_of(kernel: ir.Operation, machine: Chip) -> Cost:
    """From the plan of a product, and from bytes."""
    rate = machine.hbm_bytes_per_cycle * machine.cores
    hbm = need = 0.0
    arguments = kernel.regions[0].blocks[0].arguments
    for argument in arguments:
        cycles = mxu.stored_bytes(tensor_type(mxu.ref_tensor(argument.type))) / rate
        if mxu.ref_space(argument.type) == "hbm":
            hbm += cycles
        elif argument.arg_number < len(arguments) - 1:
            need += cycles
    launch = machine.calibration.launch_seconds * machine.clock_hz
    estimate = ir.FloatAttr(kernel.attributes["estimate"]).value if "estimate" in kernel.attributes else 0.0
    return Cost(launch + max(hbm, estimate), hbm, need)


# --- the order


def reorder(block: ir.Block, machine: Chip) -> None:
    """Put the kernels into the order of the list schedule where that is shorter than their own."""
    operations = [view.operation for view in block.operations]
    if any(op.name.removeprefix("stablehlo.") in FIXED or op.name == "func.call" for op in operations):
        return
    kernels = [i for i, op in enumerate(operations) if op.name == "mxu.kernel"]
    before = _dependences(operations)
    costs = {i: cost_of(operations[i], machine) for i in kernels}
    order = list_schedule(kernels, before, costs)
    if length(order, costs) >= WORTH * length(kernels, costs):
        return
    placed: dict[int, None] = {}
    for i in order:
        for j in sorted(before[i] | {i}):
            placed.setdefault(j)
    for i in range(len(operations)):
        placed.setdefault(i)
    for i in placed:  # the terminator is the last of them
        block.append(operations[i])


def _dependences(operations: Sequence[ir.Operation]) -> dict[int, set[int]]:
    """All ops of the block that have to come before each."""
    made: dict[ir.Value, int] = {}
    before: dict[int, set[int]] = {}
    for i, op in enumerate(operations):
        own = {made[v] for v in _operands(op) if v in made}
        before[i] = own.union(*(before[j] for j in own))
        for result in op.results:
            made[result] = i
    return before


def _operands(op: ir.Operation) -> list[ir.Value]:
    """What an op takes, in its regions too."""
    found = list(op.operands)
    if op.name != "mxu.kernel":
        for region in op.regions:
            for block in region.blocks:
                for view in block.operations:
                    found += _operands(view.operation)
    return found


def list_schedule(kernels: Sequence[int], before: dict[int, set[int]], costs: dict[int, Cost]) -> list[int]:
    """Of the kernels that can run, the one that waits least for what it needs; then the one with the longest way to the end."""
    waits = {i: {j for j in before[i] if j in costs} for i in kernels}
    rest: dict[int, float] = {}
    for i in reversed(kernels):
        rest[i] = costs[i].cycles + max((rest[j] for j in kernels if i in waits[j]), default=0.0)
    order: list[int] = []
    free = 0.0  # time in which the HBM was idle and has brought nothing yet
    while len(order) < len(kernels):
        done = set(order)
        ready = [i for i in kernels if i not in done and waits[i] <= done]
        best = min(ready, key=lambda i: (max(0.0, costs[i].need - free), -rest[i], i))
        order.append(best)
        free = max(0.0, free - costs[best].need) + costs[best].cycles - min(costs[best].cycles, costs[best].hbm)
    return order


def length(order: Sequence[int], costs: dict[int, Cost]) -> float:
    """Cycles of an order: kernels, and waits for what the HBM had no time to bring before."""
    total = free = 0.0
    for i in order:
        cost = costs[i]
        total += max(0.0, cost.need - free) + cost.cycles
        free = max(0.0, free - cost.need) + cost.cycles - min(cost.cycles, cost.hbm)
    return total


# --- prefetches


@record
class Range:
    """Bytes at an offset that are taken from kernel `first` to kernel `last`."""

    first: int
    last: int
    offset: int
    bytes: int


def first_fit(taken: Sequence[Range], first: int, last: int, size: int, base: int, end: int) -> int | None:
    """The lowest offset from base on where `size` bytes are free from kernel `first` to kernel `last`."""
    offset = base
    for own in sorted((r for r in taken if r.first <= last and first <= r.last), key=lambda r: r.offset):
        if own.offset - offset >= size:
            break
        offset = max(offset, own.offset + own.bytes)
    return offset if offset + size <= end else None


def fast_memory(machine: Chip, limit: int) -> tuple[int, int]:
    """Where arrays may lie in fast memory beside blocks: from, to."""
    if machine.cmem_bytes:
        return 0, machine.cmem_bytes * machine.cores
    return limit, machine.vmem_bytes


@record
class Need:
    """What kernel `kernel` takes as operand `operand` from fast memory. cycles: of the HBM; earliest: the first kernel
    before which it can be brought."""

    kernel: int
    operand: int
    space: str
    shared: bool
    bytes: int
    cycles: float
    earliest: int


def prefetch(block: ir.Block, machine: Chip, limit: int) -> None:
    """Start each array that a kernel takes from fast memory before so many kernels that they hide it, if there is room."""
    kernels = kernels_of(block)
    costs = [cost_of(kernel, machine) for kernel in kernels]
    idle = [max(0.0, cost.cycles - cost.hbm) for cost in costs]
    needs = _needs(kernels, machine)
    base, end = fast_memory(machine, limit)
    starts = []
    for need, own in zip(needs, latest_starts(needs, idle, base, end), strict=True):
        kernel = kernels[need.kernel]
        start, wait = _ops(kernel.operands[need.operand], kernel, need.space, own.offset, need.shared)
        kernel.operands[need.operand] = wait.results[0]
        starts.append((own.first, start))
    for first, start in starts:
        _move_up(start, _first_wait(kernels[first]))


def _needs(kernels: Sequence[ir.Operation], machine: Chip) -> list[Need]:
    """In the order of the kernels."""
    number = {kernel.results[0]: i for i, kernel in enumerate(kernels)}
    found = []
    for k, kernel in enumerate(kernels):
        for i, operand in enumerate(kernel.operands):
            argument = argument_of(kernel, i)
            space = mxu.ref_space(argument.type)
            if space in ("hbm", "smem"):
                continue
            shared, size = is_shared(argument), mxu.stored_bytes(tensor_type(operand.type))
            cores = machine.cores if shared or space == "cmem" else 1
            cycles = size / cores / machine.hbm_bytes_per_cycle
            earliest = _first_kernel_after(operand, kernels, number)
            found.append(Need(k, i, space, shared, machine.held_bytes(size, shared), cycles, earliest))
    return found


def latest_starts(needs: Sequence[Need], idle: Sequence[float], base: int, end: int) -> list[Range]:
    """From the last to the first: each ends when the next one starts, and starts as late as the idle HBM lets it.

    One that takes the room of what a kernel before its own needs has to start behind that kernel.
    """
    bounds = [need.earliest for need in needs]
    while True:
        result = _latest_starts(needs, bounds, idle, base, end)
        if not isinstance(result, int):
            return result
        # The last need in the way of this one gives way.
        kernel = needs[result].kernel
        late = max(i for i, need in enumerate(needs) if need.kernel > kernel and bounds[i] <= kernel)
        bounds[late] = kernel + 1


def _latest_starts(
    needs: Sequence[Need], bounds: Sequence[int], idle: Sequence[float], base: int, end: int
) -> list[Range] | int:
    """With none before its bound; or the number of a need for which nothing is left at its own kernel."""
    idle = list(idle)
    taken: list[Range] = []
    next_start = len(idle)
    for number in reversed(range(len(needs))):
        need, k = needs[number], needs[number].kernel
        # Not behind the next one, if there is room for that.
        wanted = max(bounds[number], min(k, next_start))
        places = ((at, first_fit(taken, at, k, need.bytes, base, end)) for at in range(min(wanted, k), k + 1))
        first, offset = next(((at, place) for at, place in places if place is not None), (k, None))
        if offset is None:
            return number
        left = need.cycles
        while left > 0 and first > bounds[number]:
            place = first_fit(taken, first - 1, k, need.bytes, base, end)
            if place is None:
                break
            first, offset = first - 1, place
            hidden = min(left, idle[first])
            left, idle[first] = left - hidden, idle[first] - hidden
        next_start = min(next_start, first)
        taken.append(Range(first, k, offset, need.bytes))
    return taken[::-1]


def _first_kernel_after(value: ir.Value, kernels: Sequence[ir.Operation], number: dict[ir.Value, int]) -> int:
    """The first kernel before which a value can be there: behind those that it is made from."""
    op = maker(origin_of(value))
    if op is None:
        return 0
    if op.name == "mxu.kernel":
        return number.get(op.results[0], len(kernels) - 1) + 1
    return max((_first_kernel_after(v, kernels, number) for v in _operands(op)), default=0)


def _first_wait(kernel: ir.Operation) -> ir.Operation:
    """The first of the waits right before a kernel, or the kernel: starts come before waits."""
    operations = [view.operation for view in kernel.block.operations]
    place = next(i for i, op in enumerate(operations) if op.results and op.results[0] == kernel.results[0])
    while place > 0 and operations[place - 1].name == "mxu.prefetch_wait":
        place -= 1
    return operations[place]


def _ops(
    value: ir.Value, kernel: ir.Operation, space: str, offset: int, shared: bool
) -> tuple[ir.Operation, ir.Operation]:
    with ir.InsertionPoint(kernel), kernel.location:
        attributes = {"space": emit.text(space), "offset": emit.i64(offset), "shared": emit.flag(shared)}
        start = ir.Operation.create("mxu.prefetch_start", results=[value.type], operands=[value], attributes=attributes)
        wait = ir.Operation.create("mxu.prefetch_wait", results=[value.type], operands=[start.results[0]])
    return start, wait


def _move_up(start: ir.Operation, anchor: ir.Operation) -> None:
    """Before `anchor`, with all that the array is made of and that is not there yet."""
    block = anchor.block
    place = {}
    for i, view in enumerate(block.operations):
        for result in view.operation.results:
            place[result] = i
    limit = place[anchor.results[0]]
    needed: list[ir.Operation] = []

    def visit(value: ir.Value) -> None:
        if place.get(value, -1) < limit:
            return
        owner = value.owner.operation
        for operand in _operands(owner):
            visit(operand)
        if not any(op.results[0] == owner.results[0] for op in needed):
            needed.append(owner)

    visit(start.results[0])
    for op in needed:
        op.move_before(anchor)
