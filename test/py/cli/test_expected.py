"""Expected diagnostics: which line an annotation is about, and what it matches."""

from __future__ import annotations

import pytest

from stablehlo_py.cli.expected import Expected, compare, read_expected
from stablehlo_py.core.diagnostics import Diagnostic

OWN = frozenset({"-"})


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("x // expected-error {{m}}", "error", 1),
        ("// expected-warning@+2 {{m}}", "warning", 3),
        ("\n\n// expected-note @-2 {{m}}", "note", 1),
        ("// expected-remark @below {{m}}\nx", "remark", 2),
        ("x\n// expected-error @above {{m}}", "error", 1),
        ("// expected-error @unknown {{m}}", "error", None),
    ],
)
def test_which_line_it_is_about(text, kind, line):
    found, wrong = read_expected(text)
    assert wrong == []
    assert [(e.kind, e.line, e.text) for e in found] == [(kind, line, "m")]


def test_stacks_are_about_the_first_line_that_is_code():
    found, _ = read_expected(
        "// expected-error @below {{a}}\n// expected-note @below {{b}}\nx\n// expected-note @above {{c}}\n"
    )
    assert [e.line for e in found] == [3, 3, 3]


def test_several_on_a_line():
    found, _ = read_expected("x // expected-error {{a}} expected-note {{b}}")
    assert [(e.kind, e.text) for e in found] == [("error", "a"), ("note", "b")]


def test_one_that_does_not_end():
    assert read_expected("x\n// expected-error {{a}")[1] == ["2: expected-error without a closing }}"]


@pytest.mark.parametrize(
    ("text", "message", "matches"),
    [
        ("size {{[0-9]+}} is", "the size 12 is wrong", True),
        ("size {{[0-9]+}} is", "the size x is wrong", False),
        ("(a.b) {{c$}}", "(a.b) c", True),
        ("(a.b) {{c$}}", "(axb) c", False),
        ("{{^start}}", "at start", False),
    ],
)
def test_regular_expressions_stand_in_double_braces(text, message, matches):
    assert Expected("error", 1, text, True, 1).matches("error", 1, message) is matches


def test_what_agrees_has_no_problems():
    text = "x // expected-error {{bad}}\ny // expected-note {{here}}\n// expected-remark @unknown {{done}}"
    said = [
        Diagnostic("error", "this is bad", "-:1:3", (Diagnostic("note", "here", "-:2:1"),)),
        Diagnostic("remark", "done", "elsewhere.py:7:1"),
    ]
    assert compare(text, said, OWN) == []


def test_notes_that_mlir_adds_need_no_annotation():
    note = Diagnostic("note", "see current operation: %0 = ...", "-:1:1")
    assert compare("x // expected-error {{bad}}", [Diagnostic("error", "bad", "-:1:3", (note,))], OWN) == []


def test_every_difference_is_told():
    text = "x // expected-error {{bad}}\n// expected-note @below {{y}}\nz"
    said = [Diagnostic("warning", "bad", "-:1:3"), Diagnostic("error", "bad", "-:2:3")]
    assert compare(text, said, OWN) == [
        "1: unexpected warning: bad",
        "2: unexpected error: bad",
        '1: expected error "bad" was not produced',
        '2: expected note "y" was not produced',
    ]


def test_one_annotation_is_for_one_diagnostic():
    twice = [Diagnostic("error", "bad", "-:1:3")] * 2
    assert compare("x // expected-error {{bad}}", twice, OWN) == ["1: unexpected error: bad"]
