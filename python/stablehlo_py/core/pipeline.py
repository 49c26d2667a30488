"""Pipelines of Python and C++ passes: MLIR's grammar, pipeline files with stages, and how they run.

parse("func.func(canonicalize,cse),hlo-to-linalg{target=cpu}")    -> steps
load("cpu")                                                       -> the pipeline of pipelines/cpu.pipeline
run(pipeline, module.operation, stop_after="linalg")
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stablehlo_py import resources
from stablehlo_py.core import upstream
from stablehlo_py.core.diagnostics import PassFailure, collect, is_error
from stablehlo_py.core.instrument import Instrument
from stablehlo_py.core.legality import ANYTHING, Legality
from stablehlo_py.core.options import SyntaxProblem, did_you_mean, skip_value, split_commas
from stablehlo_py.core.passes import ANY, BROKEN, PASSES, Pass, find_pass, load_all_passes
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import PassManager, ir

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


# Reading text


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


def nested(step: Step) -> Step:
    """A step given without anchors, put where its pass runs, the way pass flags of a command line mean it."""
    cls = PASSES.get(step.name) or (None if step.name in upstream.passes() else find_pass(step.name))
    known = upstream.passes().get(step.name)
    anchors = (cls.anchor,) if cls else known.anchors if known else ()
    if not anchors or ROOT in anchors or anchors[0] == ANY:
        return step
    return replace(step, anchors=(anchors[0],))


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


# Running


def run(
    pipeline: Pipeline | Sequence[Step],
    module_op: ir.Operation,
    *,
    stop_after: str | None = None,
    instrument: Instrument | None = None,
    on_stage: Callable[[str, ir.Operation], None] | None = None,
) -> None:
    """Run a pipeline on a module, in place; after an error the module is in an unknown state.

    on_stage(name, module) is called after each stage. Every pass is looked up and its options are read before the
    first one runs.
    """
    if not isinstance(pipeline, Pipeline):
        pipeline = Pipeline.of(pipeline)
    pipeline = pipeline.until(stop_after)
    instrument = instrument or Instrument()
    with module_op.context, ir.Location.unknown():
        ready = [(stage, [prepare(step) for step in stage.steps]) for stage in pipeline.stages]
        for number, (stage, passes) in enumerate(ready, 1):
            for step, execute in zip(stage.steps, passes, strict=True):
                instrument.before_pass(step.name, stage.name, module_op)
                begin = time.perf_counter()
                try:
                    _run_one(step, execute, module_op)
                except CompileError as error:
                    error.during(f"in pass {step.name}" + (f", stage {stage.name}" if stage.name else ""))
                    raise
                instrument.after_pass(step.name, stage.name, module_op, time.perf_counter() - begin)
            stage.legality.check(module_op, stage.name)
            instrument.after_stage(number, stage.name, module_op)
            if on_stage is not None:
                on_stage(stage.name, module_op)


Execute = Callable[[ir.Operation], None]


def prepare(step: Step) -> Execute:
    """What runs `step` on a module; BadPipeline where there is no such pass or it cannot run there. Needs a context."""
    _check_anchors(step)
    if step.name in PASSES:
        return _prepare_python(step, PASSES[step.name])
    # C++ passes by table first: looking for a Python pass imports packages.
    if step.name in upstream.passes():
        return _prepare_upstream(step)
    found = find_pass(step.name) or load_all_passes().get(step.name)
    if found is not None:
        return _prepare_python(step, found)
    if upstream.exists(step.name):
        return _prepare_upstream(step)
    hint = did_you_mean(step.name, [*PASSES, *upstream.passes()]) or "--list-passes lists all"
    if BROKEN:
        hint += f" (not imported: {'; '.join(f'{module}: {why}' for module, why in BROKEN.items())})"
    raise BadPipeline(f"there is no pass {step.name!r}", where=step.place, hint=hint)


def _check_anchors(step: Step) -> None:
    """Refuse misspelt anchors. Others that are not registered may come with a dialect that a pass loads."""
    context = ir.Context.current
    for anchor in step.anchors:
        if anchor == ANY or context.is_registered_operation(anchor):
            continue
        near = did_you_mean(anchor, (ROOT, "func.func", "gpu.module", "gpu.func", "llvm.func", ANY))
        if near or "." not in anchor:
            raise BadPipeline(f"{anchor!r} around pass {step.name} is not an op", where=step.place, hint=near)


def _prepare_python(step: Step, cls: type[Pass]) -> Execute:
    if cls.anchor not in (step.anchor, ANY):
        _wrong_anchor(step, (cls.anchor,))
    try:
        instance = cls.from_options(step.options)
    except SyntaxProblem as problem:
        raise BadPipeline(f"options of {step.name} cannot be read: {problem}", where=step.place) from None
    except ValueError as error:
        raise BadPipeline(str(error), where=step.place) from None

    def execute(module: ir.Operation) -> None:
        for op in list(_nested(module, step.anchors)):
            instance.run(op)
        module.verify()

    return execute


def _nested(op: ir.Operation, anchors: tuple[str, ...]) -> Iterator[ir.Operation]:
    """The ops that a nested pass runs on."""
    if not anchors:
        yield op
        return
    for region in op.regions:
        for block in region.blocks:
            for child in block.operations:
                if anchors[0] in (child.operation.name, ANY):
                    yield from _nested(child.operation, anchors[1:])


def _prepare_upstream(step: Step) -> Execute:
    known = upstream.passes().get(step.name)
    # Some names stand for whole pipelines that abort the process under a wrong op, so ask the table first.
    if known and known.anchors and step.anchor not in known.anchors:
        _wrong_anchor(step, known.anchors)
    try:
        manager = PassManager.parse(f"{ROOT}({step})")
    except ValueError as error:
        said = str(error).partition("failed to add")[0].strip().replace("<Pass-Options-Parser>: ", "")
        takes = upstream.options_of(step.name) if known else ""
        raise BadPipeline(
            f"pass {step.name} cannot be made{f': {said}' if said else ''}",
            where=step.place,
            hint=f"its options and their defaults are {takes}" if takes else "",
        ) from None
    return manager.run


def _wrong_anchor(step: Step, wanted: tuple[str, ...]) -> None:
    given = f"{step.name}{{{step.options}}}" if step.options else step.name
    instead = given if wanted[0] == ROOT else f"{wanted[0]}({given})"
    raise BadPipeline(
        f"pass {step.name} runs on {' or '.join(wanted)}, not on {step.anchor}",
        where=step.place,
        hint=f"write {instead}",
    )


def _run_one(step: Step, execute: Execute, module_op: ir.Operation) -> None:
    """Run one pass; errors at ops become a PassFailure, exceptions of other kinds go through as they are."""
    problem: ir.MLIRError | None = None
    with collect(module_op.context, is_error, errors=True) as errors:
        try:
            execute(module_op)
        except ir.MLIRError as error:
            problem = error
    if errors or problem is not None:
        raise PassFailure(step.name, tuple(errors)) from problem
