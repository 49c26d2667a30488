"""Pipelines: the grammar, files with stages, and how mixed pipelines run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest

from stablehlo_py.core import pipeline
from stablehlo_py.core.diagnostics import PassFailure
from stablehlo_py.core.legality import IllegalOp
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.pipeline import BadPipeline, Pipeline, Step, load, parse, run
from stablehlo_py.errors import CompileError
from stablehlo_py.mlir import borrowed_context, ir, new_context

TWO_FUNCTIONS = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %x, %x : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func @g() { return }
"""

SEEN: list[str] = []


@dataclass(frozen=True)
class Look(Pass):
    """Write down what it was given."""

    name: ClassVar[str] = "test-pipeline-look"
    anchor: ClassVar[str] = "any"
    tag: str = ""

    def run(self, op: ir.Operation) -> None:
        adds: list[int] = []
        op.walk(lambda o: (adds.append(1) if o.name == "stablehlo.add" else None, ir.WalkResult.ADVANCE)[1])
        SEEN.append(f"{self.tag}:{op.name}:{len(adds)}")


@dataclass(frozen=True)
class OnFunctions(Pass):
    """Runs on functions only."""

    name: ClassVar[str] = "test-pipeline-on-functions"
    anchor: ClassVar[str] = "func.func"

    def run(self, op: ir.Operation) -> None:
        SEEN.append(ir.StringAttr(op.attributes["sym_name"]).value)


@dataclass(frozen=True)
class LookAtAdds(Pass):
    """Has something to do where there are sums or products."""

    name: ClassVar[str] = "test-pipeline-look-at-adds"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.add", "stablehlo.multiply")

    def run(self, op: ir.Operation) -> None:
        SEEN.append("adds")


@dataclass(frozen=True)
class EraseAll(Pass):
    """Empties the functions."""

    name: ClassVar[str] = "test-pipeline-erase-all"

    def run(self, op: ir.Operation) -> None:
        for function in list(op.regions[0].blocks[0].operations):
            function.operation.erase()


@dataclass(frozen=True)
class Raise(Pass):
    """Raises what it is told to."""

    name: ClassVar[str] = "test-pipeline-raise"
    what: str = "compile-error"

    def run(self, op: ir.Operation) -> None:
        if self.what == "compile-error":
            raise CompileError("it cannot be done", where="x.py:1:2", hint="do something else")
        if self.what == "emit":
            op.location.emit_error("first")
            op.location.emit_error("second")
            return
        if self.what == "break":
            function = op.regions[0].blocks[0].operations[0]
            function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], []))
            return
        if self.what == "try":
            with pytest.raises(ir.MLIRError):
                ir.Type.parse("nonsense")
            return
        if self.what == "parse":
            ir.Type.parse("nonsense")
        raise KeyError("a mistake")


@pytest.fixture
def module():
    SEEN.clear()
    with new_context(), ir.Location.unknown():
        return ir.Module.parse(TWO_FUNCTIONS)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("", []),
        ("cse", ["cse"]),
        ("builtin.module(cse)", ["cse"]),
        (
            " builtin.module( cse , canonicalize{ top-down=1  max-iterations=3 } ) ",
            ["cse", "canonicalize{top-down=1  max-iterations=3}"],
        ),
        (
            "func.func(a,b{x=1,2 y={p,q}},scf.for(c))",
            ["func.func(a)", "func.func(b{x=1,2 y={p,q}})", "func.func(scf.for(c))"],
        ),
        ("builtin.module(builtin.module(cse))", ["builtin.module(cse)"]),
        ("gpu.module(any(cse))", ["gpu.module(any(cse))"]),
        ('a{s="},("}', ['a{s="},("}']),
        ("func.func()", []),
    ],
)
def test_reads_mlirs_grammar(text, steps):
    read = parse(text)
    assert [str(step) for step in read] == steps
    assert parse(str(Pipeline.of(read))) == read


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cse)", "')' closes nothing"),
        ("func.func(cse", "this bracket is not closed"),
        ("cse cse", "'(', '{' or ',' is wanted here"),
        ("cse{a=1}x", "',' is wanted here\n  cse{a=1}x\n          ^"),
        ("cse{a=1}{b=2}", "',' is wanted here"),
        ("{a=1}", "the name of a pass or an op is wanted here"),
        ("cse,=", "the name of a pass or an op is wanted here"),
        ("a{x='}", "this quote is not closed"),
    ],
)
def test_says_what_is_wrong_with_text(text, problem):
    with pytest.raises(BadPipeline, match=re.escape(problem)):
        parse(text)


def test_python_and_native_passes_mix(module):
    look = "test-pipeline-look"
    run(parse(f"{look}{{tag=a}},func.func({look}{{tag=b}},cse,{look}{{tag=c}}),{look}{{tag=d}}"), module.operation)
    assert SEEN == [
        "a:builtin.module:2",
        "b:func.func:2",
        "b:func.func:0",
        "c:func.func:1",
        "c:func.func:0",
        "d:builtin.module:1",
    ]


def test_any_runs_on_every_op_below(module):
    run(parse("any(test-pipeline-look)"), module.operation)
    assert SEEN == [":func.func:2", ":func.func:0"]


def test_a_pass_on_functions(module):
    run(parse("func.func(test-pipeline-on-functions)"), module.operation)
    assert SEEN == ["f", "g"]


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("no-such-pass-at-all", "there is no pass 'no-such-pass-at-all'", "--list-passes lists all"),
        ("canonicalise", "there is no pass 'canonicalise'", "did you mean 'canonicalize'?"),
        ("test-pipeline-lok", "there is no pass 'test-pipeline-lok'", "did you mean 'test-pipeline-look'?"),
        ("fnc.func(cse)", "'fnc.func' around pass cse is not an op", "did you mean 'func.func'?"),
        ("func.func(sparsifier)", "pass sparsifier runs on builtin.module, not on func.func", "write sparsifier"),
        ("any(sparsifier)", "pass sparsifier runs on builtin.module, not on any", "write sparsifier"),
        ("func.func(one-shot-bufferize)", "runs on builtin.module, not on func.func", "write one-shot-bufferize"),
        (
            "chlo-legalize-to-stablehlo",
            "runs on func.func, not on builtin.module",
            "write func.func(chlo-legalize-to-stablehlo)",
        ),
        (
            "test-pipeline-on-functions",
            "runs on func.func, not on builtin.module",
            "write func.func(test-pipeline-on-functions)",
        ),
        ("func.func(test-pipeline-raise)", "runs on builtin.module, not on func.func", "write test-pipeline-raise"),
        ("canonicalize{bottom-up=1}", "pass canonicalize cannot be made: no such option bottom-up", "its options"),
        ("test-pipeline-look{tags=1}", "test-pipeline-look has no option 'tags'; it takes tag", ""),
        ("test-pipeline-look{tag=1 tag=2}", "option 'tag' is given twice", ""),
    ],
)
def test_what_cannot_run_is_refused_before_anything_runs(module, text, message, hint):
    before = str(module)
    with pytest.raises(BadPipeline) as caught:
        run(parse(f"func.func(cse),test-pipeline-look,{text}"), module.operation)
    assert message in caught.value.message
    assert caught.value.hint.startswith(hint)
    assert SEEN == [] and str(module) == before


def test_errors_of_native_passes_name_pass_op_and_place(module):
    with pytest.raises(PassFailure) as caught:
        run(parse("func.func(cse),one-shot-bufferize"), module.operation)
    assert str(caught.value).startswith("-:3:8: pass one-shot-bufferize failed on stablehlo.add: op was not bufferized")
    assert caught.value.trail == ("in pass one-shot-bufferize",)
    assert caught.value.diagnostics[0].severity == "error"


def test_errors_that_a_python_pass_emits_fail_it(module):
    with pytest.raises(PassFailure, match=r"pass test-pipeline-raise failed: first \(1 more error\)") as caught:
        run(parse("test-pipeline-raise{what=emit},test-pipeline-look"), module.operation)
    assert [d.message for d in caught.value.diagnostics] == ["first", "second"]
    assert SEEN == []


def test_errors_that_a_python_pass_raises_say_the_pass(module):
    stages = Pipeline("p", (pipeline.Stage("only", (Step("test-pipeline-raise"),)),))
    with pytest.raises(CompileError) as caught:
        run(stages, module.operation)
    assert str(caught.value).splitlines() == [
        "x.py:1:2: it cannot be done",
        "  hint: do something else",
        "  in pass test-pipeline-raise, stage only",
    ]


def test_a_python_pass_that_breaks_the_module_is_caught(module):
    with pytest.raises(PassFailure, match=r"pass test-pipeline-raise failed: 'func\.func' op entry block"):
        run(parse("test-pipeline-raise{what=break}"), module.operation)


def test_a_python_pass_may_try_what_fails(module):
    run(parse("test-pipeline-raise{what=try}"), module.operation)


def test_errors_of_the_bindings_in_a_python_pass_fail_it(module):
    with pytest.raises(PassFailure, match="pass test-pipeline-raise failed: expected non-function type"):
        run(parse("test-pipeline-raise{what=parse}"), module.operation)


def test_mistakes_of_a_pass_go_through(module):
    with pytest.raises(KeyError, match="a mistake"):
        run(parse("test-pipeline-raise{what=crash}"), module.operation)


# Files


def write(folder, **files: str):
    for name, text in files.items():
        (folder / f"{name}.pipeline").write_text(text)
    return folder / f"{next(iter(files))}.pipeline"


def test_reads_a_file_of_stages(tmp_path):
    file = write(
        tmp_path,
        main="""\
# main.pipeline: what it is for
# more about it

stage one:   # the first
  cse, canonicalize{top-down=0   # options go on in the next line
                    max-iterations=3}
  include part   # from beside this file
stage two:
  allow: func, linalg, stablehlo.custom_call
  forbid: stablehlo
  forbid: chlo
stage three: # nothing happens
""",
        part="func.func(cse, canonicalize)\n",
    )
    read = load(file)
    assert (read.name, read.doc) == ("main", "what it is for")
    assert [(stage.name, stage.doc) for stage in read.stages] == [
        ("one", "the first"),
        ("two", ""),
        ("three", "nothing happens"),
    ]
    assert [str(step) for step in read.steps] == [
        "cse",
        "canonicalize{top-down=0 max-iterations=3}",
        "func.func(cse)",
        "func.func(canonicalize)",
    ]
    assert read.stages[1].allow == ("func", "linalg", "stablehlo.custom_call")
    assert read.stages[1].forbid == ("stablehlo", "chlo")
    assert read.steps[1].place == f"{file}:5"


def test_a_file_without_stages_is_one_stage(tmp_path):
    file = write(tmp_path, part="cse\n\n  canonicalize\n")
    assert [(stage.name, len(stage.steps)) for stage in load(file).stages] == [("part", 2)]


def test_stages_of_an_included_file_come_in_place(tmp_path):
    file = write(
        tmp_path,
        main="stage a:\n  cse\n",
        whole="include main\nstage b:\n  cse\ninclude rest\n",
        rest="stage c:\n  cse\n",
    )
    assert [stage.name for stage in load(tmp_path / "whole.pipeline").stages] == ["a", "b", "c"]
    assert [stage.name for stage in load(file).stages] == ["a"]


BAD_FILES = [
    ("cse\nstage a:\n cse\n", ":1: passes stand outside all stages"),
    ("allow: func\n", ":1: `allow:` stands outside a stage"),
    ("stage a:\n cse\nstage a:\n", "has two stages 'a'"),
    ("stage a:\n func.func(cse\n", ":2: a bracket or quote is not closed"),
    ("stage a:\n cse)\n", ":2: pipeline text cannot be read: ')' closes nothing"),
    ("stage a:\n cse cse\n", ":2: pipeline text cannot be read: '(', '{' or ',' is wanted here"),
    ("stage a:\n include nonesuch\n", ":2: there is no pipeline 'nonesuch'"),
    ("stage a: cse\n", ":1: this is no head of a stage: stage a: cse"),
    ("stage a\n", ":1: this is no head of a stage: stage a"),
    ("include main\n", "pipelines include each other: main -> main"),
    ("stage a:\n cse\n include stages\n cse\n", ":4: passes stand outside all stages"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES, ids=[message for _, message in BAD_FILES])
def test_says_what_is_wrong_with_a_file(tmp_path, text, message):
    file = write(tmp_path, main=text, stages="stage x:\n cse\nstage y:\n cse\n")
    with pytest.raises(BadPipeline) as caught:
        load(file)
    assert message in str(caught.value)


def test_a_wrong_pass_in_a_file_has_its_line(tmp_path, module):
    file = write(tmp_path, main="stage a:\n  cse\n  csee\n")
    with pytest.raises(BadPipeline) as caught:
        run(load(file), module.operation)
    assert str(caught.value).startswith(f"{file}:3: there is no pass 'csee'")


def test_a_file_in_the_working_directory_does_not_stand_for_ours(tmp_path, monkeypatch):
    write(tmp_path, cleanup="stage mine:\n  cse\n", main="include cleanup\n")
    monkeypatch.chdir(tmp_path)
    assert [stage.name for stage in load("cleanup").stages] == ["cleanup"]
    assert [stage.name for stage in load("./cleanup.pipeline").stages] == ["mine"]
    assert [stage.name for stage in load("main").stages] == ["mine"]


def test_ours_are_found_by_name():
    assert load("cleanup").name == "cleanup"
    with pytest.raises(BadPipeline, match="there is no pipeline 'clenup'") as caught:
        load("clenup")
    assert caught.value.hint == "did you mean 'cleanup'?"


@pytest.mark.parametrize("name", sorted(pipeline.shipped()))
def test_every_pass_of_our_pipelines_exists(name):
    with new_context(), ir.Location.unknown():
        for step in load(name).steps:
            pipeline.prepare(step)


# Stages


def staged(**stages: str) -> Pipeline:
    return Pipeline("test", tuple(pipeline.Stage(name, tuple(parse(text))) for name, text in stages.items()))


def test_stops_after_a_stage_and_calls_back(module):
    three = staged(a="test-pipeline-look{tag=a}", b="test-pipeline-look{tag=b}", c="test-pipeline-look{tag=c}")
    stages: list[str] = []
    run(three, module.operation, stop_after="b", on_stage=lambda name, op: stages.append(f"{name} {op.name}"))
    assert [seen[0] for seen in SEEN] == ["a", "b"]
    assert stages == ["a builtin.module", "b builtin.module"]


def test_an_unknown_stage_is_refused(module):
    with pytest.raises(BadPipeline, match="pipeline test has no stage 'linlag'") as caught:
        run(staged(linalg="cse", memref="cse"), module.operation, stop_after="linlag")
    assert caught.value.hint == "did you mean 'linalg'?"
    with pytest.raises(BadPipeline) as caught:
        run(staged(a="cse", b="cse"), module.operation, stop_after="zzz")
    assert caught.value.hint == "the stages are a, b"


def test_a_stage_refuses_what_it_forbids(tmp_path, module):
    file = write(tmp_path, main="stage a:\n  func.func(cse)\n  allow: func, chlo\nstage b:\n  test-pipeline-look\n")
    with pytest.raises(IllegalOp) as caught:
        run(load(file), module.operation)
    assert caught.value.message == "stablehlo.add may not remain after stage a (also 1 x stablehlo.multiply)"
    assert caught.value.where == "-:3:8"
    assert "shlo explain stablehlo.add" in caught.value.hint
    assert SEEN == []


# --- the quick way --------------------------------------------------------------------------------------------------


def test_a_pass_that_finds_none_of_its_ops_is_left_out_of_a_compilation(module):
    run(
        parse("test-pipeline-look-at-adds,test-pipeline-erase-all,test-pipeline-look-at-adds"),
        module.operation,
        quick=True,
    )
    assert SEEN == ["adds"]


def test_an_instrument_sees_passes_that_have_nothing_to_do(module):
    run(parse("test-pipeline-erase-all,test-pipeline-look-at-adds"), module.operation)
    assert SEEN == ["adds"]


@pytest.mark.parametrize("rest", ["", ",cse", ",test-pipeline-look-at-adds"])
def test_what_a_python_pass_breaks_is_caught_in_a_compilation(module, rest):
    with pytest.raises(PassFailure) as caught:
        run(parse(f"test-pipeline-raise{{what=break}}{rest}"), module.operation, quick=True)
    name = "test-pipeline-look-at-adds" if "look" in rest else "test-pipeline-raise"
    assert f"in pass {name}" in str(caught.value)


WITHOUT_ANYTHING = 'func.func @main(%x: memref<4xf32>) attributes {kernel = "single"} { return }'
ALL_STEPS = [step for stage in load("cpu").stages for step in stage.steps]
CHOOSY = [step for step in ALL_STEPS if (cls := pipeline.find_pass(step.name)) is not None and cls.only_with]


def test_what_has_not_changed_is_not_verified_again(module, monkeypatch):
    verified = []
    monkeypatch.setattr(pipeline, "_verify", lambda prepared, *_: verified.append(prepared.name))
    look = next(cls for name, cls in pipeline.PASSES.items() if name == "test-pipeline-look-at-adds")
    monkeypatch.setattr(look, "run", lambda self, op: False)
    run(parse("test-pipeline-look-at-adds,cse,test-pipeline-look-at-adds"), module.operation, quick=True)
    assert verified == []
    monkeypatch.setattr(look, "run", lambda self, op: None)
    run(parse("test-pipeline-look-at-adds,cse,test-pipeline-look-at-adds"), module.operation, quick=True)
    assert verified == ["test-pipeline-look-at-adds"] * 2


OF_MANY_KERNELS = """
func.func @main(%a: tensor<40x24xf32>, %b: tensor<24x40xf32>, %x: tensor<1x9x9x4xf32>, %w: tensor<3x3x4x8xf32>)
    -> (tensor<40x40xf32>, tensor<1x7x7x8xf32>, tensor<40xf32>, tensor<24x40xf32>) {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<40x24xf32>, tensor<24x40xf32>) -> tensor<40x40xf32>
  %c = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x9x4xf32>, tensor<3x3x4x8xf32>) -> tensor<1x7x7x8xf32>
  %e = stablehlo.exponential %p : tensor<40x40xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<40x40xf32>, tensor<f32>) -> tensor<40xf32>
  %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<40x24xf32>) -> tensor<24x40xf32>
  return %p, %c, %s, %t : tensor<40x40xf32>, tensor<1x7x7x8xf32>, tensor<40xf32>, tensor<24x40xf32>
}
"""


def test_a_pass_that_says_so_has_changed_no_op():
    def ops(module):
        found = []
        module.operation.walk(
            lambda op: (found.append((op.name, [str(v.type) for v in op.operands])), ir.WalkResult.ADVANCE)[1]
        )
        return found

    unchanged = set()
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(OF_MANY_KERNELS)
        for step in ALL_STEPS:
            before, prepared = ops(module), pipeline.prepare(step)
            if prepared.run(module.operation) is False:
                unchanged.add(prepared.name)
                assert ops(module) == before, step
    assert {"cpu-emit-fft", "kernel-reuse"} <= unchanged


@pytest.mark.parametrize("step", CHOOSY, ids=str)
def test_a_pass_that_names_its_ops_does_nothing_without_them(step):
    cls = pipeline.find_pass(step.name)
    assert cls is not None
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(WITHOUT_ANYTHING)
        before = str(module)
        cls.from_options(step.options).run(module.operation)
        assert str(module) == before


def test_what_was_made_ready_is_not_prepared_again(monkeypatch):
    prepared, prepare = [], pipeline.prepare
    monkeypatch.setattr(pipeline, "prepare", lambda step: (prepared.append(step.name), prepare(step))[1])
    plan = parse("cse,canonicalize")
    with borrowed_context() as context:
        pipeline.make_ready(Pipeline.of(plan), context)
        assert prepared == ["cse", "canonicalize"]
        run(plan, ir.Module.parse("module {}").operation, quick=True)
    assert prepared == ["cse", "canonicalize"]
