"""`shlo explain`, and the pages that are written from the registries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stablehlo_py import resources
from stablehlo_py.cli import explain, tables
from stablehlo_py.errors import BadInput


def test_an_op_has_its_rules_with_places():
    text = explain.explain("stablehlo.dot_general")
    assert text.splitlines()[0] == "stablehlo.dot_general"
    places = re.findall(r"^  (\w+) +any +(stablehlo_py/\S+\.py):(\d+)", text, re.M)
    assert {facet for facet, _, _ in places} >= {"lower", "evaluate"}
    for _, file, line in places:
        source = (resources.PACKAGE.parent / file).read_text().splitlines()
        assert re.match(r"\s*(@|def |return lambda|lambda)", source[int(line) - 1])


def test_the_dialect_may_be_left_out():
    assert explain.explain("dot_general") == explain.explain("stablehlo.dot_general")


def test_ops_that_passes_rewrite_are_known():
    assert "also in" in explain.explain("stablehlo.while")
    assert "transforms/normalize/hlo_tuples.py" in explain.explain("stablehlo.tuple")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("stablehlo.dot_generl", "did you mean 'stablehlo.dot_general'?"),
        ("convolutoin", "did you mean 'stablehlo.convolution'?"),
        ("qqq", "docs/ops.md lists all ops"),
    ],
)
def test_unknown_ops_are_refused_with_the_nearest_name(name, hint):
    with pytest.raises(BadInput) as caught:
        explain.explain(name)
    assert caught.value.hint == hint


def test_the_page_of_ops_has_a_row_for_each():
    page = tables.ops_page()
    for name in explain.op_names():
        assert f"| `{name}` |" in page
    assert "| `stablehlo.add` | any | any | any |" in page


def test_the_page_of_passes_has_options_and_users():
    page = tables.passes_page()
    section = page[page.index("### `hlo-to-linalg`") :]
    assert "`stablehlo_py/transforms/kernels/hlo_to_linalg.py`, used by cpu" in section
    assert "| `target` | str | `any` |" in section
    assert "| `canonicalize` | fold ops and apply their canonicalisation patterns |" in page


def test_pages_are_written_and_checked(tmp_path: Path, capsys):
    assert tables.main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err == f"ops.md, passes.md in {tmp_path} must be written anew: make docs\n"
    assert tables.main([str(tmp_path)]) == 0
    assert tables.main([str(tmp_path), "--check"]) == 0
    (tmp_path / "ops.md").write_text("stale")
    assert tables.main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().err.startswith("ops.md in ")
