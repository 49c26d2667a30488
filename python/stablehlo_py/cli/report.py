"""`shlo report`: where the time of a program goes on a TPU-like chip, or what its kernels on the CPU are and why."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

_TARGETS = "tpu: a model of a chip, nothing runs on one; cpu: which ops went into which kernel, and why"
_TRACE = "tpu: write a trace for chrome://tracing or ui.perfetto.dev"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes besides the program."""
    parser.add_argument("--target", default="tpu", choices=("cpu", "tpu"), help=_TARGETS)
    parser.add_argument("--chip", default="", help="tpu: v4, v4-megacore, v5e (the default), v5p or v6e")
    parser.add_argument(
        "--precision", default="default", choices=("default", "highest"), help="tpu: of products of f32"
    )
    parser.add_argument("--what-if", action="store_true", help="tpu: the same on other chips too")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("-o", dest="output", metavar="REPORT.html", help="tpu: write a page with pictures")
    parser.add_argument("--trace", metavar="TRACE.json", help=_TRACE)


def report(arguments: argparse.Namespace) -> int:
    """Compile the program, time its kernels, print the report and write the files that are asked for."""
    # The bindings take most of a second to import, so help and wrong usage do without them.
    if arguments.target == "cpu":
        return _kernels(arguments)
    from stablehlo_py.cli.inputs import source_of
    from stablehlo_py.mlir import ir, new_context
    from stablehlo_py.reading import read_module
    from stablehlo_py.targets.tpu.compile import TpuOptions, compile_tpu
    from stablehlo_py.targets.tpu.report_html import html

    chip = arguments.chip or "v5e"
    options = TpuOptions(chip=chip, precision=arguments.precision)
    with new_context() as context, ir.Location.unknown():
        program = compile_tpu(read_module(source_of(arguments), context), options)
    result = program.report(what_if=arguments.what_if or bool(arguments.output))
    if arguments.output:
        name = "standard input" if arguments.program == "-" else Path(arguments.program).name
        Path(arguments.output).write_text(html(result, f"{name} on a {chip}"), encoding="utf-8")
    if arguments.trace:
        Path(arguments.trace).write_text(json.dumps(result.chrome_trace()), encoding="utf-8")
    print(json.dumps(result.as_json(), indent=1) if arguments.json else result.as_text())
    return 0


def _kernels(arguments: argparse.Namespace) -> int:
    """The kernels of the program on the CPU."""
    from stablehlo_py.cli.inputs import source_of
    from stablehlo_py.errors import CompileError
    from stablehlo_py.mlir import ir, new_context
    from stablehlo_py.reading import read_module
    from stablehlo_py.targets.cpu.report import report as report_of

    if arguments.output or arguments.trace:
        raise CompileError("the report on the CPU is a table or JSON", hint="leave -o and --trace, or say --target=tpu")
    with new_context() as context, ir.Location.unknown():
        result = report_of(read_module(source_of(arguments), context).operation)
    print(json.dumps(result.as_json(), indent=1) if arguments.json else result.as_text())
    return 0
