"""Programs of all producers in one form: one public main, modern static StableHLO, nothing computed twice."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import PassManager, ir
from stablehlo_py.transforms.normalize.hlo_custom_calls import keep_effects
from stablehlo_py.transforms.normalize.hlo_deprecated import HloDeprecated
from stablehlo_py.transforms.normalize.hlo_expand_chlo import HloExpandChlo
from stablehlo_py.transforms.normalize.hlo_inline import HloInline
from stablehlo_py.transforms.normalize.hlo_known_calls import HloKnownCalls
from stablehlo_py.transforms.normalize.hlo_quantized import HloQuantized
from stablehlo_py.transforms.normalize.hlo_scalar_ops import HloScalarOps
from stablehlo_py.transforms.normalize.hlo_static_shapes import HloStaticShapes
from stablehlo_py.transforms.normalize.hlo_tuples import HloTuples

# Composites first: their decompositions are functions, which inlining brings in.
STEPS = (
    HloExpandChlo(),
    HloInline(),
    HloTuples(),
    HloScalarOps(),
    HloStaticShapes(),
    HloKnownCalls(),
    HloQuantized(),
    HloDeprecated(),
)


class HloNormalize(Pass):
    """Bring a program into the form that all later passes start from."""

    name: ClassVar[str] = "hlo-normalize"

    def run(self, op: ir.Operation) -> None:
        keep_effects(op)
        for step in STEPS:
            step.run(op)
        with op.context:
            PassManager.parse("builtin.module(cse,trivial-dce)").run(op)


def normalize(module: ir.Module) -> None:
    """Bring `module` into the form that all later passes start from."""
    HloNormalize().run(module.operation)
