"""Custom calls are checked before anything is lowered: each calls a registered function that takes what it is given.

custom_call @f(%x) -> tuple<a, b>   ->   custom_call @f(%x) {has_side_effect = false} -> (a, b)
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py import custom_calls
from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.passes import Pass
from stablehlo_py.dialects.custom_call import NAME, call_of, target_of
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir

EFFECT = "has_side_effect"


class HloCustomCalls(Pass):
    """Refuse custom calls of functions that nobody registered; say of the others whether they may be dropped."""

    name: ClassVar[str] = "hlo-custom-calls"
    only_with: ClassVar[tuple[str, ...]] = (NAME,)

    def run(self, op: ir.Operation) -> None:
        for call in operations_named(op, NAME):
            # the name first: what else stands in a call for other platforms may be anything
            function = custom_calls.find(target_of(call), describe_location(call.location))
            call = _with_flat_results(call)
            custom_calls.find_for(call_of(call))
            declared = EFFECT in call.attributes and ir.BoolAttr(call.attributes[EFFECT]).value
            call.attributes[EFFECT] = ir.BoolAttr.get(declared or function.has_side_effect, call.context)


def keep_effects(module: ir.Operation) -> None:
    """Say of calls whose function has an effect that they have one, before passes drop what nothing uses."""
    found = operations_named(module, NAME)
    if not found:
        return
    known = set(custom_calls.registered_names())
    for call in found:
        name = target_of(call)
        if name in known and custom_calls.find(name).has_side_effect:
            call.attributes[EFFECT] = ir.BoolAttr.get(True, call.context)


def _with_flat_results(call: ir.Operation) -> ir.Operation:
    """The call, with the elements of the tuple that it gives as results of their own."""
    if len(call.results) != 1 or not isinstance(call.results[0].type, ir.TupleType):
        return call
    ty = ir.TupleType(call.results[0].type)
    readers = [use.owner.operation for use in call.results[0].uses]
    elements = [ty.get_type(i) for i in range(ty.num_types)]
    if any(isinstance(e, ir.TupleType) for e in elements) or any(
        reader.name != "stablehlo.get_tuple_element" for reader in readers
    ):
        raise UnsupportedOp(
            f"custom_call @{target_of(call)}", "its tuple is not taken apart", where=describe_location(call.location)
        )
    with ir.InsertionPoint(call), call.location:
        flat = ir.Operation.create(
            NAME,
            results=elements,
            operands=list(call.operands),
            attributes={name: call.attributes[name] for name in call.attributes},
        )
    for reader in readers:
        index = ir.IntegerAttr(reader.attributes["index"]).value
        reader.results[0].replace_all_uses_with(flat.results[index])
        reader.erase()
    call.erase()
    return flat
