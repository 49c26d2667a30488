"""The first loop of a row, a largest or smallest element, runs a row earlier, within a loop of the row before.

    for i: m = max(a(i, j)); .. b(i, j, m) ..   ->   m = max(a(low, j));  for i: m' = max(a(i + 1, j)), .. b(i, j, m) ..; m = m'

Nothing of a row can begin before its largest element is known, and while that is looked for, a core does little else: the
two instructions for it have one unit, and joining the lanes at the end waits for each of ten steps. Beside the next row's
exponentials both are for nothing, and memory is read all the time instead of by turns.

The last row looks at itself once more. So nothing is taken that reads what the kernel writes, and no sums of floats: they
would be added in another order in the first row of a part, and the number of threads would change their bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.collect import operations_under
from stablehlo_py.core.rewire import remap
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir, scf
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.vectors.delayed_rows import LEAST_ROWS, copy_into, fits, is_of, row_count, vectors_of
from stablehlo_py.targets.cpu.vectors.vector_halves import are_halves
from stablehlo_py.targets.cpu.vectors.vector_legality import EXACT, Innermost, base_of
from stablehlo_py.targets.cpu.vectors.vector_plan import LONG


@record(eq=False)
class _Early:
    """first: of the row loop `rows`, of which there are `count`; host: the loop that takes it."""

    rows: ir.Operation
    count: int
    first: Innermost
    host: Innermost


def take_first_loops_early(function: ir.Operation, loops: Sequence[ir.Operation], cpu: Cpu) -> bool:
    """Rewrite the loops over rows of a kernel for which it pays; whether there were any. loops: the scf.for of a kernel."""
    found = [e for op in loops if (e := _early_of(function, op, cpu)) is not None] if cpu.rows_early else []
    for early in found:
        with early.rows.location:
            _write(early)
    return bool(found)


def _early_of(function: ir.Operation, rows: ir.Operation, cpu: Cpu) -> _Early | None:
    body = [op.operation for op in rows.regions[0].blocks[0].operations]
    loops = [op for op in body if op.name == "scf.for"]
    count = row_count(function, rows)
    if len(loops) < 2 or count < LEAST_ROWS or any(len(op.regions) for op in body if op not in loops):
        return None
    first = vectors_of(loops[0], cpu)
    if first is None or first.work > LONG or not first.reductions or not _may_come_early(function, rows, first):
        return None
    others = [loop for op in loops[1:] if (loop := vectors_of(op, cpu)) is not None and fits(loop, first, cpu)]
    others = [loop for loop in others if are_halves(loop) == are_halves(first)]  # a NaN's bits depend on its lane
    host = max(others, key=lambda loop: loop.work, default=None)
    return _Early(rows, count, first, host) if host is not None and host.work > LONG else None


def _may_come_early(function: ir.Operation, rows: ir.Operation, first: Innermost) -> bool:
    """Whether a loop needs nothing of its row but the number, and reads only what nobody writes."""
    if any(r.op.name not in EXACT for r in first.reductions):
        return False
    row, inside = rows.regions[0].blocks[0].arguments[0], operations_under(first.op)
    used = [v for op in (first.op, *inside) for v in op.operands]
    if any(v != row and is_of(v, rows) and not is_of(v, first.op) for v in used):
        return False
    written = {base_of(op.operands[1]) for op in operations_under(function) if op.name == "memref.store"}
    touched = [op for op in inside if op.name.startswith("memref.")]
    return all(op.name == "memref.load" and base_of(op.operands[0]) not in written for op in touched)


def _write(early: _Early) -> None:
    rows, first = early.rows, early.first.op
    old, (low, high, step, *inits) = rows.regions[0].blocks[0], rows.operands
    with ir.InsertionPoint(rows):
        row = arith.minsi(low, nest.index(early.count - 1))  # a part may have no rows
        start = first.clone().operation
        remap(start, {old.arguments[0]: row})
        last = arith.subi(high, step)
        made = scf.for_(low, high, step, [*inits, *start.results])
    with ir.InsertionPoint(early.host.op):
        following = _with_another(
            early.host.op, first, {old.arguments[0]: arith.minsi(arith.addi(old.arguments[0], step), last)}
        )
    block, (*ops, end) = made.regions[0].blocks[0], [op.operation for op in old.operations]
    for op in ops:
        if op != first:
            block.append(op)
    for value, new in zip((*old.arguments, *first.results), block.arguments, strict=True):
        value.replace_all_uses_with(new)
    with ir.InsertionPoint(block):
        scf.yield_([*end.operands, *following])
    for name in rows.attributes:
        made.attributes[name] = rows.attributes[name]
    for value, new in zip(rows.results, list(made.results)[: len(inits)], strict=True):
        value.replace_all_uses_with(new)
    rows.erase()


def _with_another(host: ir.Operation, other: ir.Operation, values: dict[ir.Value, ir.Value]) -> list[ir.Value]:
    """Let a loop do what another one does as well, with `values` for what that uses; what the other gives."""
    low, high, step, *inits = host.operands
    both = scf.for_(low, high, step, [*inits, *list(other.operands)[3:]])
    block, old, copied = both.regions[0].blocks[0], host.regions[0].blocks[0], other.regions[0].blocks[0]
    variable, *carried = block.arguments
    *ops, end = [op.operation for op in old.operations]
    for op in ops:
        block.append(op)
    for value, new in zip(old.arguments, (variable, *carried[: len(inits)]), strict=True):
        value.replace_all_uses_with(new)
    with ir.InsertionPoint(block):
        scf.yield_([*end.operands, *carried[len(inits) :]])
    values = values | dict(zip(copied.arguments, (variable, *carried[len(inits) :]), strict=True))
    known = copy_into(block, other, values)
    for k, value in enumerate(_last_of(copied).operands):
        _last_of(block).operands[len(inits) + k] = known[value]
    for value, new in zip(host.results, list(both.results)[: len(inits)], strict=True):
        value.replace_all_uses_with(new)
    host.erase()
    return list(both.results)[len(inits) :]


def _last_of(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation
