"""python -m stablehlo_py.dialects.mxu_export [FILE]: the mxu dialect as IRDL text, for any mlir-opt --irdl-file."""

from __future__ import annotations

import sys
from pathlib import Path

from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir, new_context

HEAD = """\
// The mxu dialect, as IRDL: exported from python/stablehlo_py/dialects/mxu.py, where the verifiers are.
// To write it again: python -m stablehlo_py.dialects.mxu_export dialects/mxu.irdl.mlir
"""


def irdl_text() -> str:
    """The dialect's definition; what the Python classes declare and no more."""
    with new_context() as context, ir.Location.unknown():
        mxu.load(context)
        return HEAD + str(mxu.Mxu._mlir_module) + "\n"


def main(arguments: list[str]) -> int:
    if not arguments:
        sys.stdout.write(irdl_text())
        return 0
    if len(arguments) > 1 or arguments[0].startswith("-"):
        sys.stderr.write(f"{__doc__}\n")
        return 2
    Path(arguments[0]).write_text(irdl_text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
