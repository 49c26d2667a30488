"""Passes that only the tests of stablehlo-opt use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir


def ops_named(root: ir.Operation, name: str) -> list[ir.Operation]:
    found: list[ir.Operation] = []

    def look(op: ir.Operation) -> ir.WalkResult:
        if op.name == name:
            found.append(op)
        return ir.WalkResult.ADVANCE

    root.walk(look)
    return found


@dataclass(frozen=True)
class Tag(Pass):
    """Give the op an attribute, which shows where and with which options the pass ran."""

    name: ClassVar[str] = "test-tag"
    anchor: ClassVar[str] = "any"

    key: str = "tag"
    value: int = 1
    loud: bool = False
    scale: float = 1.0

    def run(self, op: ir.Operation) -> None:
        text = f"{self.value * self.scale:g}{'!' if self.loud else ''}"
        op.attributes[f"test.{self.key}"] = ir.StringAttr.get(text)


@dataclass(frozen=True)
class Refuse(Pass):
    """Say something about every op of one name: how = emit, raise, remark or crash."""

    name: ClassVar[str] = "test-refuse"

    op: str = "stablehlo.subtract"
    how: str = "emit"

    def run(self, op: ir.Operation) -> None:
        for found in ops_named(op, self.op):
            if self.how == "raise":
                from stablehlo_py.core.diagnostics import describe_location

                where = describe_location(found.location)
                raise UnsupportedOp(found.name, "the test wants it so", where=where, hint="use another op")
            if self.how == "crash":
                raise KeyError("a mistake in a pass")
            found.location.emit_error(f"{found.name} is refused")


@dataclass(frozen=True)
class Break(Pass):
    """Leave a module that does not verify."""

    name: ClassVar[str] = "test-break"

    def run(self, op: ir.Operation) -> None:
        for function in ops_named(op, "func.func"):
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
