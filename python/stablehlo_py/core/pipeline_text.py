"""The text of pipelines: MLIR's grammar, and files with stages.

    # what the pipeline is for
    stage linalg:  # no StableHLO left
      hlo-to-linalg{target=cpu}
      include cleanup
      func.func(canonicalize, cse)
      forbid: stablehlo, chlo

`allow:` and `forbid:` name the dialects and ops that may, or may not, remain after the stage. `include` takes the passes
of a file without stages, or, outside a stage, the stages of another file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stablehlo_py import resources
from stablehlo_py.core.legality import ANYTHING, Legality
from stablehlo_py.core.options import SyntaxProblem, did_you_mean, skip_value, split_commas
from stablehlo_py.errors import CompileError

ROOT = "builtin.module"

_NAME = re.compile(r"[A-Za-z_][\w.$-]*")
_STAGE = re.compile(r"stage\s+([\w-]+)\s*:\s*(?:#\s*(.*))?")
_INCLUDE = re.compile(r"include\s+([\w./-]+)")
_LIMIT = re.compile(r"(allow|forbid)\s*:\s*(.*)")
_COMMENT = re.compile(r"(?:^|\s)#")


class BadPipeline(CompileError):
    """A pipeline that cannot be run at all: its text, a pass or an option that does not exist."""


@dataclass(frozen=True)
class Step:
    """One pass of a pipeline. anchors: the ops it is nested under, from the module inwards; options: as written."""

    name: str
    options: str = ""
    anchors: tuple[str, ...] = ()
    place: str = ""  # file:line, where a file wrote it

    @property
    def anchor(self) -> str:
        """The op that the pass is given."""
        return self.anchors[-1] if self.anchors else ROOT

    def __str__(self) -> str:
        text = self.name + (f"{{{self.options}}}" if self.options else "")
        for anchor in reversed(self.anchors):
            text = f"{anchor}({text})"
        return text


@dataclass(frozen=True)
class Stage:
    """A named run of steps: a place to stop, to dump, to time; `legality` says what may remain after it."""

    name: str
    steps: tuple[Step, ...] = ()
    legality: Legality = ANYTHING
    doc: str = ""

    @property
    def allow(self) -> tuple[str, ...]:
        return self.legality.allow

    @property
    def forbid(self) -> tuple[str, ...]:
        return self.legality.forbid


@dataclass(frozen=True)
class Pipeline:
    """Stages in order. doc: the first comment line of the file."""

    name: str
    stages: tuple[Stage, ...]
    doc: str = ""

    @staticmethod
    def of(steps: Sequence[Step]) -> Pipeline:
        """A pipeline of one stage without a name."""
        return Pipeline("", (Stage("", tuple(steps)),))

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(step for stage in self.stages for step in stage.steps)

    def until(self, stop_after: str | None) -> Pipeline:
        """The pipeline that ends with stage `stop_after`."""
        if stop_after is None:
            return self
        names = [stage.name for stage in self.stages]
        if stop_after not in names:
            hint = did_you_mean(stop_after, names) or f"the stages are {', '.join(names)}"
            raise BadPipeline(f"pipeline {self.name} has no stage {stop_after!r}", hint=hint)
        return replace(self, stages=self.stages[: names.index(stop_after) + 1])

    def __str__(self) -> str:
        return f"{ROOT}({','.join(map(str, self.steps))})"


def parse(text: str, *, place: str = "") -> list[Step]:
    """The steps of a pipeline in MLIR's grammar; an outer `builtin.module(...)` may be there or not."""
    try:
        parts = split_commas(text)
        steps = [step for part in parts for step in _element(part, (), place)]
    except SyntaxProblem as problem:
        raise BadPipeline(f"pipeline text cannot be read: {problem}", where=place) from None
    return [replace(step, anchors=step.anchors[1:]) if step.anchors[:1] == (ROOT,) else step for step in steps]


def _element(text: str, anchors: tuple[str, ...], place: str) -> Iterator[Step]:
    """`name`, `name{options}` or `anchor(elements)`."""
    found = _NAME.match(text)
    if not found:
        raise SyntaxProblem("the name of a pass or an op is wanted here", text, 0)
    name, rest = found[0], text[found.end() :].lstrip()
    begin = len(text) - len(rest)
    if not rest:
        yield Step(name, "", anchors, place)
        return
    if rest[0] not in "({":
        raise SyntaxProblem("'(', '{' or ',' is wanted here", text, begin)
    end = skip_value(text, begin + 1, ")" if rest[0] == "(" else "}")
    if end + 1 < len(text):
        raise SyntaxProblem("',' is wanted here", text, end + 1)
    inner = text[begin + 1 : end]
    if rest[0] == "{":
        yield Step(name, inner.strip(), anchors, place)
        return
    for part in split_commas(inner):
        yield from _element(part, (*anchors, name), place)


def load(path_or_name: str | Path) -> Pipeline:
    """A pipeline file by path, or by the name of one of ours (`cpu`)."""
    return _Reader().read(_find(str(path_or_name), None))


def shipped() -> dict[str, Path]:
    """Our own pipeline files by name."""
    return {name: resources.pipeline_path(name) for name in resources.names("pipelines", ".pipeline")}


def _find(name: str, near: Path | None) -> Path:
    """The file that `name` stands for: beside `near`, as a path, or one of ours."""
    tries = [Path(name), Path(f"{name}.pipeline")] if near is None else []
    if near is not None:
        tries = [near.parent / name, near.parent / f"{name}.pipeline"]
    for path in tries:
        if path.is_file():
            return path
    ours = shipped()
    if name in ours:
        return ours[name]
    hint = did_you_mean(name, ours) or f"give a file, or one of {', '.join(ours)}"
    raise BadPipeline(f"there is no pipeline {name!r}", hint=hint)


class _Reader:
    """Reads pipeline files and what they include."""

    def __init__(self) -> None:
        self.open: list[Path] = []

    def read(self, path: Path) -> Pipeline:
        if path.resolve() in self.open:
            chain = " -> ".join(p.stem for p in [*self.open, path])
            raise BadPipeline(f"pipelines include each other: {chain}")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadPipeline(f"pipeline file {path} cannot be read: {error}") from None
        self.open.append(path.resolve())
        doc = next((line[1:].strip() for line in text.splitlines()[:1] if line.startswith("#")), "")
        doc = doc.removeprefix(f"{path.name}:").strip()
        stages = self._stages(path, text)
        self.open.pop()
        names = [stage.name for stage in stages]
        for name in names:
            if names.count(name) > 1:
                raise BadPipeline(f"pipeline {path.stem} has two stages {name!r}", where=str(path))
        return Pipeline(path.stem, tuple(stages), doc)

    def _stages(self, path: Path, text: str) -> list[Stage]:
        stages: list[Stage] = []
        # `free` holds while no stage has begun here: passes then make the one stage of a file to be included.
        free = True
        for number, line in _lines(path, text):
            place = f"{path}:{number}"
            if found := _STAGE.fullmatch(line):
                if free and stages and stages[-1].name == path.stem and stages[-1].steps:
                    raise BadPipeline(
                        "passes stand before the first stage", where=place, hint="put a `stage NAME:` above"
                    )
                stages.append(Stage(found[1], doc=found[2] or ""))
                free = False
                continue
            line = _without_comment(line)
            if found := _INCLUDE.fullmatch(line):
                included = self.read(_find_included(found[1], path, place))
                whole = len(included.stages) > 1 or [s.name for s in included.stages] != [included.name]
                if whole and not free:
                    raise BadPipeline(
                        f"{included.name} has stages of its own and cannot be included inside a stage", where=place
                    )
                if whole:
                    stages += included.stages
                    continue
                steps = included.steps
            elif found := _LIMIT.fullmatch(line):
                if free:
                    raise BadPipeline(f"`{found[1]}:` stands outside a stage", where=place)
                names = tuple(re.split(r"[\s,]+", found[2].strip(" ,")))
                old = stages[-1].legality
                stages[-1] = replace(stages[-1], legality=replace(old, **{found[1]: getattr(old, found[1]) + names}))
                continue
            else:
                steps = parse(line, place=place)
            if free and (not stages or stages[-1].name != path.stem):
                stages.append(Stage(path.stem))
            stages[-1] = replace(stages[-1], steps=stages[-1].steps + tuple(steps))
        return stages


def _find_included(name: str, path: Path, place: str) -> Path:
    try:
        return _find(name, path)
    except BadPipeline as error:
        raise BadPipeline(error.message, where=place, hint=error.hint) from None


def _lines(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers; a line with an open bracket goes on in the next."""
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip() if _STAGE.fullmatch(raw.strip()) else _without_comment(raw).strip()
        if not line:
            continue
        held, first = f"{held} {line}" if held else line, first or number
        try:
            if not _STAGE.fullmatch(held):
                skip_value(held, 0, "")
        except SyntaxProblem as problem:
            if "not closed" in problem.problem:
                continue
            raise BadPipeline(f"pipeline text cannot be read: {problem}", where=f"{path}:{first}") from None
        yield first, held
        held, first = "", 0
    if held:
        raise BadPipeline(f"a bracket or quote is not closed: {held[:60]}", where=f"{path}:{first}")


def _without_comment(line: str) -> str:
    found = _COMMENT.search(line)
    return line[: found.start()].strip() if found else line.strip()
