"""The ops under an op, and the values between them. Collected first: what a pass rewrites it must not walk at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stablehlo_py.mlir import ir

_MARKED = ("func.func", "linalg.generic")  # ops that carry marks
MARK = "kernel."  # how the names of attributes begin that say what is to be made of a kernel, such as kernel.fft

# What some linalg.generic are, by their outside: a move of one operand, a sum over pairs of elements of two.
KIND = "generic."
MOVE, SUM = f"{KIND}move", f"{KIND}sum"


def names_under(root: ir.Operation) -> frozenset[str]:
    """The names of the ops at and under `root`, of the marks of kernels, and of the kinds of linalg.generic."""
    found: set[str] = set()
    proceed = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        found.add(name)
        if name in _MARKED:
            found.update(attribute for attribute in op.attributes if attribute.startswith(MARK))
            if name == "linalg.generic" and (kind := _kind(op)):
                found.add(kind)
        return proceed

    root.walk(visit)
    return frozenset(found)


def _kind(generic: ir.Operation) -> str:
    count = len(generic.operands)
    if count == 2 and len(generic.regions[0].blocks[0].operations) == 1:
        return MOVE
    return SUM if count == 3 and "reduction" in str(generic.attributes["iterator_types"]) else ""


def operations_under(root: ir.Operation) -> list[ir.Operation]:
    """All ops under `root`, outer before inner."""
    found: list[ir.Operation] = []
    proceed = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        found.append(op)
        return proceed

    root.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[1:]


def operations_where(root: ir.Operation, wanted: Callable[[ir.Operation], bool]) -> list[ir.Operation]:
    """All ops under `root` for which `wanted` holds, those inside an op before the op itself."""
    found: list[ir.Operation] = []
    proceed = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if wanted(op):
            found.append(op)
        return proceed

    root.walk(visit)
    return found


def operations_named(root: ir.Operation, *names: str) -> list[ir.Operation]:
    """All ops of these names under `root`, in the same order: inner before outer."""
    found: list[ir.Operation] = []
    proceed = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name in names:
            found.append(op)
        return proceed

    root.walk(visit)
    return found


def maker(value: ir.Value) -> ir.Operation | None:
    """The op that makes a value; None for the argument of a block."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def made_by(value: ir.Value, *names: str) -> ir.Operation | None:
    """The op that makes a value, where it has one of these names."""
    op = maker(value)
    return op if op is not None and op.name in names else None


def uses(op: ir.Operation) -> Iterable[ir.Value]:
    """The values from outside that an op and its regions use."""
    yield from op.operands
    own: set[ir.Value] = set()
    for region in op.regions:
        for block in region.blocks:
            own.update(block.arguments)
            for inner in block.operations:
                for value in uses(inner.operation):
                    if value not in own:
                        yield value
                own.update(inner.operation.results)
