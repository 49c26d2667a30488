"""Programs of all producers in one form: one public main, modern static StableHLO, nothing computed twice."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass, find_pass
from stablehlo_py.mlir import belongings, ir, pass_manager
from stablehlo_py.transforms.normalize.shape_operands import DYNAMIC_OPS, is_dynamic

CUSTOM_CALL = "stablehlo.custom_call"
TUPLE, DYNAMIC, QUANTIZED = "a tuple", "a shape that is not known", "a quantized element"  # in types

# The passes, with what they are for: ops, dialects, and what is in types; None for any program. Few programs have much
# of it, and a pass takes a millisecond to import. Composites first: their decompositions are functions, which inlining
# brings in.
STEPS: dict[str, frozenset[str] | None] = {
    "hlo-expand-chlo": frozenset({"chlo", "stablehlo.composite", CUSTOM_CALL}),
    "hlo-inline": None,
    "hlo-tuples": frozenset({TUPLE}),
    "hlo-scalar-ops": frozenset({"arith", "math", "shape", "tensor"}),
    "hlo-static-shapes": frozenset({DYNAMIC, CUSTOM_CALL, *DYNAMIC_OPS}),
    "hlo-known-calls": frozenset({CUSTOM_CALL}),
    "hlo-quantized": frozenset({QUANTIZED}),
    "hlo-deprecated": frozenset(
        f"stablehlo.{name}"
        for name in (
            *("broadcast", "create_token", "cross-replica-sum", "dot"),
            *("einsum", "map", "torch_index_select", "unary_einsum"),
        )
    ),
}


class HloNormalize(Pass):
    """Bring a program into the form that all later passes start from."""

    name: ClassVar[str] = "hlo-normalize"

    def run(self, op: ir.Operation) -> None:
        found = contents(op)
        if CUSTOM_CALL in found:
            from stablehlo_py.transforms.normalize.hlo_custom_calls import keep_effects

            keep_effects(op)
        for name, needs in STEPS.items():
            if needs is not None and needs.isdisjoint(found):
                continue
            step = find_pass(name)
            assert step is not None
            if step().run(op) is not False:
                found = contents(op)
        with op.context:
            pass_manager("builtin.module(cse,trivial-dce)").run(op)


def contents(module: ir.Operation) -> frozenset[str]:
    """The names of the ops of a module and of their dialects, and what its types have in them that is not plain."""
    names: set[str] = set()
    types: set[ir.Type] = set()
    proceed = ir.WalkResult.ADVANCE

    def visit(op: ir.Operation) -> ir.WalkResult:
        names.add(op.name)
        types.update(result.type for result in op.results)
        for region in op.regions:
            for block in region.blocks:
                types.update(argument.type for argument in block.arguments)
        if op.name == "func.func":
            signature = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
            types.update(signature.inputs)
            types.update(signature.results)
        return proceed

    module.walk(visit)
    found = names | {name.partition(".")[0] for name in names}
    known = belongings(module.context).setdefault(contents, {})  # to spell a type out costs more than all else here
    for ty in types:
        if ty not in known:
            known[ty] = _contents_of_type(ty)
        found |= known[ty]
    return frozenset(found)


def _contents_of_type(ty: ir.Type) -> set[str]:
    found = {DYNAMIC} if is_dynamic(ty) else set()
    if isinstance(ty, ir.TupleType):
        found.add(TUPLE)
    if "!quant." in str(ty):
        found.add(QUANTIZED)
    return found


def normalize(module: ir.Module) -> None:
    """Bring `module` into the form that all later passes start from."""
    HloNormalize().run(module.operation)
