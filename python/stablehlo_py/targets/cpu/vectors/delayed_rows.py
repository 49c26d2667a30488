"""The last loop of a row runs a row later, within a loop of the next row that has other work.

    for i: .. b(i, j) .. last(i, j)   ->   for i: .. last(i - 1, j), b(i, j) ..;   last(the end, j)

The loops of a row wait for each other's sums, and each for something else: sums for their latency, divisions for the
divider, stores past the caches for memory. Side by side they fill each other's gaps: 1.4 times the speed for layer
normalisation in the cache of a core, 1.2 for a softmax (Zen 3).

The first row runs `last` on whatever is there and writes a row that `last` writes once more behind it, with what is
right. So nothing is taken whose operations could fail on any numbers, and no result that may share its memory with an
operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stablehlo_py.core.collect import operations_under
from stablehlo_py.core.rewire import remap
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.vectors.vector_legality import DIVISIONS, Innermost, base_of, innermost, trip_count
from stablehlo_py.targets.cpu.vectors.vector_plan import LONG, is_worth, lanes_of
from stablehlo_py.transforms.kernels.kernel_parallel import EXTENT
from stablehlo_py.transforms.kernels.kernel_reuse import reuse_pairs

_SLOW = ("arith.divf", "math.sqrt")  # what has a unit of its own
_WAITS = ("arith.addf", "arith.mulf")
LEAST_ROWS = 64  # each part of a kernel runs one loop more


@record(eq=False)
class _Delay:
    """last: of the row loop `rows`; host: the loop that takes it; carried: what `last` uses of its row, beside the row."""

    rows: ir.Operation
    host: Innermost
    last: Innermost
    carried: Sequence[ir.Value]


def delay_last_loops(function: ir.Operation, loops: Sequence[ir.Operation], cpu: Cpu) -> bool:
    """Rewrite the loops over rows of a kernel for which it pays; whether there were any. loops: the scf.for of a kernel."""
    found = [d for op in loops if (d := _delay_of(function, op, cpu)) is not None]
    for delay in found:
        with delay.rows.location:
            _write(delay)
    return bool(found)


def _delay_of(function: ir.Operation, rows: ir.Operation, cpu: Cpu) -> _Delay | None:
    block = rows.regions[0].blocks[0]
    body = [op.operation for op in block.operations][:-1]
    loops = [op for op in body if op.name == "scf.for"]
    if (
        len(loops) < 2
        or body[-1] != loops[-1]
        or len(rows.results)
        or any(len(o.regions) for o in body if o not in loops)
    ):
        return None
    if row_count(function, rows) < LEAST_ROWS:
        return None
    last = vectors_of(loops[-1], cpu)
    if last is None or last.reductions or not _may_come_late(function, rows, last):
        return None
    read = {base_of(op.operands[0]) for op in last.body if op.name == "memref.load"}
    carried = _carried(rows, last)
    if carried is None:
        return None
    best: Innermost | None = None
    for op in body[:-1]:
        if op in loops:
            host = vectors_of(op, cpu)
            if host is not None and _pays(host, last) and fits(host, last, cpu):
                best = host if best is None or host.work >= best.work else best
        if _stored(op) & read:  # what the last loop reads is of the row before no longer
            break
    written = [b for op in body[:-1] for b in _stored(op)]
    if best is None or any(written.count(b) > 1 for b in read) or not _meet(best, last):
        return None
    return _Delay(rows, best, last, carried)


def row_count(function: ir.Operation, rows: ir.Operation) -> int:
    """Rows of a loop over them, in all parts of a kernel; 0 where that is unknown."""
    bounds = list(function.regions[0].blocks[0].arguments)[-2:]
    if EXTENT in function.attributes and list(rows.operands)[:2] == bounds:
        return ir.IntegerAttr(function.attributes[EXTENT]).value
    return trip_count(rows) or 0


def vectors_of(op: ir.Operation, cpu: Cpu) -> Innermost | None:
    """A loop that will be one over vectors."""
    loop = innermost(op) if not any(len(o.operation.regions) for o in op.regions[0].blocks[0].operations) else None
    return loop if loop is not None and is_worth(loop, cpu) else None


def _pays(host: Innermost, last: Innermost) -> bool:
    """Whether there is a gap to fill: beside divisions there always is, else where a short loop waits for sums of floats.

    Of two long ones the values would not find their place in registers.
    """
    if any(op.name in _SLOW for op in last.body):
        return last.work <= 2 * LONG
    return max(host.work, last.work) <= LONG and any(r.op.name in _WAITS for r in host.reductions)


def fits(host: Innermost, other: Innermost, cpu: Cpu) -> bool:
    """Whether two loops of a row can be one."""
    same_steps = list(host.op.operands)[:3] == list(other.op.operands)[:3]
    return same_steps and lanes_of(host, cpu) == lanes_of(other, cpu) and host.has_complex == other.has_complex


def _may_come_late(function: ir.Operation, rows: ir.Operation, last: Innermost) -> bool:
    """Whether what a loop stores is nobody else's, and none of its operations fails on any numbers."""
    if any(op.name in DIVISIONS for op in (*last.body, *last.uniform)):
        return False
    arguments = list(function.regions[0].blocks[0].arguments)
    shared = [arguments[written] for _, written in reuse_pairs(function)]
    stored = [base_of(op.operands[1]) for op in last.body if op.name == "memref.store"]
    touched = [
        base_of(op.operands[op.name == "memref.store"])
        for op in operations_under(rows)
        if op.name in ("memref.load", "memref.store")
    ]
    return all(b not in shared and touched.count(b) == stored.count(b) for b in stored)


def _carried(rows: ir.Operation, last: Innermost) -> list[ir.Value] | None:
    """The values of a row that its last loop uses; None where it goes by more places than its own and the row's number."""
    row = rows.regions[0].blocks[0].arguments[0]
    found: list[ir.Value] = []
    inside = operations_under(last.op)
    own = {v for op in inside for v in op.results}
    for op in inside:
        for value in op.operands:
            if value in own or value in (row, last.variable) or value in found or not is_of(value, rows):
                continue
            if not isinstance(value.type, ir.FloatType | ir.IntegerType):
                return None
            found.append(value)
        indices = list(op.operands)[1 + (op.name == "memref.store") :]
        if op.name in ("memref.load", "memref.store") and any(
            is_of(i, rows) and i not in (row, last.variable) for i in indices
        ):
            return None
    return found


def is_of(value: ir.Value, rows: ir.Operation) -> bool:
    """Whether a value is made within a loop."""
    owner = value.owner
    op = owner.owner if isinstance(value, ir.BlockArgument) else owner.parent
    while op is not None and op.name != "func.func":
        if op.operation == rows:
            return True
        op = op.operation.parent
    return False


def _stored(op: ir.Operation) -> set[ir.Value]:
    inside = operations_under(op) if len(op.regions) else [op]
    return {base_of(o.operands[1]) for o in inside if o.name == "memref.store"}


def _meet(host: Innermost, last: Innermost) -> bool:
    """Whether what the host stores is read by the last loop at the same places, if at all."""
    stored = {base_of(op.operands[1]): op for op in host.body if op.name == "memref.store"}
    for op in last.body:
        store = stored.get(base_of(op.operands[0])) if op.name == "memref.load" else None
        if store is None:
            continue
        places = [(i, i == host.variable) for i in list(store.operands)[2:]]
        own = [(i, i == last.variable) for i in list(op.operands)[1:]]
        same = len(places) == len(own) and all(a == b or (p and q) for (a, p), (b, q) in zip(places, own, strict=True))
        if store.operands[1] != op.operands[0] or not same:
            return False
    return True


def _write(delay: _Delay) -> None:
    rows, host, last = delay.rows, delay.host, delay.last
    old = rows.regions[0].blocks[0]
    low, high, step = list(rows.operands)[:3]
    with ir.InsertionPoint(rows):
        starts = [low, *(_zero(v.type) for v in delay.carried)]

        def body(row: ir.Value, *before: ir.Value) -> list[ir.Value]:
            of_before = dict(
                zip((old.arguments[0], *delay.carried, last.variable), (*before, host.variable), strict=True)
            )
            copy_into(host.op.regions[0].blocks[0], last.op, of_before)
            old.arguments[0].replace_all_uses_with(row)
            here = ir.InsertionPoint.current.block
            for op in list(old.operations)[:-1]:
                if op.operation != last.op:
                    here.append(op.operation)
            return [row, *delay.carried]

        results = nest.loop(low, high, 1, body, starts)
        made = results[0].owner
        for name in rows.attributes:
            made.attributes[name] = rows.attributes[name]

        def end(row: ir.Value) -> None:
            last.op.detach_from_parent()
            ir.InsertionPoint.current.insert(last.op)
            own = made.regions[0].blocks[0].arguments[0], *delay.carried
            remap(last.op, dict(zip(own, (row, *results[1:]), strict=True)))

        one_less = arith.subi(high, step)
        nest.loop(arith.maxsi(low, one_less), high, 1, end)
    rows.erase()


def copy_into(block: ir.Block, loop: ir.Operation, values: Mapping[ir.Value, ir.Value]) -> Mapping[ir.Value, ir.Value]:
    """The body of a loop around another's: what it loads first, for the place may be stored to next, and the rest last.

    values: what its own stand for; returned with those of the copy.

    A load behind a store to an address that ends in the same twelve bits waits for it, as if it were to the same place:
    in rows of a power of two that would be each one.
    """
    known = dict(values)
    begin, end = ir.InsertionPoint.at_block_begin(block), ir.InsertionPoint.at_block_terminator(block)
    for op in list(loop.regions[0].blocks[0].operations)[:-1]:
        copy = op.operation.clone(ip=begin if op.name == "memref.load" else end).operation
        remap(copy, known)
        known.update(zip(op.operation.results, copy.results, strict=True))
    return known


def _zero(ty: ir.Type) -> ir.Value:
    number = ir.FloatAttr.get(ty, 0.0) if isinstance(ty, ir.FloatType) else ir.IntegerAttr.get(ty, 0)
    return arith.constant(ty, number)
