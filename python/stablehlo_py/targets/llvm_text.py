"""From the LLVM dialect to LLVM IR text, of LLVM 24 as the bindings are: translation without crashes."""

from __future__ import annotations

import re

from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir, llvm_ir

_TRANSLATED_DIALECTS = ("llvm.", "nvvm.")
# Scalars and vectors of these are LLVM types too; index, memref, tensor, tuple and the 8-bit floats are not.
_BUILTIN_TYPE = re.compile(r"(vector<(\[?\d+\]?x)+)?(i\d+|f16|bf16|f32|f64|f80|f128|!llvm\.ptr.*)>?$")


def to_llvm_ir(module: ir.Operation) -> str:
    """The text of a module that holds only the LLVM and NVVM dialects, as LLVM 24 writes it."""
    check_translatable(module)
    return llvm_ir(module)


def check_translatable(module: ir.Operation) -> None:
    """Refuse what has no translation: translating it would end the process."""
    names: dict[str, bool] = {}  # ops that are known to be good -> whether such have regions
    known: set[ir.Type] = set()
    problems: list[UnsupportedOp] = []  # raised outside of the walk, which goes through C++

    def look(op: ir.Operation) -> ir.WalkResult:
        name = op.name
        if name not in names:
            if op != module and not name.startswith(_TRANSLATED_DIALECTS):
                problems.append(_unsupported(op, "it was left behind by the lowering to LLVM"))
                return ir.WalkResult.INTERRUPT
            names[name] = len(op.regions) > 0
        types = [result.type for result in op.results]
        if names[name]:
            types += [argument.type for region in op.regions for block in region.blocks for argument in block.arguments]
        for ty in types:
            if ty not in known:
                text = str(ty)
                if not text.startswith("!llvm.") and not _BUILTIN_TYPE.match(text):
                    problems.append(_unsupported(op, f"type {text} has no LLVM type"))
                    return ir.WalkResult.INTERRUPT
                known.add(ty)
        return ir.WalkResult.ADVANCE

    module.walk(look, ir.WalkOrder.PRE_ORDER)
    if problems:
        raise problems[0]


def _unsupported(op: ir.Operation, why: str) -> UnsupportedOp:
    return UnsupportedOp(op.name, why, where=describe_location(op.location))
