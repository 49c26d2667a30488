"""Rules that are imported when their op is met: the tables of homes name every op that a module has rules for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stablehlo_py
from stablehlo_py.core.registry import Facet

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(stablehlo_py.__file__).parents[1])}
# Each rule is looked for in a fork that has met no other op, so that no other op's module brings it in.
LOOK = """
import os, sys
import stablehlo_py.ops, stablehlo_py.ops.evaluate, stablehlo_py.ops.simplify
from stablehlo_py.core import registry
from stablehlo_py.core.passes import modules_under
registry.load_target("cpu")

def everything():
    for package in ("stablehlo_py.ops", "stablehlo_py.targets.cpu"):
        for module in modules_under(package):
            __import__(module)
    return [(facet.name, op, target) for facet in FACETS for op, target, _ in facet.rows()]

def in_a_fork(work):
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, repr(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = answer.read()
    os.wait()
    return eval(said)

FACETS = (registry.lower, registry.scalar, registry.evaluate, registry.cost, registry.simplify)
facets = {facet.name: facet for facet in FACETS}
rows = in_a_fork(everything)
missing = []
for name, op, target in rows:
    facet = facets[name]
    own = lambda: facet.find(op, target) is not None and (facet is registry.simplify or (op, target) in facet._rules)
    if not in_a_fork(own):
        missing.append((name, op, target))
print(len(rows), missing)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_every_rule_is_found_by_its_op_alone():
    done = subprocess.run([sys.executable, "-c", LOOK], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    count, _, missing = done.stdout.partition(" ")
    assert int(count) > 200
    assert missing == "[]\n"


def test_a_module_is_imported_when_a_rule_is_looked_for(monkeypatch, tmp_path):
    (tmp_path / "homes").mkdir()
    (tmp_path / "homes" / "__init__.py").write_text("")
    (tmp_path / "homes" / "first.py").write_text("FACET('a.one', 'a.two')(lambda: 1)\n")
    (tmp_path / "homes" / "second.py").write_text("FACET('a.three', target='cpu')(lambda: 2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    facet = Facet("test", "none")
    monkeypatch.setattr("builtins.FACET", facet, raising=False)
    facet.live_in("homes", {"first": "a.one a.two"})
    facet.live_in("homes", {"second": "a.three"}, target="cpu")
    assert facet.find("a.none") is None
    assert facet.find("a.three") is None
    assert "homes.first" not in sys.modules
    assert facet.find("a.two")() == 1
    assert "homes.first" in sys.modules
    assert "homes.second" not in sys.modules
    assert facet.find("a.three", "cpu")() == 2
    assert facet.ops("cpu") == ["a.one", "a.three", "a.two"]
    for name in ("homes", "homes.first", "homes.second"):
        monkeypatch.delitem(sys.modules, name)


def test_a_list_of_all_rules_imports_all_modules():
    code = "import stablehlo_py.ops; from stablehlo_py.core.registry import lower; print(len(lower.ops()), len([*lower.rows()]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    ops, rows = map(int, done.stdout.split())
    assert ops == rows > 100
