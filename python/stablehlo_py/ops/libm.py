"""Calls of the C library's mathematics: a private declaration in the enclosing module, resolved when code is linked."""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.mlir import func, ir
from stablehlo_py.ops.expression import Num


def call_libm(name: str, arguments: Sequence[ir.Value], results: Sequence[ir.Type]) -> list[ir.Value]:
    """Call `name`; two f64 arguments or results stand for one `double _Complex`, as the x86-64 and AArch64 ABIs pass it."""
    block = ir.InsertionPoint.current.block
    _declare(_enclosing_module(block), name, [a.type for a in arguments], results)
    return list(func.call(results, name, arguments).results)


def call(name: str, *arguments: Num) -> Num:
    """A function of real arguments, all of one type: `name` for f64, `name` + "f" for f32."""
    ty = arguments[0].type
    full = name if isinstance(ty, ir.F64Type) else name + "f"
    return Num(call_libm(full, [a.value for a in arguments], [ty])[0])


def _enclosing_module(block: ir.Block) -> ir.Block:
    op = block.owner
    while op.operation.name not in ("builtin.module", "gpu.module"):
        op = op.operation.parent
    return op.operation.regions[0].blocks[0]


def _declare(body: ir.Block, name: str, arguments: Sequence[ir.Type], results: Sequence[ir.Type]) -> None:
    # declarations stand first, so one that is there is found without looking at the kernels
    for op in body.operations:
        if "sym_name" in op.attributes and ir.StringAttr(op.attributes["sym_name"]).value == name:
            return
    with ir.InsertionPoint.at_block_begin(body), ir.Location.unknown():
        func.func(name, ir.FunctionType.get(arguments, results), private=True)
