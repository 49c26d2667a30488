"""Ops that give their operand as it is are replaced by it.

broadcast_in_dim(x), dims [0, 1]  ->  x, where nothing repeats; likewise reshape, convert, slice, transpose, concatenate
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.dialects.stablehlo import Op, view
from stablehlo_py.mlir import ir


class HloForwardOperands(Pass):
    """Replace ops that give their operand by it, so that constants are seen by those who read them."""

    name: ClassVar[str] = "hlo-forward-operands"

    def run(self, op: ir.Operation) -> Made:
        changed = False
        for inner in operations_named(op, *_IF):
            of = view(inner)
            if inner.results[0].type == inner.operands[0].type and _IF[inner.name](of):
                inner.results[0].replace_all_uses_with(inner.operands[0])
                inner.erase()
                changed = True
        return () if changed else False


def _in_order(name: str) -> Callable[[Op], bool]:
    return lambda op: list(op.ints(name)) == sorted(op.ints(name))


# What must hold beside equal types.
_IF: dict[str, Callable[[Op], bool]] = {
    "stablehlo.broadcast_in_dim": _in_order("broadcast_dimensions"),
    "stablehlo.transpose": _in_order("permutation"),
    "stablehlo.reshape": lambda op: True,
    "stablehlo.convert": lambda op: True,
    "stablehlo.slice": lambda op: True,  # a slice of the operand's own shape is the whole of it
    "stablehlo.concatenate": lambda op: len(op.operand_types) == 1,
}
