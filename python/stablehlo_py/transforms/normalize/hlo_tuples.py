"""Tuples resolved: get_tuple_element(tuple(x, y), 1) == y."""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.places import place


class HloTuples(Pass):
    """Replace elements of tuples by the values that were put in; refuse tuples that functions take or return."""

    name: ClassVar[str] = "hlo-tuples"

    def run(self, op: ir.Operation) -> bool:
        getters: list[ir.Operation] = []
        makers: list[ir.Operation] = []

        def visit(inner: ir.Operation) -> None:
            if inner.name == "stablehlo.get_tuple_element":
                getters.append(inner)
            elif inner.name == "stablehlo.tuple":
                makers.append(inner)
            elif inner.name == "func.func":
                _refuse_tuple_signature(inner)

        walk(op, visit)
        for getter in getters:
            maker = getter.operands[0].owner
            if isinstance(maker, ir.Block) or maker.operation.name != "stablehlo.tuple":
                continue
            index = ir.IntegerAttr(getter.attributes["index"]).value
            getter.results[0].replace_all_uses_with(maker.operation.operands[index])
            getter.erase()
        for maker in reversed(makers):
            if not any(True for _ in maker.results[0].uses):
                maker.erase()
        return bool(getters or makers)


def _refuse_tuple_signature(function: ir.Operation) -> None:
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    if any(str(ty).startswith("tuple<") for ty in (*signature.inputs, *signature.results)):
        raise BadInput(
            f"@{ir.StringAttr(function.attributes['sym_name']).value} takes or returns a tuple",
            where=place(function),
            hint="give and return the tensors one by one",
        )
