"""Mathematical functions on scalars as branch-free arithmetic, so that LLVM vectorises the loops around them.

And what roundings to bf16 need not do on a CPU, see `short_nans`, which can be told before functions are bits.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpu.emit.nest import is_written_whole
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.vectors.row_maxima import is_not_positive
from stablehlo_py.targets.cpu.vectors.short_nans import is_needless
from stablehlo_py.transforms.math_expansions import CALLS, OPS, Function, expand, exponential
from stablehlo_py.transforms.math_expansions.arithmetic import Arithmetic

MADE = ("arith.", "llvm.", *(f"math.{name}" for name in ("absf", "copysign", "floor", "fma", "roundeven", "sqrt")))


class ExpandMath(Pass):
    """Replace math ops and calls of the C library on f32 and f64 by branch-free polynomials.

    features: LLVM's names of what the target can do, which decide whether products and sums are fused; empty for the
    host's own. What has no expansion stays as it is.
    """

    name: ClassVar[str] = "expand-math"
    only_with: ClassVar[tuple[str, ...]] = (*OPS, "func.call", "arith.select")
    is_trusted: ClassVar[bool] = True
    is_quick: ClassVar[bool] = True

    features: str = ""

    def run(self, op: ir.Operation) -> Made:
        features = features_of(op, self.features)
        arithmetic = Arithmetic(fma=has_fma(features), ldexp="+avx512dq" in features.split(","))
        found: list[tuple[ir.Operation, Function]] = []
        needless: list[ir.Operation] = []  # found before functions become bits

        def visit(inner: ir.Operation) -> ir.WalkResult:
            function = _function_of(inner)
            if function is not None:
                found.append((inner, function))
            elif is_needless(inner):
                needless.append(inner.operation)
            return ir.WalkResult.ADVANCE

        for function in op.regions[0].blocks[0].operations:
            if not is_written_whole(function.operation):
                function.operation.walk(visit)
        for choice in needless:
            choice.results[0].replace_all_uses_with(choice.operands[2])
            choice.erase()
        for old, function in found:
            with ir.InsertionPoint(old), old.location:
                new = expand(function, arithmetic, *old.operands)
            old.results[0].replace_all_uses_with(new)
            old.operation.erase()
        return MADE if found or needless else False


def has_fma(features: str) -> bool:
    """x86 names it; AArch64 always has it."""
    names = features.split(",")
    return "+fma" in names or "+neon" in names or "+v8a" in names


def _function_of(op: ir.Operation) -> Function | None:
    name = op.name
    function = OPS.get(name)
    if name == "func.call":
        function = CALLS.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value.removesuffix("f"))
    elif name == "math.exp" and is_not_positive(op.operands[0]):
        function = exponential.exp_not_positive
    if function is None or not isinstance(op.results[0].type, ir.F32Type | ir.F64Type):
        return None
    return function
