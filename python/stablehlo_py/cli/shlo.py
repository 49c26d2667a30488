"""`shlo`: run, check, compile and explain StableHLO programs from the shell.

Exit codes: 0 fine, 1 an error in the input, 2 wrong usage, 3 results that do not agree (check).
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from stablehlo_py.cli import reduce as reduce_command
from stablehlo_py.cli import report as report_command
from stablehlo_py.cli.exit_codes import BAD_INPUT, FINE
from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.host import HostCallError

_MODULES = {"bench": "bench", "check": "check"}  # commands that have a file of their own


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if getattr(arguments, "chip", "") and arguments.target == "cpu":
        parser.error("--chip is for --target=gpu and --target=tpu")
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
        return code
    except (CompileError, HostCallError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except OSError as error:
        print(f"error: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
        return BAD_INPUT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="shlo", description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="compile a program, run it, show its results")
    _program(run)
    _inputs(run)
    run.add_argument("--target", default="cpu", choices=("cpu", "tpu"), help="where it runs; tpu is a simulator")
    run.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    run.add_argument("-o", dest="output", metavar="OUT.npz", help="keep the results as out0, out1, ...")
    run.add_argument("--profile", action="store_true", help="also show the time of each kernel (cpu)")
    run.add_argument("--trace", default="", metavar="OUT.json", help="with --profile: a Chrome trace of the kernels")
    run.set_defaults(command=_lazily("run"))

    bench = commands.add_parser("bench", help="time a program against what this machine can do")
    _program(bench)
    _inputs(bench)
    bench.add_argument("--seconds", type=_seconds, default=1.0, help="how long to call it (default 1)")
    bench.add_argument("--json", action="store_true", help="print one JSON object instead of text")
    bench.set_defaults(command=_lazily("bench"))

    check = commands.add_parser(
        "check", help="compare the CPU target with the reference, and a program with its own assertions"
    )
    _program(check)
    _inputs(check)
    check.add_argument("--max-ulp", type=int, default=16, help="the largest distance that agrees (default 16)")
    check.add_argument(
        "--atol", type=float, default=1e-6, help="and what agrees whatever its ULPs, times the largest value"
    )
    check.set_defaults(command=_lazily("check"))

    compile_ = commands.add_parser("compile", help="compile a program and print or keep what comes out")
    _program(compile_)
    compile_.add_argument("--target", default="cpu", choices=("cpu", "gpu", "tpu"))
    compile_.add_argument("--emit", default="", help="a stage by name; program; llvm-ir or asm (cpu), ptx (gpu)")
    compile_.add_argument("--chip", default="", help="gpu: sm_80 ...; tpu: v4, v5e ...")
    compile_.add_argument("-o", dest="output", default="-", help="where to write it")
    compile_.set_defaults(command=_lazily("compile"))

    report = commands.add_parser(
        "report", help="which ops are in which kernel of the CPU and why, or where the time goes on a TPU-like chip"
    )
    _program(report)
    report_command.add_arguments(report)
    report.set_defaults(command=report_command.report)

    reduce = commands.add_parser("reduce", help="make a program that crashes or computes wrongly as small as can be")
    _program(reduce)
    _inputs(reduce)
    reduce_command.add_arguments(reduce)
    reduce.set_defaults(command=reduce_command.reduce)

    explain = commands.add_parser("explain", help="where the rules of an op stand and which targets have it")
    explain.add_argument("op", metavar="stablehlo.OP")
    explain.set_defaults(command=_lazily("explain"))

    cache = commands.add_parser("cache", help="look at the cache of compiled programs and kernels, or empty it")
    cache.add_argument("action", choices=("ls", "stats", "clear", "verify"))
    cache.add_argument("--folder", help="another folder than the user's own")
    cache.set_defaults(command=_lazily("cache"))
    return parser


def _program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="a file of MLIR text, bytecode or a StableHLO artifact; - for standard input")


def _inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input", action="append", default=[], metavar="VALUE", help="@x.npy, @all.npz, 2x3xf32=1; once for each"
    )
    parser.add_argument("--seed", type=_natural, default=0, help="of the random inputs made when none is given")


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 0 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def _lazily(name: str) -> Callable[[argparse.Namespace], int]:
    """The command of a module that is imported only when it runs."""

    def command(arguments: argparse.Namespace) -> int:
        module = importlib.import_module(f"stablehlo_py.cli.{_MODULES.get(name, 'commands')}")
        return getattr(module, name)(arguments)

    return command


if __name__ == "__main__":
    sys.exit(main())
