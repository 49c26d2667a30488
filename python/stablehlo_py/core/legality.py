"""What may remain after a stage: lists of dialects and ops, and the error for the first op that breaks them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir
from stablehlo_py.records import record


@record
class Legality:
    """allow: all that may remain; empty for everything. forbid: what may not. Entries are dialects or full op names.

    An op's own name beats its dialect: `allow: stablehlo.custom_call` with `forbid: stablehlo` leaves the one op.
    """

    allow: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.allow or self.forbid)

    def permits(self, op_name: str) -> bool:
        if op_name in self.forbid:
            return False
        if op_name in self.allow or op_name == "builtin.module":
            return True
        dialect = op_name.partition(".")[0]
        return dialect not in self.forbid and (not self.allow or dialect in self.allow)

    def permits_all(self, op_names: Iterable[str]) -> bool:
        return all(self.permits(name) for name in op_names)

    def offenders(self, root: ir.Operation) -> list[ir.Operation]:
        """The ops under `root` that may not be there, in order."""
        verdicts: dict[str, bool] = {}
        found: list[ir.Operation] = []

        def look(op: ir.Operation) -> ir.WalkResult:
            name = op.name
            if name not in verdicts:
                verdicts[name] = self.permits(name)
            if not verdicts[name]:
                found.append(op)
            return ir.WalkResult.ADVANCE

        root.walk(look, ir.WalkOrder.PRE_ORDER)
        return found

    def check(self, root: ir.Operation, stage: str) -> None:
        """Raise CompileError at the first op that may not remain after `stage`."""
        found = self.offenders(root)
        if not found:
            return
        first = found[0]
        others = Counter(op.name for op in found[1:])
        more = f" (also {', '.join(f'{n} x {name}' for name, n in others.most_common(4))})" if others else ""
        raise IllegalOp(
            f"{first.name} may not remain after stage {stage}{more}",
            where=describe_location(first.location),
            hint=f"no pass of the stage rewrote it; `shlo explain {first.name}` tells what has a rule for it, "
            f"--mlir-print-ir-after-all shows where it came from",
        )


ANYTHING = Legality()


class IllegalOp(CompileError):
    """An op that a stage had to remove is still there."""
