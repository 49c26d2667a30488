"""Which CPU code is made for: this machine's, unless `Options.codegen` names another.

Passes that choose vector widths and instructions ask here; the code generator that follows is told the same names.
"""

from __future__ import annotations

from stablehlo_py.mlir import ir
from stablehlo_py.targets.cpus import host as host
from stablehlo_py.targets.cpus import resolved as resolved

FEATURES = "cpu.features"  # on a module that is compiled for another CPU than this machine's


def features_of(op: ir.Operation, given: str = "") -> str:
    """LLVM's feature names that code for `op`, a module or an op in one, may use; `given` is a pass's own option."""
    if given:
        return given
    while op.parent is not None:
        op = op.parent.operation
    return ir.StringAttr(op.attributes[FEATURES]).value if FEATURES in op.attributes else host()[1]
