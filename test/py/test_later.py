"""Functions of modules that are imported when one of them is first called."""

from __future__ import annotations

import sys

import pytest

from stablehlo_py.later import Later


def test_a_module_is_imported_when_a_function_of_it_is_called(monkeypatch, tmp_path):
    (tmp_path / "waiting.py").write_text("def add(x, y=1):\n    return x + y\n")
    monkeypatch.syspath_prepend(tmp_path)
    waiting = Later("waiting")
    add = waiting.add
    assert add.__name__ == "add"
    assert "waiting" not in sys.modules
    assert add(2) == 3
    assert add(2, y=5) == waiting.add(2, 5) == 7
    assert waiting.add is sys.modules["waiting"].add
    monkeypatch.delitem(sys.modules, "waiting")


def test_what_the_module_lacks_is_said_when_it_is_called():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        Later("stablehlo_py.later").nothing()
