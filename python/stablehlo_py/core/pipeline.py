"""Pipelines of Python and C++ passes, and how they run.

parse("func.func(canonicalize,cse),hlo-to-linalg{target=cpu}")    -> steps
load("cpu")                                                       -> the pipeline of pipelines/cpu.pipeline
run(pipeline, module.operation, stop_after="linalg")
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stablehlo_py.core import upstream
from stablehlo_py.core.diagnostics import Diagnostic, PassFailure, collect, is_error, of_binding
from stablehlo_py.core.options import SyntaxProblem, did_you_mean
from stablehlo_py.core.passes import ANY, BROKEN, PASSES, Made, Pass, find_pass, load_all_passes, waits_for
from stablehlo_py.core.pipeline_text import ROOT
from stablehlo_py.core.pipeline_text import BadPipeline as BadPipeline
from stablehlo_py.core.pipeline_text import Pipeline as Pipeline
from stablehlo_py.core.pipeline_text import Stage as Stage
from stablehlo_py.core.pipeline_text import Step as Step
from stablehlo_py.core.pipeline_text import load as load
from stablehlo_py.core.pipeline_text import parse as parse
from stablehlo_py.core.pipeline_text import shipped as shipped
from stablehlo_py.core.presence import Presence
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import PassManager, belongings, ir
from stablehlo_py.records import record, replace

if TYPE_CHECKING:
    from stablehlo_py.core.instrument import Instrument

# Whether trusted passes are verified all the same, and what passes say of the ops that they add: the tests set it.
TRUSTS_NONE = False


def run(
    pipeline: Pipeline | Sequence[Step],
    module_op: ir.Operation,
    *,
    stop_after: str | None = None,
    instrument: Instrument | None = None,
    on_stage: Callable[[str, ir.Operation], None] | None = None,
    quick: bool = False,
) -> None:
    """Run a pipeline on a module, in place; after an error the module is in an unknown state.

    on_stage(name, module) is called after each stage. Every pass is looked up and its options are read before the
    first one runs. quick: verify what Python passes made only before a C++ pass sees it and at the end, and what trusted
    ones made not at all; run C++ passes that follow each other in one go, leave out passes that have nothing to do
    (without a look at those that `wait_for` what is not there), and keep what runs them with a borrowed context; no
    instrument sees the passes then.
    """
    if not isinstance(pipeline, Pipeline):
        pipeline = Pipeline.of(pipeline)
    pipeline = pipeline.until(stop_after)
    if quick:
        _run_quickly(pipeline, module_op, on_stage)
        return
    if instrument is None:
        from stablehlo_py.core.instrument import Instrument  # a compilation runs quickly

        instrument = Instrument()
    with module_op.context, ir.Location.unknown():
        ready = [(stage, [prepare(step) for step in stage.steps]) for stage in pipeline.stages]
        for number, (stage, passes) in enumerate(ready, 1):
            for step, prepared in zip(stage.steps, passes, strict=True):
                instrument.before_pass(step.name, stage.name, module_op)
                begin = time.perf_counter()
                with collect(module_op.context, is_error, errors=False) as errors:
                    _run_one(prepared, stage, module_op, errors)
                    if not prepared.native:
                        _verify(prepared, stage, module_op, errors)
                instrument.after_pass(step.name, stage.name, module_op, time.perf_counter() - begin)
            stage.legality.check(module_op, stage.name)
            instrument.after_stage(number, stage.name, module_op)
            if on_stage is not None:
                on_stage(stage.name, module_op)


def _run_quickly(
    pipeline: Pipeline, module_op: ir.Operation, on_stage: Callable[[str, ir.Operation], None] | None
) -> None:
    """Run a pipeline; see `run`."""
    context, ops = module_op.context, Presence(module_op)
    kept = belongings(context)
    with context, ir.Location.unknown(), collect(context, is_error, errors=False) as errors:
        ready = [(stage, _prepared(stage, kept)) for stage in pipeline.stages]
        unseen: tuple[Prepared, Stage] | None = None  # the pass that made something last, until that is verified
        for stage, passes in ready:
            for prepared in passes:
                if isinstance(prepared, _Native):
                    todo = prepared.needed(ops)
                    if todo is None:
                        continue
                    if unseen is not None:
                        _verify(*unseen, module_op, errors)
                        unseen = None
                    _run_one(todo, stage, module_op, errors)
                    _check_presence(todo, ops)
                elif _is_wanted(prepared, ops):
                    made = _run_one(prepared, stage, module_op, errors)
                    if made is not False:
                        ops.change(made if isinstance(made, tuple) else None)
                        _check_presence(prepared, ops)
                        if TRUSTS_NONE or not PASSES[prepared.name].is_trusted:
                            unseen = prepared, stage
            if stage.legality and not ops.permitted_by(stage.legality):
                stage.legality.check(module_op, stage.name)
            if on_stage is not None:
                on_stage(stage.name, module_op)
        if unseen is not None:
            _verify(*unseen, module_op, errors)


def _is_wanted(prepared: Prepared, ops: Presence) -> bool:
    """Whether a pass in Python may have something to do."""
    if not prepared.only_with:
        return True
    known = PASSES.get(prepared.name)
    return (known is not None and known.is_quick and ops.held(prepared.only_with)) or ops.holds(prepared.only_with)


def make_ready(pipeline: Pipeline, context: ir.Context) -> None:
    """Prepare the passes that `run` will run quickly in a borrowed context."""
    kept = belongings(context)
    with context, ir.Location.unknown():
        for stage in pipeline.stages:
            _prepared(stage, kept)


def _prepared(stage: Stage, kept: dict[Any, Any]) -> list[Prepared | _Native]:  # Any: see belongings
    key = _joined, id(stage)  # the hash of a stage is that of all its steps
    if key not in kept:
        if stage not in kept:
            kept[stage] = _joined(stage)
        kept[key] = stage, kept[stage]
    return kept[key][1]


def _check_presence(prepared: Prepared, ops: Presence) -> None:
    """Complain of a pass that adds other ops than was said of it."""
    if TRUSTS_NONE and (surprises := ops.surprises()):
        raise AssertionError(f"pass {prepared.name} adds {', '.join(sorted(surprises))}, which it does not say")


def _verify(prepared: Prepared, stage: Stage, module_op: ir.Operation, errors: list[Diagnostic]) -> None:
    """Verify what a pass has made; errors are the pass's."""

    def verify(op: ir.Operation) -> None:
        op.verify()

    _run_one(replace(prepared, run=verify), stage, module_op, errors)


def _joined(stage: Stage) -> list[Prepared | _Native]:
    """The passes of a stage, those in C++ that follow each other as one. Needs a context."""
    found: list[Prepared | _Native] = []
    steps = [(step, _prepared_when_needed(step)) for step in stage.steps]
    for native, group in itertools.groupby(steps, key=lambda pair: pair[1].native):
        members = list(group)
        found += [_Native(tuple(step for step, _ in members))] if native else [prepared for _, prepared in members]
    return found


class _Native:
    """Passes in C++ that follow each other; those with something to do run in one go."""

    def __init__(self, steps: tuple[Step, ...]) -> None:
        self._steps = steps
        self._known: dict[tuple[int, ...], Prepared] = {}

    def needed(self, ops: Presence) -> Prepared | None:
        """The passes that are not needless with these ops, as one; None where there are none."""
        chosen = []
        for number, step in enumerate(self._steps):
            if (wanted := upstream.ONLY_WITH.get(step.name)) is None or ops.may_hold(wanted):
                chosen.append(number)
                ops.change(upstream.ADDS.get(step.name))
        if not chosen:
            return None
        key = tuple(chosen)
        if key not in self._known:
            steps = [self._steps[number] for number in chosen]
            manager = PassManager.parse(f"{ROOT}({','.join(map(str, steps))})")
            manager.enable_verifier(False)
            self._known[key] = Prepared(", ".join(step.name for step in steps), manager.run, native=True)
        return self._known[key]


@record
class Prepared:
    """A pass, or several, that can run. native: in C++, so that errors are said to MLIR's handlers only."""

    name: str
    run: Callable[[ir.Operation], Made]
    native: bool
    only_with: tuple[str, ...] = ()  # as passes have it


def prepare(step: Step) -> Prepared:
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


def _prepared_when_needed(step: Step) -> Prepared:
    """The same; a pass that waits for ops is looked up and prepared when it runs first."""
    needs = waits_for(step.name)
    if not needs:
        return prepare(step)
    once = functools.cache(lambda: prepare(step))
    return Prepared(step.name, lambda module: once().run(module), native=False, only_with=needs)


def _check_anchors(step: Step) -> None:
    """Refuse misspelt anchors. Others that are not registered may come with a dialect that a pass loads."""
    context = ir.Context.current
    for anchor in step.anchors:
        if anchor == ANY or context.is_registered_operation(anchor):
            continue
        near = did_you_mean(anchor, (ROOT, "func.func", "gpu.module", "gpu.func", "llvm.func", ANY))
        if near or "." not in anchor:
            raise BadPipeline(f"{anchor!r} around pass {step.name} is not an op", where=step.place, hint=near)


def _prepare_python(step: Step, cls: type[Pass]) -> Prepared:
    if cls.anchor not in (step.anchor, ANY):
        _wrong_anchor(step, (cls.anchor,))
    try:
        instance = cls.from_options(step.options)
    except SyntaxProblem as problem:
        raise BadPipeline(f"options of {step.name} cannot be read: {problem}", where=step.place) from None
    except ValueError as error:
        raise BadPipeline(str(error), where=step.place) from None

    def execute(module: ir.Operation) -> Made:
        if not step.anchors:
            return instance.run(module)
        outcomes = [instance.run(op) for op in list(_nested(module, step.anchors))]
        return None if any(outcome is not False for outcome in outcomes) else False

    return Prepared(step.name, execute, native=False, only_with=cls.only_with)


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


def _prepare_upstream(step: Step) -> Prepared:
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
    return Prepared(step.name, manager.run, native=True)


def _wrong_anchor(step: Step, wanted: tuple[str, ...]) -> None:
    given = f"{step.name}{{{step.options}}}" if step.options else step.name
    instead = given if wanted[0] == ROOT else f"{wanted[0]}({given})"
    raise BadPipeline(
        f"pass {step.name} runs on {' or '.join(wanted)}, not on {step.anchor}",
        where=step.place,
        hint=f"write {instead}",
    )


def _run_one(prepared: Prepared, stage: Stage, module_op: ir.Operation, errors: list[Diagnostic]) -> Made:
    """Run one pass; what went wrong says where it comes from. errors: where those at ops are collected."""
    try:
        return _run_collecting(prepared, module_op, errors)
    except CompileError as error:
        error.during(f"in pass {prepared.name}" + (f", stage {stage.name}" if stage.name else ""))
        raise


def _run_collecting(prepared: Prepared, module_op: ir.Operation, errors: list[Diagnostic]) -> Made:
    """Run one pass; errors at ops become a PassFailure, exceptions of other kinds go through as they are."""
    problem: ir.MLIRError | None = None
    made: Made = None
    context = module_op.context
    # A Python pass may try something that fails and go on; the exception that it catches must keep its errors then.
    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = before or prepared.native
    try:
        made = prepared.run(module_op)
    except ir.MLIRError as error:
        problem = error
    finally:
        context.emit_error_diagnostics = before
    if errors or problem is not None:
        errors += [of_binding(diagnostic) for diagnostic in getattr(problem, "error_diagnostics", ())]
        raise PassFailure(prepared.name, tuple(errors)) from problem
    return made


def nested(step: Step) -> Step:
    """A step given without anchors, put where its pass runs, the way pass flags of a command line mean it."""
    cls = PASSES.get(step.name) or (None if step.name in upstream.passes() else find_pass(step.name))
    known = upstream.passes().get(step.name)
    anchors = (cls.anchor,) if cls else known.anchors if known else ()
    if not anchors or ROOT in anchors or anchors[0] == ANY:
        return step
    return replace(step, anchors=(anchors[0],))
