"""What a while computes anew in each step from values that do not change is computed once, before it.

while (x, w) { y = dot(x, transpose(w)); return y, w }   ->   t = transpose(w); while (x) { y = dot(x, t); return y }

Carried values that the body hands on as they came are no longer carried. What costs next to nothing (broadcasts, iotas,
elementwise ops of scalars) stays inside, where it needs no memory.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core import registry
from stablehlo_py.core.collect import maker
from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir

# Worth a buffer that lives as long as the loop; with them go the ops that they read and the elementwise ops behind them.
COSTLY = frozenset(
    f"stablehlo.{name}"
    for name in (
        *(
            "dot_general",
            "convolution",
            "reduce",
            "reduce_window",
            "sort",
            "scatter",
            "gather",
            "transpose",
            "concatenate",
        ),
        *("pad", "reverse", "fft", "cholesky", "triangular_solve", "select_and_scatter"),
    )
)
# Moves of elements that go along with a costly op, and do not make one worth it.
CHEAP = frozenset(
    f"stablehlo.{name}"
    for name in (
        "broadcast_in_dim",
        "reshape",
        "slice",
        "constant",
        "iota",
        "convert",
        "dynamic_slice",
        "bitcast_convert",
    )
)


class HloHoistInvariants(Pass):
    """Move what does not change in a while in front of it."""

    name: ClassVar[str] = "hlo-hoist-invariants"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, op: ir.Operation) -> None:
        import stablehlo_py.ops  # noqa: F401 - which ops are elementwise

        for region in op.regions:
            for block in region.blocks:
                for inner in [o.operation for o in block.operations]:
                    self.run(inner)  # inner loops first: what leaves them may leave the outer one too
                    if inner.name == "stablehlo.while":
                        hoist(without_invariants(inner))


def without_invariants(loop: ir.Operation) -> ir.Operation:
    """The loop without the carried values that its body hands on as they came."""
    blocks = [region.blocks[0] for region in loop.regions]
    body = blocks[1]
    end = body.operations[len(body.operations) - 1].operation
    kept = [i for i, value in enumerate(end.operands) if value != body.arguments[i]]
    if len(kept) == len(end.operands):
        return loop
    gone = [i for i in range(len(end.operands)) if i not in kept]
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("stablehlo.return", operands=[end.operands[i] for i in kept])
    end.erase()
    for block in blocks:
        for i in reversed(gone):
            block.arguments[i].replace_all_uses_with(loop.operands[i])
            block.erase_argument(i)
    with ir.InsertionPoint(loop), loop.location:
        new = ir.Operation.create(
            "stablehlo.while",
            results=[loop.results[i].type for i in kept],
            operands=[loop.operands[i] for i in kept],
            attributes={name: loop.attributes[name] for name in loop.attributes},
            regions=2,
        )
    for block, region in zip(blocks, new.regions, strict=True):
        block.append_to(region)
    for number, i in enumerate(kept):
        loop.results[i].replace_all_uses_with(new.results[number])
    for i in gone:
        loop.results[i].replace_all_uses_with(loop.operands[i])
    loop.erase()
    return new


def hoist(loop: ir.Operation) -> None:
    """Move costly ops of invariant operands, and what they need, in front of the loop."""
    body = loop.regions[1].blocks[0]
    operations = [o.operation for o in body.operations]
    invariant: list[ir.Operation] = []
    inside = set(body.arguments)
    for op in operations:
        if _may_move(op) and not any(value in inside for value in _values_read(op)):
            invariant.append(op)
        else:
            inside.update(op.results)
    wanted: set[ir.Operation] = set()
    for op in invariant:
        follows = registry.scalar.find(op.name) is not None and any(maker(v) in wanted for v in op.operands)
        if op.name in COSTLY or follows:
            wanted.add(op)
    for op in reversed(invariant):
        if op in wanted:
            wanted.update(read for v in _values_read(op) if (read := maker(v)) in set(invariant))
    for op in invariant:
        if op in wanted:
            op.move_before(loop)


def _may_move(op: ir.Operation) -> bool:
    return op.name in COSTLY or op.name in CHEAP or registry.scalar.find(op.name) is not None


def _values_read(op: ir.Operation) -> list[ir.Value]:
    """The operands of an op and of the ops in its regions."""
    found = list(op.operands)

    def visit(inner: ir.Operation) -> ir.WalkResult:
        found.extend(inner.operands)
        return ir.WalkResult.ADVANCE

    if len(op.regions):
        op.walk(visit)
    return found
