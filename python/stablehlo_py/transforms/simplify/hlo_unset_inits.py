"""A loop that writes all of a carried value before anything reads it does not care what that value starts as.

y = zeros; while { y[i] = f(x[i]) }   ->   y = any memory; while { y[i] = f(x[i]) }

Such is what a scan stacks up. Nothing reads it in the loop but the update itself, a dynamic_update_slice whose index
runs through all of one dimension. A custom call stands for the memory; no code is made for it.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.analysis.loops import counter_of
from stablehlo_py.analysis.progressions import Progressions
from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.custom_calls.call import UNSET
from stablehlo_py.dialects import make
from stablehlo_py.mlir import ir


class HloUnsetInits(Pass):
    """Let carried values that a while writes whole, before anything reads them, start as any memory."""

    name: ClassVar[str] = "hlo-unset-inits"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, op: ir.Operation) -> None:
        for loop in operations_named(op, "stablehlo.while"):
            counter = counter_of(loop)
            if counter is None or counter.trips < 1:
                continue
            known = Progressions(loop, counter)
            for number in range(len(loop.operands)):
                if _is_written_whole(loop, number, known):
                    ty = tensor_type(loop.operands[number].type)
                    with ir.InsertionPoint(loop), loop.location:
                        unset = make.op("custom_call", [], ty, call_target_name=ir.StringAttr.get(UNSET))
                    loop.operands[number] = unset.results[0]


def _is_written_whole(loop: ir.Operation, number: int, known: Progressions) -> bool:
    condition, body = (region.blocks[0] for region in loop.regions)
    argument = body.arguments[number]
    uses = list(argument.uses)
    if any(True for _ in condition.arguments[number].uses) or len(uses) != 1:
        return False
    update, end = uses[0].owner.operation, body.operations[len(body.operations) - 1].operation
    if update.name != "stablehlo.dynamic_update_slice" or update.operands[0] != argument or update.block != body:
        return False
    if len(list(update.results[0].uses)) != 1 or end.operands[number] != update.results[0]:
        return False
    whole, part = (tensor_type(v.type).shape for v in list(update.operands)[:2])
    cut = [d for d, (n, m) in enumerate(zip(whole, part, strict=True)) if n != m]
    if len(cut) != 1 or 0 in part:
        return False
    (d,) = cut
    index = known.of(update.operands[2 + d])
    if index is None or not 1 <= abs(index.step) <= part[d]:
        return False
    low, high = index.bounds(known.counter.trips)
    return low <= 0 and high >= whole[d] - part[d]
