"""What would take the process down is found before the C++ parser sees it: deep nesting, and ops whose verifier traps."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zlib

import numpy as np

from stablehlo_py.errors import BadInput

MAX_DEPTH = 1000  # the parser's recursion overflows the stack at about 3,000 regions
PROBE_SECONDS = 20

_SAFE_BYTES = 50_000  # a level of nesting takes some ten bytes, and 5,000 levels are read without harm
_SAMPLE = 1 << 20
_REPETITIVE = 5  # real programs of this size compress one to four times
CHUNK = 1 << 23  # bytes looked at together: bounds the memory of the scan

_STEP = np.zeros(256, np.int8)
_STEP[list(b"([{<")] = 1
_STEP[list(b")]}>")] = -1
_EVENTS = _STEP != 0
_EVENTS[list(b'"/\n')] = True
_QUOTE, _SLASH, _NEWLINE = b'"'[0], b"/"[0], b"\n"[0]
_ESCAPES = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)+"')

_TRAPPING = b"all_to_all"  # with no replica groups it divides by zero in the bindings' verifier


def refuse_deep_nesting(text: bytes, where: str) -> None:
    """Refuse text whose brackets nest deeper than the parser's stack can follow."""
    if b"\\" in text:  # strings with escapes are blanked out: below, every quote starts or ends a string
        text = _ESCAPES.sub(lambda match: b" " * len(match[0]), text)
    level = lowest = start = 0
    while start < len(text):
        end = text.find(b"\n", start + CHUNK) + 1 or len(text)
        steps, offsets = _brackets(np.frombuffer(text, np.uint8, end - start, start))
        if offsets.size > 0:
            levels = level + np.cumsum(steps, dtype=np.int64)
            # Against the lowest level so far: stray closing brackets hide nothing.
            depths = levels - np.minimum(np.minimum.accumulate(levels), lowest)
            if int(depths.max()) > MAX_DEPTH:
                raise _too_deep(text, start + int(offsets[np.argmax(depths > MAX_DEPTH)]), where)
            level, lowest = int(levels[-1]), min(lowest, int(levels.min()))
        start = end


def _brackets(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """+1 or -1 for each bracket of some whole lines that stands outside of strings and comments, and its offset."""
    offsets = np.flatnonzero(_EVENTS[codes])
    events = codes[offsets]
    if offsets.size == 0:
        return events.astype(np.int8), offsets
    after = codes[np.minimum(offsets + 1, codes.size - 1)]
    if np.isin(events, (_QUOTE, _SLASH)).any():
        order = np.arange(events.size)
        line_start = np.maximum.accumulate(np.where(events == _NEWLINE, order, 0))
        quotes = np.cumsum(events == _QUOTE)
        in_string = (quotes - quotes[line_start]) & 1 == 1
        if events[0] == _QUOTE:  # the first line starts with no newline whose count could be taken away
            in_string ^= line_start == 0
        comment = np.maximum.accumulate(np.where((events == _SLASH) & (after == _SLASH) & ~in_string, order, -1))
        shown = ~in_string & (comment < line_start)
        shown |= ~in_string & (comment < 0)
    else:
        shown = np.ones(events.size, bool)
    before = codes[np.maximum(offsets - 1, 0)]
    # Arrows and comparisons (affine sets) are no brackets.
    sign = ((events == ord(">")) & (before == ord("-"))) | (np.isin(events, list(b"<>")) & (after == ord("=")))
    shown &= ~sign & (_STEP[events] != 0)
    return _STEP[events[shown]], offsets[shown]


def _too_deep(text: bytes, offset: int, where: str) -> BadInput:
    line = text.count(b"\n", 0, offset) + 1
    column = offset - text.rfind(b"\n", 0, offset)
    return BadInput(
        f"brackets nest deeper than {MAX_DEPTH:,}",
        where=f"{where}:{line}:{column}",
        hint="no compiler writes such a program; is the file damaged?",
    )


def refuse_trapping(data: bytes, where: str) -> None:
    """Try in a child process what may stop this one; only programs with such ops pay for it."""
    if _TRAPPING in data and not survives(data):
        raise BadInput(
            "the program crashes the MLIR verifier",
            where=where,
            hint="an all_to_all needs replica groups that are not empty",
        )


def refuse_deep_bytecode(data: bytes, where: str) -> None:
    """Try bytecode in a child process that looks like one thing nested in itself over and over: it has no brackets to count."""
    sample = data[:_SAMPLE]
    if len(data) < _SAFE_BYTES or len(zlib.compress(sample, 1)) * _REPETITIVE > len(sample):
        return
    if not survives(data):
        raise BadInput(
            "the bytecode nests too deep, or crashes the MLIR parser otherwise",
            where=where,
            hint="no compiler writes such a program; is the file damaged?",
        )


def survives(data: bytes) -> bool:
    """Whether a child process outlives parsing `data`; an ordinary parse error counts as outliving."""
    command = "from stablehlo_py.reading import guard; guard.parse_standard_input()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        child = subprocess.run(
            [sys.executable, "-c", command],
            check=False,
            input=data,
            env=environment,
            capture_output=True,
            timeout=PROBE_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return False
    return child.returncode >= 0


def parse_standard_input() -> None:
    """The child's work: parse what comes on standard input, and say nothing about ordinary errors."""
    from stablehlo_py.mlir import ir, new_context, stablehlo

    data = sys.stdin.buffer.read()
    context = new_context()
    try:
        if data.startswith(b"ML\xefR") and b"StableHLO_v" in data[:64]:
            stablehlo.deserialize_portable_artifact(context, data)
        else:
            context.allow_unregistered_dialects = not data.startswith(b"ML\xefR")
            ir.Module.parse(data, context)
    except (ir.MLIRError, RuntimeError, ValueError):
        pass
