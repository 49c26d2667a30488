"""What `--list-passes` and `--list-pipelines` print."""

from __future__ import annotations

from stablehlo_py.core import pipeline, upstream
from stablehlo_py.core.passes import BROKEN, load_all_passes


def passes(word: str = "") -> str:
    """All passes with their summaries; those whose name has `word`, with their options too, where one is given."""
    python = {name: cls for name, cls in load_all_passes().items() if word in name}
    native = {name: row for name, row in upstream.passes().items() if word in name}
    # A few names are very long; they push their own summary only.
    width = min(max(map(len, [*python, *native]), default=0), 40)
    lines = [f"{len(python)} passes in Python"]
    for name, cls in python.items():
        lines.append(f"  {name:{width}}  {cls.summary()}".rstrip())
        if word:
            lines += [f"  {'':{width}}    {option}" for option in cls.options()]
    lines += [f"  not imported: {module}: {why}" for module, why in BROKEN.items()]
    lines += ["", f"{len(native)} passes in C++, from the bindings"]
    for name, row in native.items():
        on = f" [{', '.join(row.anchors)}]" if row.anchors else ""
        lines.append(f"  {name:{width}}  {row.summary}{on}".rstrip())
        if word:
            lines += [f"  {'':{width}}    {option}" for option in upstream.options_of(name).split()]
    return "\n".join(lines) + "\n"


def pipelines() -> str:
    """Our pipelines with their stages."""
    lines = []
    for name in pipeline.shipped():
        loaded = pipeline.load(name)
        lines.append(f"{name}: {loaded.doc}".rstrip(": "))
        width = max(len(stage.name) for stage in loaded.stages) if loaded.stages else 0
        lines += [f"  {stage.name:{width}}  {stage.doc}".rstrip() for stage in loaded.stages]
    return "\n".join(lines) + "\n"
