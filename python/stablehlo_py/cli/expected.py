"""Diagnostics that a test file expects: `// expected-error @+1 {{text}}`, compared with what was said."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stablehlo_py.core.diagnostics import Diagnostic, Place
from stablehlo_py.records import record

_KINDS = "error|warning|note|remark"
_HEAD = re.compile(rf"expected-({_KINDS})(-re)?\s*(?:@([+-]\d+|above|below|unknown))?\s*\{{\{{")
_REGEX = re.compile(r"\{\{(.*?)\}\}")
_ADDED_BY_MLIR = "see current operation: "  # a note on every op error; tests do not expect it


@record
class Expected:
    """One annotation. line: what it is about, None for no known place; written: the line it stands on."""

    kind: str
    line: int | None
    text: str
    is_regex: bool
    written: int

    def matches(self, kind: str, line: int | None, message: str) -> bool:
        if kind != self.kind or line != self.line:
            return False
        if not self.is_regex:
            return self.text in message
        # As in MLIR, text outside inner {{...}} is literal.
        parts = _REGEX.split(self.text)
        pattern = "".join(part if number % 2 else re.escape(part) for number, part in enumerate(parts))
        return re.search(pattern, message) is not None


def read_expected(text: str) -> tuple[list[Expected], list[str]]:
    """The annotations of a file, and what is wrong with those that cannot be read (as `line: message`)."""
    found: list[Expected] = []
    wrong: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        for head in _HEAD.finditer(line):
            kind, regex, where = head[1], bool(head[2]), head[3]
            # The last }} of a regex, for it has inner ones; the first one of plain text.
            end = line.rfind("}}") if regex else line.find("}}", head.end())
            if end < head.end():
                wrong.append(f"{number}: expected-{kind} without a closing }}}}")
                continue
            target = _target(lines, number, where)
            found.append(Expected(kind, target, line[head.end() : end], regex, number))
    return found, wrong


def _target(lines: list[str], number: int, where: str | None) -> int | None:
    if where is None:
        return number
    if where == "unknown":
        return None
    if where not in ("above", "below"):
        return number + int(where)
    step = -1 if where == "above" else 1
    number += step
    # Annotations stand in stacks: skip lines that hold only annotations.
    while 1 <= number <= len(lines) and lines[number - 1].lstrip().startswith("//") and _HEAD.search(lines[number - 1]):
        number += step
    return number


def compare(text: str, said: Iterable[Diagnostic], own_files: frozenset[str]) -> list[str]:
    """What was expected and not said, or said and not expected, as `line: message`; empty when all agree.

    own_files: the names that places in the test file itself have; any other place counts as unknown.
    """
    expected, problems = read_expected(text)
    open_ones = list(expected)
    for diagnostic in _flat(said):
        place = Place.parse(diagnostic.where)
        line = place.line if place and place.file in own_files else None
        match = next((e for e in open_ones if e.matches(diagnostic.severity, line, diagnostic.message)), None)
        if match is not None:
            open_ones.remove(match)
        elif not diagnostic.message.startswith(_ADDED_BY_MLIR):
            problems.append(f"{line or 'unknown place'}: unexpected {diagnostic.severity}: {diagnostic.message}")
    for missing in open_ones:
        problems.append(f'{missing.written}: expected {missing.kind} "{missing.text}" was not produced')
    return problems


def _flat(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flat(diagnostic.notes)
