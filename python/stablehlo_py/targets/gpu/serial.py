"""The last resort: ops in a row by one thread, in order. It takes loops with loads and stores of any kind."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import ir, memref
from stablehlo_py.targets.gpu.launch import Former, Scope
from stablehlo_py.targets.gpu.nest import for_each


def emit_serial(former: Former, ops: Sequence[ir.Operation]) -> None:
    """One kernel of one thread for `ops`; what later ops use of their results is left in buffers."""
    inside = set(ops)
    used = [r for op in ops for r in op.results if any(_top(u.owner, op.block) not in inside for u in r.uses)]
    buffers = {value: former.spill(value) for value in used}

    def body(scope: Scope) -> None:
        for op in ops:
            scope.clone(op)
        for value, buffer in buffers.items():
            _leave(scope[value], scope[buffer])

    for value in used:  # the kernel itself makes the value, so it must not look for it outside
        del former.spilled[value]
    former.launch(ops, "serial", grid=(1, 1, 1), block=(1, 1, 1), body=body, extra=list(buffers.values()))
    former.spilled.update(buffers)


def _leave(value: ir.Value, buffer: ir.Value) -> None:
    if not isinstance(value.type, ir.MemRefType):
        memref.store(value, buffer, [])
        return

    def element(at: list[ir.Value], _: list[ir.Value]) -> list[ir.Value]:
        memref.store(memref.load(value, at), buffer, at)
        return []

    for_each(list(buffer.type.shape), [], element)


def _top(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of `block` that contains `op`."""
    while op.operation.block != block:
        op = op.operation.parent
    return op.operation
