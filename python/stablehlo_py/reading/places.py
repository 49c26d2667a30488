"""What is read, and where an op in it comes from, as a person reads it."""

from __future__ import annotations

from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.mlir import ir
from stablehlo_py.patterns import pattern
from stablehlo_py.records import record

NO_FILE = "<text>"  # the parser calls text in memory "-"
_POSITION = pattern(r":(\d+):(\d+)\)?$")


@record
class Source:
    """What is read: its name in messages, and its text where it is text."""

    name: str
    text: str = ""

    def line(self, number: int) -> str:
        lines = self.text.splitlines()
        return lines[number - 1] if 0 < number <= len(lines) else ""


def place(op: ir.Operation) -> str:
    """The user's own line of an op, `file:line:column (name)`; empty where its location is not known."""
    found = describe_location(op.location)
    return NO_FILE + found[1:] if found.startswith("-:") else found


def position(location: ir.Location) -> tuple[int, int] | None:
    """Line and column of a parser's complaint."""
    found = _POSITION.search(str(location))
    return (int(found[1]), int(found[2])) if found else None
