"""expm1 and log1p as calls of the C library: the upstream conversion cancels in exp(x) - 1 and log(1 + x)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir
from stablehlo_py.ops.expression import Num
from stablehlo_py.ops.libm import call

CALLS = {"math.expm1": "expm1", "math.log1p": "log1p"}


@dataclass(frozen=True)
class MathToCalls(Pass):
    """Replace math.expm1 and math.log1p on f32 and f64 by accurate calls of the C library."""

    name: ClassVar[str] = "math-to-calls"

    def run(self, op: ir.Operation) -> None:
        found: list[ir.Operation] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            if inner.name in CALLS and isinstance(inner.results[0].type, ir.F32Type | ir.F64Type):
                found.append(inner)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for old in found:
            with ir.InsertionPoint(old), old.location:
                new = call(CALLS[old.name], Num(old.operands[0]))
            old.results[0].replace_all_uses_with(new.value)
            old.operation.erase()
