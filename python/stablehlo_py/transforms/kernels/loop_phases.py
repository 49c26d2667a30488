"""Kernels of loops that no cut goes through alike: each is a launch of its own, whose steps threads share.

    fill(%padded); copy(%x, %padded); pool(%padded, %y)    ->    launches of the steps 0..114, 114..226 and 226..282

`mark` says so of a kernel on linalg ops, `bound` gives each loop its part of the steps when they are loops:

    for i in 0 .. n    ->    for i in clamp(begin - before, 0, n) .. clamp(end - before, 0, n)

where `before` are the steps of the loops before it, so that a launch within the steps of one runs nothing of the others.
What one loop leaves for another is memory that all threads share.
"""

from __future__ import annotations

import math

from stablehlo_py.core.collect import operations_named
from stablehlo_py.mlir import arith, ir
from stablehlo_py.transforms.kernels.kernels_to_memref import SCRATCH, SHARED, numbers

LOOP_STEPS = "kernel.loop_steps"  # of each loop of a kernel that runs in phases
LEAST_WORK = 200_000  # steps of innermost loops, in the mean of a kernel's loops, below which one thread does them all


def mark(function: ir.Operation, ops: list[ir.Operation]) -> None:
    """Note the steps of linalg ops, which are all that a kernel does, if each has an outermost loop of independent ones."""
    extents = [loop_extents(op) for op in ops]
    if not all(extents) or sum(map(math.prod, extents)) < LEAST_WORK * len(ops):
        return
    outermost = [next((d for d, n in enumerate(sizes) if n != 1), 0) for sizes in extents]  # one of a step is none
    steps = [sizes[d] for sizes, d in zip(extents, outermost, strict=True)]
    if min(steps) < 2 or not all(is_parallel(op, d) for op, d in zip(ops, outermost, strict=True)):
        return
    if any(_is_between(alloca.operation, ops) for alloca in operations_named(function, "memref.alloca")):
        return  # each thread has its own
    function.attributes[LOOP_STEPS] = ir.DenseI64ArrayAttr.get(steps)
    function.attributes[SHARED] = ir.DenseI64ArrayAttr.get([*numbers(function, SHARED), *numbers(function, SCRATCH)])
    function.attributes[SCRATCH] = ir.DenseI64ArrayAttr.get([])


def bound(function: ir.Operation, loops: list[ir.Operation], trips: list[int | None]) -> list[int] | None:
    """Give each loop its part of begin .. end, two new arguments.

    Begin and end of each launch, one after the other, or None where nothing is so marked.
    """
    if LOOP_STEPS not in function.attributes:
        return None
    steps = list(numbers(function, LOOP_STEPS))
    del function.attributes[LOOP_STEPS]
    if steps != trips:
        return None
    block, index = function.regions[0].blocks[0], ir.IndexType.get()
    begin, end = (block.add_argument(index, function.location) for _ in range(2))
    before, launches = 0, []
    for loop, count in zip(loops, steps, strict=True):
        with ir.InsertionPoint(loop), loop.location:
            zero, limit, offset = (arith.constant(index, n) for n in (0, count, before))
            low, high = (
                arith.minsi(arith.maxsi(arith.subi(at, offset), zero), limit) if before else arith.minsi(at, limit)
                for at in (begin, end)
            )
            step, last = loop.operands[2], loop.operands[1]
            loop.operands[0] = arith.muli(low, step)
            loop.operands[1] = arith.minsi(arith.muli(high, step), last)
        launches += [before, before + count]
        before += count
    return launches


def loop_extents(op: ir.Operation) -> list[int]:
    """The extents of a linalg op's loops, outermost first; empty where one is unknown."""
    if op.name in ("linalg.fill", "linalg.copy"):
        return list(ir.MemRefType(op.operands[1].type).shape)
    if "iterator_types" not in op.attributes or "indexing_maps" not in op.attributes:
        return []
    sizes: dict[int, int] = {}
    for buffer, attribute in zip(op.operands, ir.ArrayAttr(op.attributes["indexing_maps"]), strict=True):
        if isinstance(buffer.type, ir.MemRefType):
            places = ir.AffineMapAttr(attribute).value.results
            for place, size in zip(places, ir.MemRefType(buffer.type).shape, strict=True):
                if isinstance(place, ir.AffineDimExpr):
                    sizes[place.position] = size
    loops = range(len(ir.ArrayAttr(op.attributes["iterator_types"])))
    return [sizes[d] for d in loops] if all(d in sizes for d in loops) else []


def is_parallel(op: ir.Operation, loop: int) -> bool:
    """Whether the steps of one of these loops, by its number, are independent."""
    return op.name in ("linalg.fill", "linalg.copy") or "parallel" in str(
        ir.ArrayAttr(op.attributes["iterator_types"])[loop]
    )


def _is_between(maker: ir.Operation, ops: list[ir.Operation]) -> bool:
    """Whether more than one of some ops use a buffer, or views of it."""
    users, views = set[int](), [maker]
    while views:
        for use in views.pop().results[0].uses:
            user = use.owner.operation
            if user in ops:
                users.add(ops.index(user))
            else:
                views.append(user)
    return len(users) > 1
