"""Watching a pipeline: printed IR, times as data and as a table, dumped stages."""

from __future__ import annotations

import pytest

from stablehlo_py.core import instrument, pipeline
from stablehlo_py.mlir import ir, new_context

STAGES = pipeline.Pipeline(
    "test",
    (
        pipeline.Stage("one", tuple(pipeline.parse("func.func(cse),canonicalize"))),
        pipeline.Stage("two", tuple(pipeline.parse("cse"))),
    ),
)


def run(watch: instrument.Instrument, stages: pipeline.Pipeline = STAGES) -> None:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse("func.func @f() { return }")
        pipeline.run(stages, module.operation, instrument=watch)


@pytest.mark.parametrize(
    ("chosen", "heads"),
    [
        ({}, []),
        ({"after": None}, ["After cse (stage one)", "After canonicalize (stage one)", "After cse (stage two)"]),
        ({"before": frozenset({"canonicalize"})}, ["Before canonicalize (stage one)"]),
        (
            {"before": frozenset({"cse"}), "after": frozenset({"nonesuch"})},
            ["Before cse (stage one)", "Before cse (stage two)"],
        ),
    ],
)
def test_prints_ir_around_chosen_passes(chosen, heads):
    written: list[str] = []
    run(instrument.PrintIR(**chosen, write=written.append))
    assert [text.splitlines()[0] for text in written] == [f"// -----// IR Dump {head} //----- //" for head in heads]
    assert all("func.func @f()" in text for text in written)


def test_times_are_data_and_a_table():
    timing = instrument.Timing()
    run(timing)
    assert [(row.stage, row.name) for row in timing.rows] == [("one", "cse"), ("one", "canonicalize"), ("two", "cse")]
    assert all(row.seconds > 0 for row in timing.rows)
    assert timing.by_stage().keys() == {"one", "two"}
    assert timing.total == pytest.approx(sum(timing.by_stage().values()))
    names = [line.split()[-1] for line in timing.table().splitlines()[2:]]
    assert names == ["one", "cse", "canonicalize", "two", "cse"]


def test_dumps_stages_in_order(tmp_path):
    run(instrument.DumpStages(tmp_path / "new" / "folder"))
    files = sorted((tmp_path / "new" / "folder").iterdir())
    assert [file.name for file in files] == ["01-one.mlir", "02-two.mlir"]
    assert all("func.func @f()" in file.read_text() for file in files)


def test_several_instruments_see_the_same():
    one, two = instrument.Timing(), instrument.Timing()
    run(instrument.Instruments([one, two]))
    assert one.rows == two.rows and len(one.rows) == 3


def test_large_constants_are_not_printed():
    with new_context(), ir.Location.unknown():
        numbers = ", ".join(f"{i}.0" for i in range(1000))
        module = ir.Module.parse(
            f"func.func @f() {{ %0 = arith.constant dense<[{numbers}]> : tensor<1000xf32>\n return }}"
        )
        assert len(instrument.print_op(module.operation)) < 300
