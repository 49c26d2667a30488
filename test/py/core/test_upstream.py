"""The table of C++ passes says what the bindings have."""

from __future__ import annotations

import pytest

from stablehlo_py.core import upstream
from stablehlo_py.mlir import PassManager, new_context


def test_every_pass_of_the_table_is_there():
    names = ",".join(upstream.passes())
    with new_context(), pytest.raises(ValueError) as caught:
        PassManager.parse(f"builtin.module(no.op({names},no-such-pass))")
    # The parser complains about the first name that it does not know.
    assert "'no-such-pass'" in str(caught.value)


def test_passes_are_known_by_table_or_by_asking(monkeypatch):
    assert upstream.exists("canonicalize")
    assert not upstream.exists("canonicalise")
    assert not upstream.exists("cse),func.func(cse")
    monkeypatch.setattr(upstream, "passes", dict)
    assert upstream.exists("canonicalize")


@pytest.mark.parametrize("name", ["sparsifier", "gpu-lower-to-nvvm-pipeline", "tosa-to-linalg-pipeline"])
def test_pipelines_that_abort_elsewhere_are_for_modules_only(name):
    assert upstream.passes()[name].anchors == ("builtin.module",)


def test_rows_come_back():
    lines = upstream.TABLE.read_text().splitlines()
    assert [str(row) for row in upstream.passes().values()] == lines
    assert len(lines) > 300


def test_every_pass_runs_on_its_first_anchor():
    # Building one is the check: a pass under an op that is not its own is refused.
    everything: dict[str, list[str]] = {}
    for name, row in upstream.passes().items():
        everything.setdefault(row.anchors[0] if row.anchors else "any", []).append(name)
    text = ",".join(
        f"{anchor}({','.join(names)})" for anchor, names in everything.items() if anchor != "builtin.module"
    )
    with new_context():
        PassManager.parse(f"builtin.module({','.join(everything['builtin.module'])},{text})")


def test_options_with_their_defaults():
    assert "max-iterations=10" in upstream.options_of("canonicalize").split()
    assert upstream.options_of("convert-linalg-to-loops") == ""
    assert "target" in upstream.options_of("vhlo-to-version")
