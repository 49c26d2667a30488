"""Regular expressions that are compiled when they are first used."""

from __future__ import annotations

import re

import pytest

from stablehlo_py.patterns import pattern


def test_a_pattern_does_what_a_compiled_one_does():
    words, same = pattern(r"([a-z])(\d)", re.I), re.compile(r"([a-z])(\d)", re.I)
    text = "a1 B2 c"
    assert words.findall(text) == same.findall(text)
    assert words.sub(r"\2\1", text) == same.sub(r"\2\1", text) == "1a 2B c"
    found = words.search(text)
    assert found is not None and found.groups() == ("a", "1")
    assert words.fullmatch(text) is None
    assert words.pattern == same.pattern and words.flags == same.flags
    assert pattern(rb"\d+").split(b"a1b22c") == [b"a", b"b", b"c"]


def test_nothing_is_compiled_before_it_is_used():
    bad = pattern("(")
    with pytest.raises(re.error):
        bad.match("")
