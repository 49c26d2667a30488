"""From the LLVM dialect to LLVM IR text, of LLVM 24 as the bindings are: translation without crashes."""

from __future__ import annotations

import re

from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir, llvm_ir

_TRANSLATED_DIALECTS = ("llvm.", "nvvm.")
# Scalars and vectors of these are LLVM types too; index, memref, tensor, tuple and the 8-bit floats are not.
_BUILTIN_TYPE = re.compile(r"(vector<(\[?\d+\]?x)+)?(i\d+|f16|bf16|f32|f64|f80|f128|!llvm\.ptr.*)>?$")

# Ops without results, or whose results have a type of an operand, an element of it, i1 or a pointer.
_OF_OPERANDS = frozenset(
    f"llvm.{name}"
    for name in (
        *(
            "add",
            "and",
            "ashr",
            "fadd",
            "fdiv",
            "fmul",
            "fneg",
            "frem",
            "fsub",
            "lshr",
            "mul",
            "or",
            "sdiv",
            "shl",
            "srem",
        ),
        *("sub", "udiv", "urem", "xor", "intr.fabs", "intr.fma", "intr.fmuladd", "intr.maximum", "intr.maxnum"),
        *("intr.minimum", "intr.minnum", "intr.smax", "intr.smin", "intr.umax", "intr.umin"),
        *("br", "cond_br", "return", "store", "unreachable", "intr.assume", "intr.prefetch"),
        *("extractelement", "fcmp", "getelementptr", "icmp", "insertelement", "insertvalue", "select", "shufflevector"),
    )
)


def to_llvm_ir(module: ir.Operation) -> str:
    """The text of a module that holds only the LLVM and NVVM dialects, as LLVM 24 writes it."""
    check_translatable(module)
    return llvm_ir(module)


def check_translatable(module: ir.Operation) -> None:
    """Refuse what has no translation: translating it would end the process."""
    names: dict[str, tuple[bool, bool]] = {}  # ops that are known to be good -> have they regions, may they bring types
    known: set[ir.Type] = set()

    def check_type(op: ir.Operation, ty: ir.Type) -> None:
        if ty not in known:
            text = str(ty)
            if not text.startswith("!llvm.") and not _BUILTIN_TYPE.match(text):
                raise _unsupported(op, f"type {text} has no LLVM type")
            known.add(ty)

    def check_inside(op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    check_type(op, argument.type)
                for inner in block.operations:
                    check(inner.operation)

    def check(op: ir.Operation) -> None:
        name = op.name
        if name not in names:
            if not name.startswith(_TRANSLATED_DIALECTS):
                raise _unsupported(op, "it was left behind by the lowering to LLVM")
            names[name] = len(op.regions) > 0, name not in _OF_OPERANDS
        has_regions, brings_types = names[name]
        if brings_types:
            for result in op.results:
                check_type(op, result.type)
        if has_regions:
            check_inside(op)

    check_inside(module)


def _unsupported(op: ir.Operation, why: str) -> UnsupportedOp:
    return UnsupportedOp(op.name, why, where=describe_location(op.location))
