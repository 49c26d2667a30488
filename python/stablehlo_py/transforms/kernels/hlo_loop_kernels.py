"""Whiles with small steps become kernels: the whole loop in registers, in place of a few launches a step.

    while (x, i) { cond } do { body }   ->   call @loop_0(x, i)

A loop that might run long, or of which nobody knows how long it runs, is cut so that the program can be stopped:

    while (x, i, going = true) { going } do { call @loop_0(x, i) }

where @loop_0 takes up to a number of steps and says whether the condition still holds. Other loops carry whether their condition
holds, so that the kernel that counts can look at the count.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import ir


class HloLoopKernels(Pass):
    """Let each while whose steps are small be a kernel of its own, and others say at the end of a step whether they go on."""

    name: ClassVar[str] = "hlo-loop-kernels"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.while",)

    def run(self, op: ir.Operation) -> None:
        import stablehlo_py.ops  # noqa: F401 - which ops are elementwise
        from stablehlo_py.transforms.kernels.outline_loops import outline  # few programs have loops

        outline(op.regions[0].blocks[0])
