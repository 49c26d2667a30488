"""What would take the process down is found before the C++ parser sees it: deep nesting, and ops whose verifier traps."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np

from stablehlo_py.errors import BadInput

MAX_DEPTH = 1000  # the parser's recursion overflows the stack at about 3,000 regions
PROBE_SECONDS = 60

_OPAQUE = re.compile(rb'"[^"\\\n]*(?:\\.[^"\\\n]*)*"|//[^\n]*')
_STEP = np.zeros(256, np.int8)
_STEP[list(b"([{<")] = 1
_STEP[list(b")]}>")] = -1

# all_to_all with no replica groups divides by zero in the bindings' verifier.
_TRAPPING = re.compile(rb"(?:stablehlo|vhlo)\.all_to_all|\ball_to_all(?:_v\d+)?\0")


def refuse_deep_nesting(text: bytes, where: str) -> None:
    """Refuse text whose brackets nest deeper than the parser's stack can follow."""
    depths, _ = _depths(_OPAQUE.sub(b"", text))
    if depths.size == 0 or int(depths.max()) <= MAX_DEPTH:
        return
    depths, offsets = _depths(_OPAQUE.sub(lambda match: b" " * len(match[0]), text))
    offset = int(offsets[np.argmax(depths > MAX_DEPTH)])
    line = text.count(b"\n", 0, offset) + 1
    column = offset - text.rfind(b"\n", 0, offset)
    raise BadInput(
        f"brackets nest {int(depths.max()):,} deep, deeper than {MAX_DEPTH:,}",
        where=f"{where}:{line}:{column}",
        hint="no compiler writes such a program; is the file damaged?",
    )


def _depths(text: bytes) -> tuple[np.ndarray, np.ndarray]:
    """How deep each bracket stands, and its offset; text is without strings and comments."""
    codes = np.frombuffer(text, np.uint8)
    offsets = np.flatnonzero(_STEP[codes])
    if offsets.size == 0:
        return np.empty(0, np.int64), offsets
    brackets = codes[offsets]
    before = codes[np.maximum(offsets - 1, 0)]
    after = codes[np.minimum(offsets + 1, codes.size - 1)]
    # Arrows and comparisons (affine sets) are no brackets.
    sign = ((brackets == ord(">")) & (before == ord("-"))) | (np.isin(brackets, list(b"<>")) & (after == ord("=")))
    offsets, brackets = offsets[~sign], brackets[~sign]
    level = np.cumsum(_STEP[brackets], dtype=np.int64)
    # Against the lowest level so far: stray closing brackets hide nothing.
    return level - np.minimum(np.minimum.accumulate(level), 0), offsets


def refuse_trapping(data: bytes, where: str) -> None:
    """Try in a child process what may stop this one; only programs with such ops pay for it."""
    if _TRAPPING.search(data) is None:
        return
    if not survives(data):
        raise BadInput(
            "the program crashes the MLIR verifier",
            where=where,
            hint="an all_to_all needs replica groups that are not empty",
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
    context.allow_unregistered_dialects = True
    try:
        if data.startswith(b"ML\xefR") and b"StableHLO_v" in data[:64]:
            stablehlo.deserialize_portable_artifact(context, data)
        else:
            ir.Module.parse(data, context)
    except (ir.MLIRError, RuntimeError, ValueError):
        pass
