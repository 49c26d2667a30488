"""The lit suite: every .mlir file says in its RUN lines what to run; the tools are this checkout's.

Each RUN line starts Python once or twice (about half a second each), so one file has many functions.
"""

# ruff: noqa: F821  lit gives `config`
import sys
from pathlib import Path

import lit.formats

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(sys.executable)


def tool(name: str, command: str) -> None:
    """Let a word of a RUN line stand for a command; not where it is part of a path, an option or an op's name."""
    config.substitutions.append((rf"(?<![\w./=-]){name}(?![\w./=-])", command))


config.name = "stablehlo_py"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = str(ROOT / "test" / "lit")
config.test_exec_root = str(ROOT / "build" / "lit")
config.environment["PYTHONPATH"] = str(ROOT / "python")

tool("stablehlo-opt", f"{PYTHON} {ROOT / 'tools' / 'stablehlo-opt'}")
tool("shlo", f"{PYTHON} {ROOT / 'tools' / 'shlo'}")
tool("FileCheck", str(PYTHON.parent / "filecheck"))
tool("filecheck", str(PYTHON.parent / "filecheck"))
config.substitutions.append(("%python", str(PYTHON)))
