"""Diagnostics: what MLIR and our passes say about an op, with the user's own source line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import ir
from stablehlo_py.patterns import pattern
from stablehlo_py.records import record

_PLACE = pattern(r"(?P<file>[^\n]+?):(?P<line>\d+):(?P<column>\d+)(?: \((?P<name>[^\n]*)\))?")
_CURRENT_OP = pattern(r'see current operation: (?:%\S+ = )?"?([A-Za-z_]\w*\.[\w.$]+)')
_LIBRARY = pattern(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python3")


@record
class Place:
    """A point in a source file; `name` is what the frontend calls the op there, such as `jit(f)/add`."""

    file: str
    line: int
    column: int
    name: str = ""

    @staticmethod
    def parse(text: str) -> Place | None:
        """The place that `describe_location` wrote, or None."""
        found = _PLACE.fullmatch(text)
        return found and Place(found["file"], int(found["line"]), int(found["column"]), found["name"] or "")


@record
class Diagnostic:
    """One message about one place; severity is error, warning, note or remark."""

    severity: str
    message: str
    where: str = ""
    notes: tuple[Diagnostic, ...] = ()

    @property
    def op_name(self) -> str:
        """The op that MLIR was looking at, from the note it adds; empty where it added none."""
        found = [m[1] for note in self.notes if (m := _CURRENT_OP.match(note.message))]
        return found[0] if found else ""

    def __str__(self) -> str:
        head = f"{self.where}: " if self.where else ""
        return "\n".join([f"{head}{self.severity}: {self.message}", *(f"  {note}" for note in self.notes)])


class PassFailure(CompileError):
    """A pass gave up on a program; `diagnostics` are its errors in order, the first of them is the message."""

    def __init__(self, pass_name: str, diagnostics: tuple[Diagnostic, ...], *, hint: str = "") -> None:
        self.diagnostics = diagnostics
        if not diagnostics:
            super().__init__(f"pass {pass_name} failed and did not say why", hint=hint)
            return
        first = diagnostics[0]
        on = f" on {first.op_name}" if first.op_name and first.op_name not in first.message else ""
        count = len(diagnostics) - 1
        more = f" ({count} more error{'s' if count > 1 else ''})" if count else ""
        super().__init__(f"pass {pass_name} failed{on}: {first.message}{more}", where=first.where, hint=hint)


def describe_location(location: ir.Location) -> str:
    """`file:line:column (name)` of the innermost place in the user's own code; empty where nothing is known.

    name: what the frontend calls the op. Frames inside installed packages give way to the user's, if there is one.
    """
    name, frames = "", []
    for part in _innermost_first(location):
        if isinstance(part, ir.NameLoc):
            name = name or part.name_str
        else:
            frames.append(f"{part.filename}:{part.start_line}:{part.start_col}")
    own = [frame for frame in frames if not _LIBRARY.search(frame)]
    place = (own or frames or [""])[0]
    if place and name:
        return f"{place} ({name})"
    return place or name


def _innermost_first(location: ir.Location) -> Iterator[Any]:  # Any: NameLoc or FileLineColLoc
    if isinstance(location, ir.FileLineColLoc):
        yield location
    elif isinstance(location, ir.NameLoc):
        yield location
        yield from _innermost_first(location.child_loc)
    elif isinstance(location, ir.CallSiteLoc):
        yield from _innermost_first(location.callee)
        yield from _innermost_first(location.caller)
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from _innermost_first(part)


def of_binding(diagnostic: Any) -> Diagnostic:  # Any: ir.Diagnostic in a handler, ir.DiagnosticInfo in an exception
    """A copy of what the bindings hand out, which is dead memory as soon as its handler returns."""
    severity = str(diagnostic.severity).rpartition(".")[2].lower()
    notes = tuple(of_binding(note) for note in diagnostic.notes)
    return Diagnostic(severity, diagnostic.message, describe_location(diagnostic.location), notes)


@contextmanager
def collect(context: ir.Context, keep: Callable[[Diagnostic], bool], *, errors: bool) -> Iterator[list[Diagnostic]]:
    """Collect what is said in `context`; what `keep` refuses goes on to the handlers outside.

    errors: take errors out of the exceptions of the bindings too, which then carry none.
    """
    found: list[Diagnostic] = []

    def handle(diagnostic: Any) -> bool:  # Any: see of_binding
        copy = of_binding(diagnostic)
        if keep(copy):
            found.append(copy)
            return True
        return False

    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = before or errors
    try:
        with context.attach_diagnostic_handler(handle):
            yield found
    finally:
        context.emit_error_diagnostics = before


def is_error(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity == "error"


def render(diagnostic: Diagnostic, sources: dict[str, list[str]], *, name: str = "-") -> str:
    """A diagnostic the way clang prints it: place, message, the source line, a caret, notes.

    sources: file name -> lines; files that are not in it are read and added. name: what to print for the file `-`.
    """
    place = Place.parse(diagnostic.where)
    message = _short(diagnostic.message)
    if place is None:
        lines = [f"{diagnostic.where or name}: {diagnostic.severity}: {message}"]
    else:
        lines = [f"{_at(place, name)}: {diagnostic.severity}: {message}" + (f" [{place.name}]" if place.name else "")]
        # Some messages bring their own excerpt.
        lines += [] if "\n" in diagnostic.message else _excerpt(place, sources)
    for note in diagnostic.notes:
        there = Place.parse(note.where)
        elsewhere = f"{_at(there, name)}: " if there and note.where != diagnostic.where else ""
        lines.append(f"  {elsewhere}note: {_short(note.message)}")
    return "\n".join(lines)


def _at(place: Place, name: str) -> str:
    return f"{name if place.file == '-' else place.file}:{place.line}:{place.column}"


def _short(message: str) -> str:
    """Notes print whole ops, whose constants and regions may be megabytes."""
    lines = [line if len(line) <= 400 else f"{line[:400]} ..." for line in message.split("\n")]
    return "\n".join(lines if len(lines) <= 12 else [*lines[:12], "..."])


def _excerpt(place: Place, sources: dict[str, list[str]]) -> list[str]:
    """The source line and a caret under the column."""
    if place.file not in sources:
        sources[place.file] = _read_lines(place.file)
    lines = sources[place.file]
    if not 1 <= place.line <= len(lines):
        return []
    line = lines[place.line - 1]
    # Python counts columns from 0, MLIR and editors from 1.
    column = place.column if place.file.endswith(".py") else max(place.column - 1, 0)
    start = max(0, column - 100)  # constants make lines of megabytes
    shown = line[start : start + 160].replace("\t", " ")
    return [f"  {shown}", "  " + " " * (column - start) + "^"]


def _read_lines(file: str) -> list[str]:
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            return stream.read().split("\n")
    except OSError:
        return []
