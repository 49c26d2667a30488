"""Locations in the user's own code, and diagnostics as clang prints them."""

from __future__ import annotations

import pytest

from stablehlo_py.core.diagnostics import Diagnostic, PassFailure, Place, collect, describe_location, is_error, render
from stablehlo_py.mlir import ir, new_context

LOCATIONS = [
    ("unknown", ""),
    ('"net.py":3:7', "net.py:3:7"),
    ('"jit(f)/add"', "jit(f)/add"),
    ('"jit(f)/add"("net.py":3:7)', "net.py:3:7 (jit(f)/add)"),
    ('"jit(f)/add"(callsite("layer"("net.py":3:7 to :12) at "<module>"("run.py":9:1)))', "net.py:3:7 (jit(f)/add)"),
    (
        '"jit(f)/mul"(callsite("gelu"("/v/lib/python3.11/site-packages/jax/nn.py":40:2) at "layer"("net.py":3:7)))',
        "net.py:3:7 (jit(f)/mul)",
    ),
    ('callsite("/v/site-packages/jax/nn.py":40:2 at unknown)', "/v/site-packages/jax/nn.py:40:2"),
    ('fused<"x">["a", "net.py":3:7]', "net.py:3:7 (a)"),
    ("fused[unknown, unknown]", ""),
]


@pytest.mark.parametrize(("text", "expected"), LOCATIONS)
def test_describes_the_innermost_place_of_the_user(text, expected):
    with new_context():
        module = ir.Module.parse(f"func.func @f() {{ return }} loc({text})")
        assert describe_location(module.body.operations[0].location) == expected


def test_places_come_back():
    assert Place.parse("net.py:3:7 (jit(f)/add)") == Place("net.py", 3, 7, "jit(f)/add")
    assert Place.parse("C:\\net.py:3:7") == Place("C:\\net.py", 3, 7)
    assert Place.parse("jit(f)/add") is None
    assert Place.parse("") is None


def test_collects_with_notes_and_lets_others_pass():
    with new_context() as context, ir.Location.file("a.py", 1, 2, context) as location:
        with (
            collect(context, lambda _: True, errors=False) as outer,
            collect(context, is_error, errors=True) as inner,
        ):
            location.emit_error("an error")
            assert context.emit_error_diagnostics
            with pytest.raises(ir.MLIRError):
                ir.Module.parse("func.func @f() { return %0 : i32 }")
        assert not context.emit_error_diagnostics
    assert [d.message for d in inner] == ["an error", "use of undeclared SSA value name"]
    assert inner[0] == Diagnostic("error", "an error", "a.py:1:2")
    assert outer == []


def test_the_op_is_in_the_note():
    note = Diagnostic("note", 'see current operation: %0 = "stablehlo.add"(%1, %1) : ...')
    assert Diagnostic("error", "x", notes=(note,)).op_name == "stablehlo.add"
    several = Diagnostic("note", 'see current operation: %0:2 = "stablehlo.sort"(%1, %1) : ...')
    assert Diagnostic("error", "x", notes=(several,)).op_name == "stablehlo.sort"
    assert Diagnostic("error", "x").op_name == ""


def test_a_failure_without_a_word():
    assert str(PassFailure("cse", ())) == "pass cse failed and did not say why"


def test_renders_place_line_and_caret():
    sources = {"-": ["func.func @f() {", "  %0 = \tfoo", "}"]}
    note = Diagnostic("note", "see there", "-:1:1")
    error = Diagnostic(
        "error", "no foo", "-:2:9 (jit(f)/foo)", (note, Diagnostic("note", "same place", "-:2:9 (jit(f)/foo)"))
    )
    assert render(error, sources, name="a.mlir").splitlines() == [
        "a.mlir:2:9: error: no foo [jit(f)/foo]",
        "    %0 =  foo",
        "          ^",
        "  a.mlir:1:1: note: see there",
        "  note: same place",
    ]


def test_renders_what_has_no_place_or_no_source(tmp_path):
    assert render(Diagnostic("error", "bad"), {}, name="a.mlir") == "a.mlir: error: bad"
    assert render(Diagnostic("error", "bad", "no/such/file.py:2:9"), {}) == "no/such/file.py:2:9: error: bad"
    assert render(Diagnostic("error", "bad", "-:99:1"), {"-": ["x"]}, name="a.mlir") == "a.mlir:99:1: error: bad"
    file = tmp_path / "net.py"
    file.write_text("x = 1\n")
    assert render(Diagnostic("warning", "hm", f"{file}:1:4"), {}).splitlines() == [
        f"{file}:1:4: warning: hm",
        "  x = 1",
        "      ^",
    ]


def test_long_lines_and_notes_are_cut():
    line = "x" * 5000 + "y" + "z" * 5000
    note = Diagnostic("note", "see current operation: " + "1" * 100_000)
    text = render(Diagnostic("error", "bad", "-:1:5001", (note,)), {"-": [line]})
    assert len(text) < 1000
    shown, caret = text.splitlines()[1:3]
    assert shown[caret.index("^")] == "y"
