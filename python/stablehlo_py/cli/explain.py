"""`shlo explain OP`: where each rule of an op stands, and for which targets."""

from __future__ import annotations

import functools
import importlib
import inspect
from pathlib import Path

from stablehlo_py import resources
from stablehlo_py.core.options import did_you_mean, nearest
from stablehlo_py.core.passes import modules_under
from stablehlo_py.core.registry import ANY, FACETS, Rule
from stablehlo_py.errors import BadInput
from stablehlo_py.records import record

RULES = ("stablehlo_py.ops", "stablehlo_py.reference", "stablehlo_py.transforms", "stablehlo_py.targets")


@record
class Fact:
    """One rule of one op. target: the one it is for, or `any`; place: `file:line`, from the package's folder."""

    op_name: str
    facet: str
    target: str
    place: str
    summary: str


@functools.cache
def load_rules() -> None:
    """Import every module that registers rules."""
    for package in RULES:
        for module in modules_under(package):
            importlib.import_module(module)


@functools.cache
def facts() -> tuple[Fact, ...]:
    """All rules of all ops."""
    load_rules()
    return tuple(
        Fact(op_name, facet.name, target, *_source(rule)) for facet in FACETS for op_name, target, rule in facet.rows()
    )


def op_names() -> list[str]:
    """The ops that have a rule."""
    return sorted({fact.op_name for fact in facts()})


def explain(op_name: str) -> str:
    """What is known about an op, as text. BadInput for an op that nothing names, with the nearest name."""
    known = op_names()
    if "." not in op_name:
        op_name = f"stablehlo.{op_name}"
    mine = [fact for fact in facts() if fact.op_name == op_name]
    named = [
        place for place in named_in(op_name) if place.partition(":")[0] not in {f.place.split(":")[0] for f in mine}
    ]
    if not mine and not named:
        # Without the dialect, which would make all names look alike.
        dialect, _, short = op_name.partition(".")
        close = nearest(short, [name.partition(".")[2] for name in known])
        hint = did_you_mean(f"{dialect}.{close}", known) if close else ""
        raise BadInput(f"no op {op_name!r} has rules here", hint=hint or "docs/ops.md lists all ops")
    places = max((len(fact.place) for fact in mine), default=0)
    targets = max((len(fact.target) for fact in mine), default=0)
    lines = [op_name]
    for facet in FACETS:
        rows = [fact for fact in mine if fact.facet == facet.name]
        if not rows:
            lines.append(f"  {facet.name:9} no rule")
        for fact in rows:
            lines.append(f"  {facet.name:9} {fact.target:{targets}}  {fact.place:{places}}  {fact.summary}".rstrip())
    if named:
        lines.append(f"  {'also in':9} {', '.join(named)}")
    lines += ["", "facets:"]
    lines += [f"  {facet.name:9} {facet.doc}" for facet in FACETS]
    lines.append(f"`{ANY}` is the rule of every target that has none of its own.")
    return "\n".join(lines) + "\n"


def named_in(op_name: str) -> list[str]:
    """The first `file:line` of each module that names the op: passes that rewrite it, commands that it becomes."""
    found = []
    for package in RULES:
        for file in sorted(resources.PACKAGE.joinpath(*package.split(".")[1:]).rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            at = text.find(f'"{op_name}"')
            if at >= 0:
                found.append(
                    f"{file.relative_to(resources.PACKAGE.parent).as_posix()}:{text.count(chr(10), 0, at) + 1}"
                )
    return found


def _source(rule: Rule) -> tuple[str, str]:
    """(file:line, first docstring line) of a rule."""
    function = inspect.unwrap(rule)
    while isinstance(function, functools.partial):
        function = function.func
    summary = inspect.cleandoc(getattr(function, "__doc__", None) or "").partition("\n")[0]
    try:
        file = Path(inspect.getsourcefile(function) or "")
        line = inspect.getsourcelines(function)[1]
    except (OSError, TypeError):
        return str(getattr(function, "__module__", "")), summary
    if file.is_relative_to(resources.PACKAGE):
        file = file.relative_to(resources.PACKAGE.parent)
    return f"{file.as_posix()}:{line}", summary
