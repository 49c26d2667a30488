"""chlo ops, composites and XLA's own custom calls as StableHLO.

stablehlo.composite "chlo.erf" %x {decomposition = @f}   ->   call @f(%x)
custom_call @mhlo.erf(%x)                                ->   chlo.erf %x   ->   its polynomial in StableHLO
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import PassManager, ir, load_chlo
from stablehlo_py.ops import CHLO_RULES
from stablehlo_py.reading.annotations import walk
from stablehlo_py.reading.places import place

# chlo ops that stay for rules of our own, where upstream's expansion is not accurate or not fast enough.
KEEP = CHLO_RULES | {"chlo.top_k"}

_HIDDEN = "kept."  # kept ops hide in custom calls of this prefix while the C++ pass, which takes no list, runs


class HloExpandChlo(Pass):
    """Expand chlo ops and composites, except those in KEEP, which stay or become chlo ops."""

    name: ClassVar[str] = "hlo-expand-chlo"
    chlo: bool = True  # else only composites: before shapes are known, chlo ops are easier than what they expand to

    def run(self, op: ir.Operation) -> None:
        found: dict[str, list[ir.Operation]] = {"composite": [], "call": [], "chlo": []}

        def visit(inner: ir.Operation) -> None:
            if inner.name == "stablehlo.composite":
                found["composite"].append(inner)
            elif inner.name == "stablehlo.custom_call" and _target(inner).startswith("mhlo."):
                found["call"].append(inner)
            elif inner.name.startswith("chlo."):
                found["chlo"].append(inner)

        walk(op, visit)
        chlo = found["chlo"] + [_from_mhlo_call(call) for call in found["call"]]
        kept = [inner for inner in chlo if inner.name in KEEP]
        is_left = False
        for composite in found["composite"]:
            name = ir.StringAttr(composite.attributes["name"]).value
            if name in KEEP:
                kept.append(_replace(composite, name, _entries(composite.attributes.get("composite_attributes"))))
            else:
                is_left = True
        is_for_upstream = self.chlo and any(inner.name not in KEEP for inner in chlo)
        passes = ["stablehlo-legalize-composite-to-call"] * is_left + ["chlo-legalize-to-stablehlo"] * is_for_upstream
        # A decomposition that is called may itself use chlo ops: they were found by the same walk.
        if not passes:
            return
        hidden = [_hide(inner) for inner in kept]
        with op.context:
            PassManager.parse(f"builtin.module(func.func({','.join(passes)}))").run(op)
        for call in hidden:
            _show(call)


def _target(call: ir.Operation) -> str:
    return ir.StringAttr(call.attributes["call_target_name"]).value


def _entries(dictionary: ir.Attribute | None) -> dict[str, ir.Attribute]:
    return {entry.name: entry.attr for entry in ir.DictAttr(dictionary)} if dictionary is not None else {}


def _replace(op: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> ir.Operation:
    """Put an op of another name in the place of `op`: same operands, same results."""
    with op.location, ir.InsertionPoint(op):
        new = ir.Operation.create(
            name, results=[r.type for r in op.results], operands=list(op.operands), attributes=attributes
        )
    for old, result in zip(list(op.results), list(new.results), strict=True):
        old.replace_all_uses_with(result)
    op.erase()
    return new


def _from_mhlo_call(call: ir.Operation) -> ir.Operation:
    """custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 2}}   ->   chlo.top_k(%x, k = 2)"""
    target = _target(call)
    name = {"mhlo.topk": "chlo.top_k"}.get(target, target.replace("mhlo.", "chlo."))
    attributes = _entries(call.attributes["mhlo.attributes"]) if "mhlo.attributes" in call.attributes else {}
    largest = attributes.pop("largest", None)
    load_chlo(call.context)
    if not call.context.is_registered_operation(name):
        raise UnsupportedOp(f"custom_call @{target}", "no op of StableHLO or chlo does this", where=place(call))
    if largest is not None and not ir.BoolAttr(largest).value:
        raise UnsupportedOp(
            f"custom_call @{target}", "the smallest elements are asked for", where=place(call), hint="negate the input"
        )
    return _replace(call, name, attributes)


def _hide(op: ir.Operation) -> ir.Operation:
    attributes = {name: op.attributes[name] for name in op.attributes}
    hidden: dict[str, ir.Attribute] = {
        "call_target_name": ir.StringAttr.get(_HIDDEN + op.name, op.context),
        "kept": ir.DictAttr.get(attributes, op.context),
    }
    return _replace(op, "stablehlo.custom_call", hidden)


def _show(call: ir.Operation) -> ir.Operation:
    return _replace(call, _target(call).removeprefix(_HIDDEN), _entries(call.attributes["kept"]))
