"""Folding of loops before they are vectorised or lowered: all of it for loops of linalg ops, one sweep for equal values else.

Emitters fold what they know while they write. To look at each of their ops takes half as long as to write it, and 1 in 50 of
them goes away; what matters of these is folded behind, once they are LLVM's.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core import upstream
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.mlir import PassManager, ir, kept
from stablehlo_py.targets.cpu.emit.nest import is_written_whole
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL


@kept
def _passes(names: str) -> PassManager:
    """What runs these passes; where passes are not trusted, the pipeline verifies behind this one."""
    manager = PassManager.parse(f"builtin.module({names})")
    manager.enable_verifier(False)
    return manager


class CpuFoldLoops(Pass):
    """Fold the ops of kernels on loops; of those that emitters wrote, make equal values one."""

    name: ClassVar[str] = "cpu-fold-loops"
    is_trusted: ClassVar[bool] = True

    def run(self, op: ir.Operation) -> Made:
        kernels = [f.operation for f in op.regions[0].blocks[0].operations if KERNEL in f.operation.attributes]
        if all(is_written_whole(kernel) for kernel in kernels):
            _passes("cse").run(op)
            return ()
        _passes("canonicalize{region-simplify=disabled},cse").run(op)
        return upstream.ADDS["canonicalize"]
