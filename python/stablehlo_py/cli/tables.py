"""docs/ops.md and docs/passes.md, written from the registries.

    python -m stablehlo_py.cli.tables docs [--check]

With --check nothing is written, and the exit code is 1 where a file does not say what the registries say.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from stablehlo_py import resources
from stablehlo_py.cli import explain
from stablehlo_py.core import pipeline, upstream
from stablehlo_py.core.passes import Pass, load_all_passes, source_of
from stablehlo_py.core.registry import FACETS

_HEAD = "<!-- written by `make docs` from the code; edits are lost -->\n"


def ops_page() -> str:
    """One row an op, one column a facet; a cell names the targets that have a rule."""
    facts = explain.facts()
    names = explain.op_names()
    counts = ", ".join(f"{len({f.op_name for f in facts if f.facet == x.name})} with `{x.name}`" for x in FACETS)
    rows = []
    for name in names:
        cells = [list(dict.fromkeys(f.target for f in facts if (f.op_name, f.facet) == (name, x.name))) for x in FACETS]
        rows.append([f"`{name}`", *(", ".join(cell) for cell in cells)])
    meanings = "".join(f"- `{facet.name}`: `{facet.doc}`\n" for facet in FACETS)
    return (
        f"# Ops\n\n{_HEAD}\n"
        f"{len(names)} ops have rules: {counts}.\n\n"
        "A cell names the targets that a rule is for; `any` serves every target without a rule of its own. An op\n"
        "without `lower` is rewritten by a pass before lowering, is a command of the Program (control flow), or is not\n"
        "supported. `shlo explain OP` tells where the rules stand.\n\n"
        f"{meanings}\n{_table(['op', *(facet.name for facet in FACETS)], rows)}"
    )


def passes_page() -> str:
    """The Python passes with their options, and the C++ passes that our pipelines use."""
    ours = [cls for cls in load_all_passes().values() if cls.__module__.startswith(f"{resources.PACKAGE.name}.")]
    users: dict[str, list[str]] = {}
    for name in pipeline.shipped():
        for step in pipeline.load(name).steps:
            users.setdefault(step.name, [])
            if name not in users[step.name]:
                users[step.name].append(name)
    table = upstream.passes()
    native = [[f"`{name}`", table[name].summary, ", ".join(users[name])] for name in sorted(users) if name in table]
    sections = "\n".join(_section(cls, users.get(cls.name, [])) for cls in ours)
    return (
        f"# Passes\n\n{_HEAD}\n## In Python\n\n{sections}\n"
        "## In C++, from the bindings, as our pipelines use them\n\n"
        f"{_table(['pass', 'what it does', 'pipelines'], native)}\n"
        f"`stablehlo-opt --list-passes` lists all {len(upstream.passes())}, `--list-passes=WORD` some with their options.\n"
    )


def _section(cls: type[Pass], users: list[str]) -> str:
    file = Path(source_of(cls)).relative_to(resources.PACKAGE.parent).as_posix()
    used = f", used by {', '.join(users)}" if users else ""
    options = [
        [f"`{o.name}`", o.type, "required" if o.required else f"`{str(o).partition('=')[2]}`"] for o in cls.options()
    ]
    table = "\n" + _table(["option", "type", "default"], options) if options else ""
    return f"### `{cls.name}`\n\n{cls.summary()} Runs on `{cls.anchor}`; `{file}`{used}.\n{table}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser("tables", description="Write docs/ops.md and docs/passes.md from the registries.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="only say whether the files are as they should be")
    options = parser.parse_args(argv)
    stale = []
    for name, text in (("ops.md", ops_page()), ("passes.md", passes_page())):
        path = options.folder / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            options.folder.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if options.check and stale:
        print(f"{', '.join(stale)} in {options.folder} must be written anew: make docs", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
