"""Exact rewrites on StableHLO: the driver of the rules in ops/simplify, each of which is one line of mathematics.

A few sweeps over the program in its order: an op sees its operands already simplified, and what a rule makes is tried in
the next one. Sweeps end when one changes nothing.
"""

from __future__ import annotations

from typing import ClassVar

from stablehlo_py.core import registry
from stablehlo_py.core.passes import Pass
from stablehlo_py.dialects.stablehlo import view
from stablehlo_py.mlir import ir

SWEEPS = 8  # rules shrink the program, so that two or three do; more would be a cycle of rules


class HloSimplify(Pass):
    """Rewrite ops by identities that hold exactly; ops that are left without use go with cse."""

    name: ClassVar[str] = "hlo-simplify"

    def run(self, op: ir.Operation) -> bool:
        import stablehlo_py.ops  # which ops are elementwise
        import stablehlo_py.ops.simplify  # noqa: F401 - registers the rules

        driver = _Driver()
        for sweep in range(SWEEPS):
            driver.changed = False
            driver.regions_of(op)
            if not driver.changed:
                return sweep > 0
        return True


class _Driver:
    def __init__(self) -> None:
        self.rules: dict[str, list[registry.Rule]] = {}  # by op, of those that were met
        self.static: dict[ir.Type, bool] = {}
        self.changed = False

    def regions_of(self, op: ir.Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                for inner in list(block.operations):
                    self.op(inner.operation)

    def op(self, op: ir.Operation) -> None:
        if len(op.regions):
            self.regions_of(op)
        name = op.name
        if name not in self.rules:
            self.rules[name] = registry.simplify.all(name)
        rules = self.rules[name]
        if not rules or not self.is_static(op):
            return
        if _is_dead(op):
            return
        seen = view(op)
        with ir.InsertionPoint(op), op.location:
            values = next((made for rule in rules if (made := rule(seen)) is not None), None)
        if values is None:
            return
        self.changed = True
        for old, new in zip(list(op.results), [values] if isinstance(values, ir.Value) else values, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def is_static(self, op: ir.Operation) -> bool:
        """Rules are written for tensors of known shape and of plain elements."""
        for value in (*op.operands, *op.results):
            ty = value.type
            known = self.static.get(ty)
            if known is None:
                known = self.static[ty] = isinstance(ty, ir.RankedTensorType) and ty.has_static_shape and _is_plain(ty)
            if not known:
                return False
        return True


def _is_plain(ty: ir.RankedTensorType) -> bool:
    element = ty.element_type
    return isinstance(element, ir.IntegerType | ir.FloatType | ir.ComplexType) and ty.encoding is None


def _is_dead(op: ir.Operation) -> bool:
    return all(next(iter(result.uses), None) is None for result in op.results)
