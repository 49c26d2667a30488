"""`shlo check`: the CPU target against the reference interpreter, and a program against the assertions in it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stablehlo_py.cli.exit_codes import BAD_INPUT, FINE, MISMATCH
from stablehlo_py.cli.inputs import read_inputs, source_of
from stablehlo_py.cli.parts import SPLIT, split_input
from stablehlo_py.core.ulp import ulp_distance
from stablehlo_py.custom_calls.assertions import strictly
from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.host import HostCallError


def check(arguments: argparse.Namespace) -> int:
    """Judge each program of the input; 3 when one does not agree."""
    source = source_of(arguments)
    parts = _parts(source)
    name = "<stdin>" if arguments.program == "-" else arguments.program
    if len(parts) == 1:
        return _judge(source, arguments, name, "")
    codes = [_judge_part(part, arguments, name) for part in parts]
    good = codes.count(FINE)
    print(f"{len(parts)} programs: {good} agree" + (f", {len(parts) - good} DO NOT" if good < len(parts) else ""))
    return max(codes)


def _parts(source: Path | bytes) -> list[str]:
    """The programs of a file of text; one (empty) for anything else."""
    try:
        text = (source if isinstance(source, bytes) else source.read_bytes()).decode()
    except (OSError, UnicodeDecodeError):
        return [""]  # reading says what is wrong with it
    return list(split_input(text)) if SPLIT.search(text) else [""]


def _judge_part(text: str, arguments: argparse.Namespace, name: str) -> int:
    """One program of several; a mistake in one does not stop the others."""
    line = len(text) - len(text.lstrip("\n")) + 1
    try:
        return _judge(text, arguments, name, f"{name}:{line}: ")
    except CompileError as error:
        print(f"error: {error}".replace("<text>", name), file=sys.stderr)
        return BAD_INPUT


def _judge(source: Any, arguments: argparse.Namespace, name: str, prefix: str) -> int:  # Any: as compile takes it
    from stablehlo_py import compile
    from stablehlo_py.mlir import ir, new_context
    from stablehlo_py.reading import read_module
    from stablehlo_py.reference.interpreter import interpret

    executable = compile(source)
    inputs = read_inputs(arguments.input, executable.signature.arguments, arguments.seed)
    with new_context() as context, ir.Location.unknown():
        module = read_module(source, context)
        outcomes = {"CPU": _run(executable, inputs), "reference": _run(lambda *a: interpret(module, *a), inputs)}
    said = []
    agree = True
    for where, (_, held, failure) in outcomes.items():
        if failure:
            agree = False
            place = failure.removeprefix("-:")  # the name that text has in MLIR
            said.append(f"assertions: FAIL on the {where}: {failure if place == failure else f'{name}:{place}'}")
        elif held:
            said.append(f"assertions: {held} hold on the {where}")
    got, want = (outcome[0] for outcome in outcomes.values())
    if got is not None and want is not None:
        for i, (ours, theirs) in enumerate(zip(got, want, strict=True)):
            text, good = compare(ours, np.asarray(theirs), arguments.max_ulp, arguments.atol)
            agree &= good
            said.append(f"result {i}: {'agrees' if good else 'DIFFERS'}, {ours.dtype.name}{list(ours.shape)}: {text}")
    for line in said or ["nothing to compare: the program has neither results nor assertions"]:
        print(prefix + line)
    return FINE if agree else MISMATCH


def _run(
    call: Any, inputs: Sequence[np.ndarray]
) -> tuple[Sequence[np.ndarray] | None, int, str]:  # Any: an executable or a function of arrays
    """Results, how many assertions held, and what the one that failed says; no results where one failed."""
    with strictly() as tally:
        try:
            return call(*inputs), tally.held, ""
        except RuntimeError as error:
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, AssertionError):
                cause = cause.__cause__
            if cause is None:
                raise
            # a target's host call says the place first
            return None, tally.held, str(error.__cause__ if isinstance(error, HostCallError) else cause)


def compare(got: np.ndarray, want: np.ndarray, max_ulp: int, atol: float) -> tuple[str, bool]:
    """What to say of a result and whether it agrees: exactly for integers, within ULPs or `atol` for floats."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"the reference gives {want.dtype.name}{list(want.shape)}", False
    if got.size == 0:
        return "no elements", True
    if got.dtype.kind in "iub" or got.dtype.name.startswith(("int", "uint")):
        wrong = int((got != want).sum())
        return (f"{wrong} of {got.size} elements differ" if wrong else "equal"), wrong == 0
    distance = ulp_distance(got, want)
    with np.errstate(all="ignore"):
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        difference = np.abs(got.astype(wide) - want.astype(wide))
        scale = np.abs(want.astype(wide))
        allowed = atol * max(1.0, float(np.max(scale, where=np.isfinite(scale), initial=0.0)))
        good = bool(((distance <= max_ulp) | (difference <= allowed)).all())
    worst = np.unravel_index(int(np.argmax(distance)), distance.shape)
    place = f" at {[int(k) for k in worst]}: {got[worst]} against {want[worst]}" if distance[worst] else ""
    small = f", no more than {atol:g} of the largest value" if good and distance[worst] > max_ulp else ""
    return f"worst {int(distance[worst])} ULP{place}{small}", good
