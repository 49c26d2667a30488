"""Row programs (softmax, layernorm): a loop over independent rows, of loops over columns, as one kernel.

scf.for row {                               block = row
  acc = scf.for column { .. combine }  ->     columns spread over the threads, partial results combined in the block
  scf.for column { .. store }          ->     columns spread over the threads
}                                             a barrier after each

Rows too short for that, and loops of other shapes, are a row a thread. Buffers that hold one row are made private: in
shared memory for a block, else a row for each row in global memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.collect import made_by
from stablehlo_py.mlir import arith, gpu, ir, memref, scf
from stablehlo_py.records import record
from stablehlo_py.targets.gpu.launch import REPEATED, Former, Scope, constant
from stablehlo_py.targets.gpu.loops import launch_elements
from stablehlo_py.targets.gpu.nest import delinearize, when
from stablehlo_py.targets.gpu.rows import COMBINERS, THREADS, WARP, across_warps, shuffle_xor
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes
from stablehlo_py.transforms.kernels.kernels_to_memref import SCRATCH, numbers
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

SHARED_BYTES = 40 << 10  # of the 48 KB that every block may have; the rest is for the reductions
SHORTEST = 64  # columns


def emit_row_program(former: Former, op: ir.Operation) -> bool:
    """A kernel for a loop that is marked parallel; False for other ops."""
    if op.name != "scf.for" or PARALLEL_LOOP not in op.attributes or len(op.results):
        return False
    rows = _row_loops(op)
    if rows is None:
        return False
    private = _private_buffers(former.function, op)
    if not _launch_blocks(former, [op], rows, _body(rows[-1]), private):
        _launch_threads(former, op, private)
    return True


def emit_single_row(former: Former, ops: list[ir.Operation]) -> bool:
    """A kernel of one block for ops that reduce everything; False where their loops are not plain to see."""
    return any(op.name == "scf.for" for op in ops) and _launch_blocks(former, ops, [], ops, [])


# --- reading the loops


def _body(loop: ir.Operation) -> list[ir.Operation]:
    return [view.operation for view in loop.regions[0].blocks[0].operations][:-1]


def _extent(loop: ir.Operation) -> int | None:
    """The number of steps of `for i = 0 to n step 1`."""
    numbers = []
    for value in list(loop.operands)[:3]:
        op = made_by(value, "arith.constant")
        if op is None:
            return None
        numbers.append(ir.IntegerAttr(op.attributes["value"]).value)
    return numbers[1] if numbers[0] == 0 and numbers[2] == 1 else None


def _row_loops(op: ir.Operation) -> list[ir.Operation] | None:
    """The loops over rows: `op` and those right inside it that hold nothing but further loops."""
    loops = [op]
    while True:
        if _extent(loops[-1]) is None:
            return None
        work = [o for o in _body(loops[-1]) if not o.name.startswith(REPEATED)]
        inner = work[0] if len(work) == 1 and work[0].name == "scf.for" and not len(work[0].results) else None
        if inner is None or not any(o.name == "scf.for" for o in _body(inner)):
            return loops
        loops.append(inner)


def _is_simple(op: ir.Operation) -> bool:
    return op.name.startswith(REPEATED) or op.name in ("memref.load", "memref.store")


@record
class _Phase:
    """A loop over columns: ops of each column, and for each accumulator its combiner and the value it takes in."""

    loop: ir.Operation
    extent: int
    fresh: tuple[ir.Operation, ...]
    combiners: tuple[tuple[ir.Operation, ir.Value], ...]


def _phase(loop: ir.Operation) -> _Phase | None:
    """A loop whose steps may be taken in any order; None where that is not plain to see."""
    extent, ops = _extent(loop), _body(loop)
    if extent is None or not all(_is_simple(o) for o in ops):
        return None
    block = loop.regions[0].blocks[0]
    index, *accumulators = block.arguments
    yielded = list(block.operations[len(block.operations) - 1].operands)
    combiners = []
    for accumulator, value in zip(accumulators, yielded, strict=True):
        combiner = made_by(value, *COMBINERS)
        if combiner is None:
            return None
        operands = list(combiner.operands)
        if operands.count(accumulator) != 1 or len(list(accumulator.uses)) != 1 or len(list(value.uses)) != 1:
            return None
        if not isinstance(value.type, ir.IntegerType | ir.FloatType):
            return None
        combiners.append((combiner, operands[1 - operands.index(accumulator)]))
    stored = {}
    for op in ops:
        if op.name == "memref.store":
            if index not in list(op.operands)[2:] or op.operands[1] in stored:
                return None
            stored[op.operands[1]] = list(op.operands)[2:]
    for op in ops:
        if op.name == "memref.load" and stored.get(op.operands[0], list(op.operands)[1:]) != list(op.operands)[1:]:
            return None
    own = {c for c, _ in combiners}
    return _Phase(loop, extent, tuple(o for o in ops if o not in own), tuple(combiners))


def _private_buffers(function: ir.Operation, loop: ir.Operation) -> list[ir.Value]:
    """Stack and scratch buffers of the function that only this loop uses: each row writes them before it reads them."""
    block = function.regions[0].blocks[0]
    scratch = len(numbers(function, SCRATCH))
    candidates = list(block.arguments)[len(block.arguments) - scratch :]
    candidates += [v.operation.results[0] for v in block.operations if v.operation.name == "memref.alloca"]

    def within(op: ir.Operation) -> bool:
        while op is not None and op != loop:
            op = op.parent.operation if op.parent is not None else None
        return op is not None

    return [c for c in candidates if list(c.uses) and all(within(use.owner.operation) for use in c.uses)]


# --- a block a row


def _launch_blocks(
    former: Former,
    work: list[ir.Operation],
    rows: list[ir.Operation],
    body: list[ir.Operation],
    private: list[ir.Value],
) -> bool:
    """A kernel for `work`: the loops `rows` around `body`, which is row ops and phases; False where it cannot be."""
    phases = {op: _phase(op) for op in body if op.name == "scf.for"}
    size = sum(math.prod(b.type.shape) * element_bytes(b.type.element_type) for b in private)
    if not phases or size > SHARED_BYTES or not all(_is_simple(op) or op in phases for op in body):
        return False
    shortest = min(phase.extent if phase is not None else 0 for phase in phases.values())
    if shortest < SHORTEST:
        return False
    threads = min(THREADS, 1 << (shortest.bit_length() - 1))
    extents = [_extent(r) or 0 for r in rows]
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    shared = [ir.MemRefType.get(b.type.shape, b.type.element_type, memory_space=space) for b in private]
    partial: dict[str, int] = {}  # element type of an accumulator -> its buffer for the reductions
    for op in phases:
        for result in op.results:
            if str(result.type) not in partial:
                partial[str(result.type)] = len(shared)
                shared.append(ir.MemRefType.get([threads // WARP], result.type, memory_space=space))

    def build(scope: Scope) -> None:
        for buffer, own in zip(private, scope.shared, strict=False):
            scope.values[buffer] = own
        for loop, index in zip(rows, delinearize(scope.block, extents), strict=True):
            scope.values[loop.regions[0].blocks[0].arguments[0]] = index
            for op in _body(loop) if loop != rows[-1] else ():
                if op not in rows:
                    scope.clone(op)
        for op in body:
            phase = phases.get(op)
            if phase is not None:
                _spread(scope, phase, threads, {t: scope.shared[n] for t, n in partial.items()})
                gpu.barrier()
            elif op.name == "memref.store":
                first = arith.cmpi(arith.CmpIPredicate.eq, scope.thread, constant(0))
                when(first, lambda op=op: _discard(scope.clone(op)))
                gpu.barrier()
            else:
                scope.clone(op)

    former.launch(
        work,
        "rowprogram",
        grid=(math.prod(extents), 1, 1),
        block=(threads, 1, 1),
        body=build,
        shared=shared,
        without=private,
    )
    return True


def _spread(scope: Scope, phase: _Phase, threads: int, partial: dict[str, ir.Value]) -> None:
    """Columns t, t + T, ... by thread t; then every thread gets the combination of all."""
    index = phase.loop.regions[0].blocks[0].arguments[0]

    def column(at: ir.Value) -> list[ir.Value]:
        local = Scope({**scope.values, index: at}, scope.shared, scope.thread, scope.block)
        for op in phase.fresh:
            local.clone(op)
        return [local[value] for _, value in phase.combiners]

    def combine(number: int, a: ir.Value, b: ir.Value) -> ir.Value:
        copy = phase.combiners[number][0].clone()
        copy.operands[0], copy.operands[1] = a, b
        return copy.results[0]

    # there are never more threads than columns, so the first column needs no neutral element
    loop = scf.ForOp(
        arith.addi(scope.thread, constant(threads)), constant(phase.extent), constant(threads), column(scope.thread)
    )
    with ir.InsertionPoint(loop.body):
        found = column(loop.induction_variable)
        scf.yield_([combine(n, a, b) for n, (a, b) in enumerate(zip(loop.inner_iter_args, found, strict=True))])
    starts = list(phase.loop.operands)[3:]
    for number, (total, start) in enumerate(zip(loop.results_, starts, strict=True)):
        for distance in (16, 8, 4, 2, 1):
            total = combine(number, total, shuffle_xor(total, distance))
        shared = partial[str(total.type)]
        total = across_warps(scope, shared, total, threads // WARP, lambda a, b, n=number: combine(n, a, b))
        gpu.barrier()  # the next accumulator uses the same buffer
        scope.values[phase.loop.results[number]] = combine(number, scope[start], total)


def _discard(_: object) -> None:
    return None


# --- a thread a row


def _launch_threads(former: Former, op: ir.Operation, private: list[ir.Value]) -> None:
    """The whole body for each step of the outermost loop; a row of global memory for each private buffer."""
    extent = _extent(op) or 0
    wide = []
    with ir.InsertionPoint.at_block_begin(former.function.regions[0].blocks[0]), op.location:
        for buffer in private:
            wide.append(
                memref.AllocOp(ir.MemRefType.get([extent, *buffer.type.shape], buffer.type.element_type), [], [])
            )

    def element(scope: Scope, at: Sequence[ir.Value]) -> None:
        for buffer, rows in zip(private, wide, strict=True):
            scope.values[buffer] = _row_of(scope[rows.result], at[0])
        scope.values[op.regions[0].blocks[0].arguments[0]] = at[0]
        for inner in _body(op):
            scope.clone(inner)

    launch_elements(former, op, "rowthreads", [extent], element, extra=[w.result for w in wide], without=private)


def _row_of(buffer: ir.Value, row: ir.Value) -> ir.Value:
    """buffer[row, ...] as a memref of the remaining dimensions."""
    shape = list(buffer.type.shape)[1:]
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    layout = ir.StridedLayoutAttr.get(ir.ShapedType.get_dynamic_stride_or_offset(), strides)
    ty = ir.MemRefType.get(shape, buffer.type.element_type, layout=layout)
    offsets = [ir.ShapedType.get_dynamic_size(), *[0] * len(shape)]
    return memref.SubViewOp(ty, buffer, [row], [], [], offsets, [1, *shape], [1] * (len(shape) + 1)).result
