"""The general emitter: a thread per output element, reductions in order inside the thread. It takes any linalg.generic.

thread i < parallel iterations:   p = delinearize(i)
                                  acc = out[p];  for r in reduction: acc = body(inputs[p, r], acc)
                                  out[p] = acc
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir, memref
from stablehlo_py.targets.gpu.launch import Former, Scope, constant
from stablehlo_py.targets.gpu.nest import Nest, delinearize, for_each, less, when

THREADS = 256  # a block: 8 warps, enough for full occupancy at 64 registers a thread


def emit_loops(former: Former, nest: Nest) -> bool:
    """A kernel for any linalg.generic."""

    def element(scope: Scope, parallel: Sequence[ir.Value]) -> None:
        loops: list[ir.Value | None] = [None] * len(nest.extents)
        for dim, index in zip(nest.parallel, parallel, strict=True):
            loops[dim] = index
        outputs = range(nest.inputs, len(nest.operands))
        # what a loop hands on; without one, what the body reads
        carried = [n for n in outputs if nest.reads[n] or nest.reduction]
        start = [nest.load(scope, n, loops) for n in carried]

        def step(reduction: list[ir.Value], accumulators: list[ir.Value]) -> list[ir.Value]:
            for dim, index in zip(nest.reduction, reduction, strict=True):
                loops[dim] = index
            inputs = nest.elements(scope, loops, range(nest.inputs))
            read = dict(zip(carried, accumulators, strict=True))
            return nest.body(scope, [*inputs, *(read.get(n) for n in outputs)], loops)

        results = for_each([nest.extents[d] for d in nest.reduction], start, step)
        for number, value in zip(outputs, results, strict=True):
            nest.store(scope, number, loops, value)

    launch_elements(former, nest.op, "loops", [nest.extents[d] for d in nest.parallel], element, nest.extra)
    return True


def emit_copy(former: Former, op: ir.Operation) -> None:
    """A kernel for memref.copy, views with strides included."""
    source, target = op.operands

    def element(scope: Scope, at: Sequence[ir.Value]) -> None:
        memref.store(memref.load(scope[source], list(at)), scope[target], list(at))

    launch_elements(former, op, "copy", list(target.type.shape), element)


def launch_elements(
    former: Former,
    op: ir.Operation,
    kind: str,
    extents: Sequence[int],
    element: Callable[[Scope, Sequence[ir.Value]], None],
    extra: Sequence[ir.Value] = (),
    without: Sequence[ir.Value] = (),
) -> None:
    """A thread per point of an index space; nothing is launched over an empty one."""
    count = 1
    for extent in extents:
        count *= extent
    if count == 0:
        return
    threads = min(THREADS, -(-count // 32) * 32)

    def body(scope: Scope) -> None:
        linear = arith.addi(arith.muli(scope.block, constant(threads)), scope.thread)
        if count % threads == 0:
            element(scope, delinearize(linear, extents))
        else:
            when(less(linear, count), lambda: element(scope, delinearize(linear, extents)))

    blocks = -(-count // threads)
    former.launch([op], kind, grid=(blocks, 1, 1), block=(threads, 1, 1), body=body, extra=extra, without=without)
