"""Custom calls are checked before anything is lowered: each calls a registered function that takes what it is given.

custom_call @f(%x)   ->   custom_call @f(%x) {has_side_effect = false}, where the function has none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py import custom_calls
from stablehlo_py.core.passes import Pass
from stablehlo_py.dialects.custom_call import NAME, call_of
from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk

EFFECT = "has_side_effect"


@dataclass(frozen=True)
class HloCustomCalls(Pass):
    """Refuse custom calls of functions that nobody registered; say of the others whether they may be dropped."""

    name: ClassVar[str] = "hlo-custom-calls"

    def run(self, op: ir.Operation) -> None:
        found: list[ir.Operation] = []
        walk(op, lambda inner: found.append(inner) if inner.name == NAME else None)
        for call in found:
            function = custom_calls.find(call_of(call))
            declared = EFFECT in call.attributes and ir.BoolAttr(call.attributes[EFFECT]).value
            call.attributes[EFFECT] = ir.BoolAttr.get(declared or function.has_side_effect, call.context)
