"""Write core/upstream_passes.txt anew: the C++ passes that the bindings have, and the ops that each may run on.

    python tools/probe_upstream_passes.py [--write]

The bindings cannot list their passes. Every string of their libraries that looks like a pass name is tried in a
pipeline that cannot be built for another reason; the parser complains about the first name that it does not know.
Anchors are tried in a child process each, since a few passes abort the process under an op that is not theirs.
Summaries are written by hand in the file and kept.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
from stablehlo_py.core import upstream
from stablehlo_py.mlir import PACKAGE, PassManager, new_context

ANCHORS = ("builtin.module", "func.func", "gpu.module", "llvm.func")  # a pass that takes all of them takes any op
RARE_ANCHORS = ("spirv.module",)
_NAME = re.compile(rb"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\0")


def candidates() -> list[str]:
    """Strings of the bindings' libraries that may be names of passes."""
    folder = Path(sys.modules[PACKAGE].__path__[0]) / "_mlir_libs"
    found: set[bytes] = set()
    for library in sorted(folder.glob("*.so")):
        found.update(_NAME.findall(library.read_bytes()))
    names = [name[:-1].decode() for name in found]
    # A string may stand in the library only as the tail of a longer one.
    tails = {name[m.end() :] for name in names for m in re.finditer("-", name)}
    return sorted(name for name in tails.union(names) if 3 <= len(name) <= 60)


def runs_on(name: str, anchor: str) -> bool:
    """Whether a pipeline of this one pass can be made, tried in a child process."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        try:
            with new_context():
                PassManager.parse(f"builtin.module({anchor}({name}))")
            os._exit(0)
        except BaseException:  # the parent only wants to know
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    with new_context():
        names = [name for name in candidates() if upstream.registered(name)]
    old = upstream.passes()
    rows = []
    for name in names:
        anchors = [anchor for anchor in ANCHORS if runs_on(name, anchor)]
        anchors = anchors or [anchor for anchor in RARE_ANCHORS if runs_on(name, anchor)]
        if not anchors:
            print(f"left out, no op for it: {name}", file=sys.stderr)
            continue
        summary = old[name].summary if name in old else ""
        rows.append(upstream.Upstream(name, () if len(anchors) == len(ANCHORS) else tuple(anchors), summary))
    text = "".join(f"{row}\n" for row in rows)
    if "--write" in sys.argv:
        upstream.TABLE.write_text(text)
    else:
        print(text, end="")
    print(f"{len(rows)} passes", file=sys.stderr)


if __name__ == "__main__":
    main()
