"""The flags of `stablehlo-opt`, spelled as mlir-opt spells them where it has them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

PROGRAM = "stablehlo-opt"

_USAGE = """\
passes are given in one of three ways:
  --pass-pipeline='func.func(canonicalize,cse),hlo-to-linalg{target=cpu}'
  --pipeline=cpu [--stop-after=STAGE]
  --canonicalize --cse --hlo-to-linalg='target=cpu'

exit codes: 0 fine, 1 error in the input, 2 wrong usage"""


def long_flags(argv: Sequence[str]) -> list[str]:
    """mlir-opt takes `-cse` for `--cse`; so do we, and `-o` wants a space before its file."""
    return [f"-{arg}" if re.match(r"-[a-z][\w-]+", arg) else arg for arg in argv]


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        PROGRAM,
        usage=f"{PROGRAM} [FILE] [options] [passes]",
        description="Read StableHLO (or any MLIR), run passes written in Python and C++, print the result.",
        epilog=_USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("file", nargs="?", default="-", metavar="FILE", help="MLIR text or bytecode; - for standard input")
    add("-o", dest="output", metavar="FILE", help="write there instead of to standard output")
    add("--pass-pipeline", metavar="TEXT", help="passes in MLIR's grammar")
    add("--pipeline", metavar="NAME", help="one of our pipelines (cpu, gpu, tpu, ...) or a pipeline file")
    add("--stop-after", metavar="STAGE", help="stop after this stage of the pipeline")
    add("--split-input-file", action="store_true", help="take the parts between lines `// -----` one by one")
    add("--verify-diagnostics", action="store_true", help="compare diagnostics with `expected-error {{...}}` comments")
    add("--allow-unregistered-dialect", action="store_true", help="read ops that nobody knows")
    add("--load-pass-plugin", action="append", default=[], metavar="FILE.py", help="import a file that defines passes")
    add("--list-passes", nargs="?", const="", metavar="WORD", help="list passes (whose name has WORD, with options)")
    add("--list-pipelines", action="store_true", help="list our pipelines and their stages")
    add("--emit-bytecode", action="store_true", help="write MLIR bytecode instead of text")
    add("--mlir-print-op-generic", action="store_true", help="print ops in generic form")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-print-local-scope", action="store_true", help="print without aliases")
    add("--mlir-elide-elementsattrs-if-larger", type=_count, metavar="N", help="print ... for constants larger than N")
    add("--mlir-print-ir-before-all", action="store_true", help="print the module before every pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print the module after every pass")
    add("--mlir-print-ir-before", action="append", default=[], metavar="PASS", help="print it before these passes")
    add("--mlir-print-ir-after", action="append", default=[], metavar="PASS", help="print it after these passes")
    add("--mlir-timing", action="store_true", help="print the time of every pass and stage")
    add("--dump-stages", metavar="DIR", help="write the module after every stage to DIR/NN-stage.mlir")
    add("--traceback", action="store_true", help="show where in the compiler an internal error happened")
    return parser


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"a whole number is wanted, not {text!r}")
    return int(text)
