"""The platform index of programs that JAX exported for several platforms: chosen here, no longer an argument.

main(%i: tensor<i32> {jax.global_constant = "_platform_index"}, %x)   ->   main(%x), where %i is the constant of "cpu"
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir

PLATFORM = "cpu"
_MARK = "jax.global_constant"
_INDEX = "_platform_index"


def bind_platform(module: ir.Module, platforms: Sequence[str]) -> None:
    """Put the index of our platform in the place of main's argument for it, if it has one."""
    main = _main(module)
    place = None if main is None else _argument(main)
    if main is None or place is None:
        return
    if PLATFORM not in platforms:
        raise BadInput(
            f"the program was exported for {', '.join(platforms)}, not for {PLATFORM}",
            where="<Exported>",
            hint=f"export it with platforms=[{PLATFORM!r}, ...]",
        )
    block = main.regions[0].blocks[0]
    index = ir.DenseElementsAttr.get_splat(
        block.arguments[place].type,
        ir.IntegerAttr.get(ir.RankedTensorType(block.arguments[place].type).element_type, platforms.index(PLATFORM)),
    )
    with ir.InsertionPoint.at_block_begin(block), main.location:
        constant = ir.Operation.create("stablehlo.constant", results=[index.type], attributes={"value": index})
    block.arguments[place].replace_all_uses_with(constant.results[0])
    block.erase_argument(place)
    results = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value).results
    main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([a.type for a in block.arguments], results))
    marks = list(ir.ArrayAttr(main.attributes["arg_attrs"]))
    main.attributes["arg_attrs"] = ir.ArrayAttr.get(marks[:place] + marks[place + 1 :])


def _main(module: ir.Module) -> ir.Operation | None:
    for child in module.body.operations:
        op = child.operation
        if op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value == "main":
            return op
    return None


def _argument(main: ir.Operation) -> int | None:
    """The place of the argument that takes the platform index."""
    if "arg_attrs" not in main.attributes:
        return None
    for place, mark in enumerate(ir.ArrayAttr(main.attributes["arg_attrs"])):
        names = ir.DictAttr(mark)
        if _MARK in names and ir.StringAttr(names[_MARK]).value == _INDEX:
            return place
    return None
