"""Reductions of long rows: a block for each output, partial results by thread, then by warp, then by block.

thread t:  acc = f(x[t]);  for r = t + T, t + 2T, .. < R: acc = combine(acc, f(x[r]))
warp:      acc = combine(acc, shuffle xor 16, 8, 4, 2, 1)
block:     one value per warp through shared memory;  thread 0: out = combine(out, all of them)

No neutral element is needed: there are never more threads than elements. The order differs from the plain loop's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from stablehlo_py.mlir import arith, gpu, ir, memref, scf, vector
from stablehlo_py.records import record
from stablehlo_py.targets.gpu.launch import Former, Scope, constant
from stablehlo_py.targets.gpu.nest import Nest, delinearize, when

Combine = Callable[[ir.Value, ir.Value], ir.Value]

WARP = 32
THREADS = 256  # at most: eight warps, whose results one thread can add up
SHORTEST = 64  # rows below this are quicker in one thread
MANY = 4096  # outputs that fill a GPU with a thread each

COMBINERS = frozenset(
    f"arith.{name}"
    for name in (
        *("addf", "mulf", "maximumf", "minimumf", "maxnumf", "minnumf"),
        *("addi", "muli", "andi", "ori", "xori", "maxsi", "maxui", "minsi", "minui"),
    )
)


@record
class Reduction:
    """A body read as  after(combine(before(acc), f(inputs))).

    fresh: the ops that compute `value` = f(inputs). before, after: the ops around the combiner, which widen and narrow.
    """

    fresh: list[ir.Operation]
    value: ir.Value
    before: list[ir.Operation]
    combine: ir.Operation
    after: list[ir.Operation]
    result: ir.Value


def match_reduction(nest: Nest) -> Reduction | None:
    """How a body combines; None where it is not one associative combiner."""
    if nest.outputs != 1 or not nest.reduction:
        return None
    ops = [view.operation for view in nest.block.operations]
    result = ops.pop().operands[0]
    accumulated = {nest.block.arguments[nest.inputs]}  # values that depend on the accumulator
    combine: ir.Operation | None = None
    fresh, before, after = [], [], []
    for op in ops:
        if any(op.regions):
            return None
        from_accumulator = [v in accumulated for v in op.operands]
        if not any(from_accumulator):
            fresh.append(op)
            continue
        if combine is None and op.name in COMBINERS and sum(from_accumulator) == 1:
            combine = op
            seen, accumulated = accumulated, {op.results[0]}
        elif combine is None:
            before.append(op)
            accumulated.update(op.results)
        else:
            after.append(op)
            accumulated.update(op.results)
    if combine is None or result not in accumulated:
        return None
    if any(v in seen for op in after for v in op.operands):  # a way around the combiner
        return None
    value = next(v for v in combine.operands if v not in seen)
    return Reduction(fresh, value, before, combine, after, result)


def emit_rows(former: Former, nest: Nest) -> bool:
    """A kernel for a reduction of long rows; False for others."""
    reduction = match_reduction(nest)
    length = math.prod(nest.extents[d] for d in nest.reduction)
    if reduction is None or length < SHORTEST or nest.threads == 0 or nest.threads > 2**31 - 1:
        return False
    if not (isinstance(reduction.value.type, ir.IntegerType | ir.FloatType)):
        return False
    if not _walks_along_memory(nest) and nest.threads >= MANY:
        return False
    threads = min(THREADS, 1 << (length.bit_length() - 1))
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    shared = [ir.MemRefType.get([threads // WARP], reduction.value.type, memory_space=space)]

    def body(scope: Scope) -> None:
        _reduce(nest, reduction, scope, length, threads)

    former.launch(
        [nest.op],
        "rows",
        grid=(nest.threads, 1, 1),
        block=(threads, 1, 1),
        body=body,
        shared=shared,
        extra=nest.extra,
    )
    return True


def _walks_along_memory(nest: Nest) -> bool:
    """Whether neighbouring steps of the innermost reduction are neighbours in every input that they move through."""
    innermost = nest.reduction[-1]
    for affine in nest.maps[: nest.inputs]:
        results = list(affine.results)
        moves = [isinstance(e, ir.AffineDimExpr) and e.position == innermost for e in results]
        if any(moves) and not moves[-1]:
            return False
    return True


def _reduce(nest: Nest, reduction: Reduction, scope: Scope, length: int, threads: int) -> None:
    loops: list[ir.Value | None] = [None] * len(nest.extents)
    row = delinearize(scope.block, [nest.extents[d] for d in nest.parallel])
    for dim, index in zip(nest.parallel, row, strict=True):
        loops[dim] = index

    def fresh(at: ir.Value) -> ir.Value:
        here = list(loops)
        for dim, index in zip(nest.reduction, delinearize(at, [nest.extents[d] for d in nest.reduction]), strict=True):
            here[dim] = index
        inputs = nest.elements(scope, here, range(nest.inputs))
        return nest.inline(scope, [*inputs, None], here, reduction.fresh)[reduction.value]

    def combine(a: ir.Value, b: ir.Value) -> ir.Value:
        copy = reduction.combine.clone()
        copy.operands[0], copy.operands[1] = a, b
        return copy.results[0]

    loop = scf.ForOp(
        arith.addi(scope.thread, constant(threads)), constant(length), constant(threads), [fresh(scope.thread)]
    )
    with ir.InsertionPoint(loop.body):
        scf.yield_([combine(loop.inner_iter_args[0], fresh(loop.induction_variable))])
    total = loop.results_[0]
    for distance in (16, 8, 4, 2, 1):
        total = combine(total, shuffle_xor(total, distance))
    total = across_warps(scope, scope.shared[0], total, threads // WARP, combine)

    def finish() -> None:
        start = nest.load(scope, nest.inputs, loops)
        local = nest.inline(scope, [*[None] * nest.inputs, start], loops, reduction.before)
        accumulator = next(local[v] for v in reduction.combine.operands if v != reduction.value)
        local.values[reduction.combine.results[0]] = combine(accumulator, total)
        for op in reduction.after:
            local.clone(op)
        nest.store(scope, nest.inputs, loops, local[reduction.result])

    when(arith.cmpi(arith.CmpIPredicate.eq, scope.thread, constant(0)), finish)


def across_warps(scope: Scope, shared: ir.Value, value: ir.Value, warps: int, combine: Combine) -> ir.Value:
    """Every thread's combination of the values that the first lanes of all warps hold."""
    if warps == 1:
        return value
    lane, warp = arith.remui(scope.thread, constant(WARP)), arith.divui(scope.thread, constant(WARP))
    first = arith.cmpi(arith.CmpIPredicate.eq, lane, constant(0))
    when(first, lambda: memref.store(value, shared, [warp]))
    gpu.barrier()
    total = memref.load(shared, [constant(0)])
    for number in range(1, warps):
        total = combine(total, memref.load(shared, [constant(number)]))
    return total


def shuffle_xor(value: ir.Value, distance: int) -> ir.Value:
    """The value of the lane whose number differs in one bit; any integer or float up to 64 bits."""
    i32 = ir.IntegerType.get_signless(32)
    ty = value.type
    width = ir.IntegerType(ty).width if isinstance(ty, ir.IntegerType) else ir.FloatType(ty).width
    bits = ir.IntegerType.get_signless(width)
    if isinstance(ty, ir.FloatType) and width != 32:
        return arith.bitcast(ty, shuffle_xor(arith.bitcast(bits, value), distance))
    if width < 32:
        return arith.trunci(ty, shuffle_xor(arith.extui(i32, value), distance))
    if width == 64:
        pair = ir.VectorType.get([2], i32)
        words = vector.bitcast(pair, vector.broadcast(ir.VectorType.get([1], ty), value))
        moved = [shuffle_xor(vector.extract(words, [], [n]), distance) for n in range(2)]
        joined = vector.bitcast(ir.VectorType.get([1], ty), vector.from_elements(pair, moved))
        return vector.extract(joined, [], [0])
    offset, lanes = (arith.constant(i32, n) for n in (distance, WARP))
    return gpu.ShuffleOp(value, offset, lanes, gpu.ShuffleMode.XOR).results[0]
