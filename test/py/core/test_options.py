"""The text of options: brackets, quotes, and where it stops being readable."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stablehlo_py.core.options import SyntaxProblem, did_you_mean, format_options, parse_options, split_commas

READS = [
    ("", {}),
    ("a=1 b c=x", {"a": "1", "b": "", "c": "x"}),
    ("a='p q' b=\"r s\"", {"a": "p q", "b": "r s"}),
    ("a={x=1 y={z}} b=[1,2,3]", {"a": "x=1 y={z}", "b": "[1,2,3]"}),
    ("types=tensor<4x8xf32>,tensor<?xi32>", {"types": "tensor<4x8xf32>,tensor<?xi32>"}),
    ("map=(d0)->(d0)", {"map": "(d0)->(d0)"}),
    ('a="say \\"no\\""', {"a": 'say "no"'}),
    ("tile-sizes=8,32,64   other=-1", {"tile-sizes": "8,32,64", "other": "-1"}),
]


@pytest.mark.parametrize(("text", "options"), READS)
def test_reads_options(text, options):
    assert parse_options(text) == options


@pytest.mark.parametrize(
    ("text", "problem", "column"),
    [
        ("a={x", "this bracket is not closed", 2),
        ("a='x", "this quote is not closed", 2),
        ("a=x}", "'}' closes nothing", 3),
        ("a=(x]", "']' closes nothing", 4),
        ("a=1 =2", "the name of an option is wanted here", 4),
        ("a=1 a=2", "option 'a' is given twice", 4),
    ],
)
def test_says_where_text_cannot_be_read(text, problem, column):
    with pytest.raises(SyntaxProblem) as caught:
        parse_options(text)
    assert caught.value.problem == problem
    assert caught.value.position == column
    assert str(caught.value).splitlines()[-1] == "  " + " " * column + "^"


def test_splits_only_at_outer_commas():
    assert split_commas('a,b{x=1,2},c(d,e),f{s="g,h"}, ') == ["a", "b{x=1,2}", "c(d,e)", 'f{s="g,h"}']


@given(st.dictionaries(st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True), st.text(max_size=20)))
def test_text_options_come_back(options):
    assert parse_options(format_options(options)) == options


@given(st.text(alphabet="ab=,{}()[]<>\"' \\", max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        parse_options(text)
        split_commas(text)
    except SyntaxProblem as problem:
        assert 0 <= problem.position <= len(text)


def test_did_you_mean_says_nothing_when_nothing_is_near():
    assert did_you_mean("canonicalise", ["cse", "canonicalize"]) == "did you mean 'canonicalize'?"
    assert did_you_mean("qqq", ["cse", "canonicalize"]) == ""
