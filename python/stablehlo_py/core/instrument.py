"""Watching a pipeline run: printing IR, timing passes, dumping stages."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from stablehlo_py.mlir import ir
from stablehlo_py.records import record

Print = Callable[[ir.Operation], str]


class Instrument:
    """The base: sees everything, does nothing."""

    def before_pass(self, name: str, stage: str, module: ir.Operation) -> None: ...

    def after_pass(self, name: str, stage: str, module: ir.Operation, seconds: float) -> None: ...

    def after_stage(self, number: int, stage: str, module: ir.Operation) -> None: ...


class Instruments(Instrument):
    """Several instruments as one."""

    def __init__(self, parts: Sequence[Instrument]) -> None:
        self.parts = tuple(parts)

    def before_pass(self, name: str, stage: str, module: ir.Operation) -> None:
        for part in self.parts:
            part.before_pass(name, stage, module)

    def after_pass(self, name: str, stage: str, module: ir.Operation, seconds: float) -> None:
        for part in self.parts:
            part.after_pass(name, stage, module, seconds)

    def after_stage(self, number: int, stage: str, module: ir.Operation) -> None:
        for part in self.parts:
            part.after_stage(number, stage, module)


def print_op(op: ir.Operation) -> str:
    """A module as text, with large constants cut short."""
    return op.get_asm(large_elements_limit=64, large_resource_limit=64, assume_verified=True)


class PrintIR(Instrument):
    """Print the module before or after chosen passes. before, after: names of passes; None for all."""

    def __init__(
        self,
        *,
        before: frozenset[str] | None = frozenset(),
        after: frozenset[str] | None = frozenset(),
        show: Print = print_op,
        write: Callable[[str], object] | None = None,
    ) -> None:
        self.before, self.after, self.show = before, after, show
        self.write = write or sys.stderr.write

    def before_pass(self, name: str, stage: str, module: ir.Operation) -> None:
        if self.before is None or name in self.before:
            self._print("Before", name, stage, module)

    def after_pass(self, name: str, stage: str, module: ir.Operation, seconds: float) -> None:
        if self.after is None or name in self.after:
            self._print("After", name, stage, module)

    def _print(self, when: str, name: str, stage: str, module: ir.Operation) -> None:
        of = f" (stage {stage})" if stage else ""
        self.write(f"// -----// IR Dump {when} {name}{of} //----- //\n{self.show(module).rstrip()}\n\n")


@record
class Row:
    """How long one pass took."""

    stage: str
    name: str
    seconds: float


class Timing(Instrument):
    """Wall time of every pass; `rows` in the order they ran, `table()` as text."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def after_pass(self, name: str, stage: str, module: ir.Operation, seconds: float) -> None:
        self.rows.append(Row(stage, name, seconds))

    @property
    def total(self) -> float:
        return sum(row.seconds for row in self.rows)

    def by_stage(self) -> dict[str, float]:
        """Seconds of each stage."""
        sums: dict[str, float] = {}
        for row in self.rows:
            sums[row.stage] = sums.get(row.stage, 0.0) + row.seconds
        return sums

    def table(self) -> str:
        """Stages with their passes, milliseconds and shares."""
        total = self.total or 1.0
        lines = [f"===- Pass execution timing: {self.total * 1e3:.2f} ms in {len(self.rows)} passes -==="]
        lines.append("       ms  share  name")
        for stage, seconds in self.by_stage().items():
            lines.append(f"{seconds * 1e3:9.3f} {seconds / total:6.1%}  {stage or 'all'}")
            for row in self.rows:
                if row.stage == stage:
                    lines.append(f"{row.seconds * 1e3:9.3f} {row.seconds / total:6.1%}    {row.name}")
        return "\n".join(lines) + "\n"


class DumpStages(Instrument):
    """Write the module after each stage to `folder/NN-stage.mlir`."""

    def __init__(self, folder: Path, *, show: Print = print_op) -> None:
        self.folder, self.show = folder, show
        folder.mkdir(parents=True, exist_ok=True)

    def after_stage(self, number: int, stage: str, module: ir.Operation) -> None:
        (self.folder / f"{number:02}-{stage or 'all'}.mlir").write_text(self.show(module), encoding="utf-8")
