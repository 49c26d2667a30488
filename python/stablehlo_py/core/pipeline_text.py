"""The text of pipelines: MLIR's grammar, and files with stages.

    # what the pipeline is for
    stage linalg:  # no StableHLO left
      hlo-to-linalg{target=cpu}
      include cleanup
      func.func(canonicalize, cse)
      forbid: stablehlo, chlo

`allow:` and `forbid:` name the dialects and ops that may, or may not, remain after the stage. `include` takes the
passes of a file without stages into the stage, or adds the stages of another file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from stablehlo_py import resources
from stablehlo_py.core.legality import ANYTHING, Legality
from stablehlo_py.core.options import SyntaxProblem, did_you_mean, skip_value, split_commas
from stablehlo_py.errors import CompileError
from stablehlo_py.patterns import pattern
from stablehlo_py.records import field, record, replace

ROOT = "builtin.module"

_NAME = pattern(r"[A-Za-z_][\w.$-]*")
_STAGE = pattern(r"stage\s+([\w-]+)\s*:\s*(?:#\s*(.*))?")
_INCLUDE = pattern(r"include\s+([\w./-]+)")


class BadPipeline(CompileError):
    """A pipeline that cannot be run at all: its text, a pass or an option that does not exist."""


@record
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


@record
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


@record
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

    def after(self, stage: str) -> Pipeline:
        """The pipeline that begins behind `stage`, which it has."""
        return replace(self, stages=self.stages[len(self.until(stage).stages) :])

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
    """One of our pipelines by its name (`cpu`), or a pipeline file by its path."""
    text = str(path_or_name)
    return _load_shipped(text) if text.isidentifier() else _load(text)


@functools.cache
def _load_shipped(name: str) -> Pipeline:
    """Our own files do not change while we run, and a small program compiles in little more than reading them takes."""
    return _load(name)


def _load(path_or_name: str) -> Pipeline:
    path = _find(path_or_name)
    file = _File.read(path, ())
    stages = file.stages or [Stage(path.stem, tuple(file.loose))]
    names = [stage.name for stage in stages]
    for name in names:
        if names.count(name) > 1:
            raise BadPipeline(f"pipeline {path.stem} has two stages {name!r}", where=str(path))
    return Pipeline(path.stem, tuple(stages), file.doc)


def shipped() -> dict[str, Path]:
    """Our own pipeline files by name."""
    return {name: resources.pipeline_path(name) for name in resources.names("pipelines", ".pipeline")}


def _find(name: str, near: Path | None = None) -> Path:
    """The file that `name` stands for. A name of ours is never a file in the working directory; an include is looked
    for beside its file first."""
    ours = resources.names("pipelines", ".pipeline")
    if near is None and name in ours:
        return resources.pipeline_path(name)
    folder = near.parent if near else Path()
    for path in (folder / name, folder / f"{name}.pipeline"):
        if path.is_file():
            return path
    if name in ours:
        return resources.pipeline_path(name)
    hint = did_you_mean(name, ours) or f"give a file, or one of {', '.join(ours)}"
    raise BadPipeline(f"there is no pipeline {name!r}", hint=hint)


@record(frozen=False)
class _File:
    """What a pipeline file says. loose: the passes outside its stages, for others to include."""

    path: Path
    including: tuple[Path, ...]  # the files that are being read, outermost first
    doc: str = ""
    stages: list[Stage] = field(default_factory=list)
    loose: list[Step] = field(default_factory=list)
    in_stage: bool = False

    @staticmethod
    def read(path: Path, including: tuple[Path, ...]) -> _File:
        if path.resolve() in including:
            chain = " -> ".join(p.stem for p in (*including, path))
            raise BadPipeline(f"pipelines include each other: {chain}")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadPipeline(f"pipeline file {path} cannot be read: {error}") from None
        file = _File(path, (*including, path.resolve()))
        if text.startswith("#"):
            file.doc = text.partition("\n")[0][1:].strip().removeprefix(f"{path.name}:").strip()
        for number, line in _lines(path, text):
            file.take(line, f"{path}:{number}")
        if file.stages and file.loose:
            place = file.loose[0].place
            raise BadPipeline("passes stand outside all stages", where=place, hint="put `stage NAME:` above them")
        return file

    def take(self, line: str, place: str) -> None:
        """One line."""
        word, colon, rest = line.partition(":")
        if _is_head(line) and (found := _STAGE.fullmatch(line)):
            self.stages.append(Stage(found[1], doc=found[2] or ""))
            self.in_stage = True
        elif line.startswith("include") and (found := _INCLUDE.fullmatch(line)):
            self.include(found[1], place)
        elif colon and word.rstrip() in ("allow", "forbid"):
            self.limit(word.rstrip(), tuple(rest.replace(",", " ").split()), place)
        elif _is_head(line):
            raise BadPipeline(f"this is no head of a stage: {line}", where=place, hint="a line of its own: stage NAME:")
        else:
            self.add(parse(line, place=place))

    def add(self, steps: Sequence[Step]) -> None:
        if not self.in_stage:
            self.loose += steps
            return
        self.stages[-1] = replace(self.stages[-1], steps=(*self.stages[-1].steps, *steps))

    def include(self, name: str, place: str) -> None:
        try:
            path = _find(name, self.path)
        except BadPipeline as error:
            raise BadPipeline(error.message, where=place, hint=error.hint) from None
        other = _File.read(path, self.including)
        if other.stages:
            self.stages += other.stages
            self.in_stage = False
        self.add(other.loose)

    def limit(self, kind: str, names: tuple[str, ...], place: str) -> None:
        if not self.in_stage:
            raise BadPipeline(f"`{kind}:` stands outside a stage", where=place)
        old = self.stages[-1].legality
        new = replace(old, allow=old.allow + names) if kind == "allow" else replace(old, forbid=old.forbid + names)
        self.stages[-1] = replace(self.stages[-1], legality=new)


def _is_head(line: str) -> bool:
    """Whether a line begins as the head of a stage does."""
    return line[:5] == "stage" and line[5:6].isspace()


def _lines(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers; a line with an open bracket goes on in the next."""
    held, first = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not (_is_head(line) and _STAGE.fullmatch(line)):
            line = _without_comment(line)
        if not line:
            continue
        held, first = f"{held} {line}" if held else line, first or number
        try:
            if not (_is_head(held) and _STAGE.fullmatch(held)):
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
    """What stands before a `#` that begins the line or follows a blank."""
    end = line.find("#")
    while end > 0 and not line[end - 1].isspace():
        end = line.find("#", end + 1)
    return line.strip() if end < 0 else line[:end].strip()
