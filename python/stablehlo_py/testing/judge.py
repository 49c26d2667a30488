"""What a child does with one program: compile, run, run between guards, compare; every exception becomes an answer."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

import numpy as np

import stablehlo_py
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import borrowed_context
from stablehlo_py.reading import read_module
from stablehlo_py.reference.interpreter import interpret
from stablehlo_py.runtime.executable import Executable
from stablehlo_py.testing.agreement import differences
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.worker import COMPILE

GUARDED = 64 << 20  # bytes of all buffers up to which a program runs once more, each buffer between guards


def judge(
    job: str, program: str | bytes, arrays: Sequence[np.ndarray] | None, others: Sequence[Sequence[np.ndarray]] = ()
) -> tuple[str, str]:
    """(kind, detail) of a Verdict. others: what the same executable is called with after `arrays`."""
    try:
        executable = stablehlo_py.compile(program, cache=False)
    except Exception as error:
        return _failed(error)
    if job == COMPILE or arrays is None:
        return "ok", ""
    for number, given in enumerate((arrays, *others)):
        kind, detail = _call(executable, program, given)
        if kind != "ok":
            return kind, f"call {number + 1}: {detail}" if number else detail
    return "ok", ""


def _failed(error: Exception) -> tuple[str, str]:
    if isinstance(error, CompileError):
        return "refused", f"{type(error).__name__}: {error}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return "error", f"{type(error).__name__}: {error}\n  at {place.filename.rpartition('/')[2]}:{place.lineno}"


def _call(
    executable: Callable[..., Sequence[np.ndarray]], program: str | bytes, arrays: Sequence[np.ndarray]
) -> tuple[str, str]:
    """Run, and run between guards; compare with the reference."""
    try:
        before = [a.copy() for a in arrays]
        got = [np.array(r) for r in executable(*arrays)]
        if any(a.tobytes() != b.tobytes() for a, b in zip(arrays, before, strict=True)):
            return "mismatch", "an argument was written to"
        if isinstance(executable, Executable) and sum(b.bytes for b in executable.program.buffers) < GUARDED:
            guarded = guarded_call(executable, arrays)
            if any(a.tobytes() != b.tobytes() for a, b in zip(got, guarded, strict=True)):
                return "mismatch", "other bits where each buffer lies between inaccessible pages"
    except Exception as error:
        return _failed(error)
    try:
        with borrowed_context() as context:
            module = read_module(program, context)
            want = [np.asarray(r) for r in interpret(module, *arrays)]
            said = differences(module, arrays, got, want)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
        return "error", f"reference: {type(error).__name__}: {error}\n  at {where}"
    return ("mismatch", "\n".join(said)) if said else ("ok", "")
