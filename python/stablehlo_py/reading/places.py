"""Where an op comes from, as a person reads it."""

from __future__ import annotations

import re

from stablehlo_py.mlir import ir

NO_FILE = "<text>"  # the parser calls text in memory "-"
_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')


def place(op: ir.Operation) -> str:
    """`file:line:column` of an op; empty where its location is not known."""
    return place_of(str(op.location))


def place_of(location: str) -> str:
    """The first `file:line:column` in a printed location: of a call chain that is the innermost frame."""
    found = _PLACE.search(location)
    if found is None:
        return ""
    return f"{NO_FILE if found[1] == '-' else found[1]}:{found[2]}:{found[3]}"
