"""`shlo reduce`: the smallest program that still crashes, disagrees with the reference, or gives an error."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

CHECKS = "crash, hang, mismatch, or error:TEXT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes besides the program and its inputs."""
    parser.add_argument("--check", required=True, type=_check, metavar="CHECK", help=f"what must stay: {CHECKS}")
    parser.add_argument("-o", dest="output", metavar="OUT.mlir", help="where to write it, its inputs beside it as .npz")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long to go on (default 300)")
    parser.add_argument("--run-seconds", type=float, default=20.0, help="a run that takes longer hangs (default 20)")
    parser.add_argument(
        "--plugin", default="", metavar="FILE.py", help="run in each child first; registers custom calls"
    )


def _check(text: str) -> str:
    if text in ("crash", "hang", "mismatch") or (text.startswith("error:") and text != "error:"):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not one of {CHECKS}")


def reduce(arguments: argparse.Namespace) -> int:
    """Reduce the program, each candidate in a child process; 1 when the program itself does not do what is asked."""
    # The bindings take most of a second to import, so help and wrong usage do without them.
    from stablehlo_py.cli.inputs import source_of
    from stablehlo_py.testing.edits import Program
    from stablehlo_py.testing.shrink import shrink
    from stablehlo_py.testing.worker import Worker

    program = Program(*_read(source_of(arguments), arguments))
    with Worker(seconds=arguments.run_seconds, plugin=arguments.plugin) as worker:

        def check(candidate: Program) -> bool:
            return _holds(arguments.check, worker.judge(candidate.text, list(candidate.arrays)))

        first = worker.judge(program.text, list(program.arrays))
        if not _holds(arguments.check, first):
            detail = f": {first.detail}" if first.detail else ""
            print(f"error: the program gives {first.kind}, not {arguments.check}{detail}", file=sys.stderr)
            return 1
        work = shrink(program, check, seconds=arguments.seconds)
        last = worker.judge(work.best.text, list(work.best.arrays))
    _write(work.best, arguments.output)
    before, after = program.size[0], work.best.size[0]
    print(f"{before} lines of ops became {after} after {work.tried} candidates: {last.detail}", file=sys.stderr)
    return 0


def _holds(check: str, verdict: Any) -> bool:  # Any: a Verdict, of a module that is imported late
    if check.startswith("error:"):
        return verdict.kind in ("error", "refused") and check.partition(":")[2] in verdict.detail
    return verdict.kind == check


def _read(source: Any, arguments: argparse.Namespace) -> tuple[str, tuple[Any, ...]]:  # Any: sources and arrays
    """The program as text and its inputs; what cannot be read stays as it is, and is reduced as text."""
    from stablehlo_py.cli.inputs import read_inputs
    from stablehlo_py.errors import CompileError
    from stablehlo_py.mlir import ir, new_context
    from stablehlo_py.reading import read_module
    from stablehlo_py.runtime.program import ArrayType
    from stablehlo_py.testing import edits

    data = source if isinstance(source, bytes) else source.read_bytes()
    try:
        with new_context() as context, ir.Location.unknown():
            module = read_module(data, context)
            types = [ArrayType(ty.shape, ty.element.dtype.name) for ty in edits.argument_types(module)]
            text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=False)
    except CompileError:
        return data.decode("utf-8", "replace"), ()
    return text, tuple(read_inputs(arguments.input, types, arguments.seed))


def _write(program: Any, output: str | None) -> None:  # Any: a Program, of a module that is imported late
    if not output:
        print(program.text, end="")
        return
    from stablehlo_py.testing.store import write_arrays

    Path(output).write_text(program.text)
    if program.arrays:
        write_arrays(Path(output).with_suffix(".npz"), program.arrays)
