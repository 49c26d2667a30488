"""What examples/ promises: stored answers, a run that fails when it is wrong, code of the pages that works."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import stablehlo_py

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.npz"))


def test_there_are_examples():
    assert {"transformer", "mlp_grad", "conv_net", "mlp", "dense"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_stored_answers(name):
    with np.load(EXAMPLES / f"{name}.npz") as stored:
        kept = dict(stored)
    arguments = [kept[f"in{i}"] for i in range(sum(key.startswith("in") for key in kept))]
    results = stablehlo_py.compile(EXAMPLES / f"{name}.mlir")(*arguments)
    assert len(results) == sum(key.startswith("out") for key in kept)
    for i, result in enumerate(results):
        wanted = kept[f"out{i}"]
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


@pytest.mark.parametrize(
    "path", sorted(p for p in EXAMPLES.iterdir() if p.suffix in (".mlir", ".npz")), ids=lambda p: p.name
)
def test_files_are_small_and_from_nowhere(path):
    assert path.stat().st_size < 1 << 20
    assert not re.search(rb'loc\("/', path.read_bytes())  # no path of the machine that exported it


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_run_transformer(capsys):
    example = load(EXAMPLES / "run_transformer.py")
    assert example.main() == 0
    printed = capsys.readouterr().out
    assert "against the stored answer: largest error" in printed
    assert "compiled in" in printed


@pytest.mark.parametrize("wrong", [1e-3, np.nan])
def test_run_transformer_fails_when_it_is_wrong(wrong, tmp_path, monkeypatch, capsys):
    example = load(EXAMPLES / "run_transformer.py")
    with np.load(EXAMPLES / "transformer.npz") as stored:
        kept = dict(stored)
    kept["out0"][3, 5] += wrong
    np.savez(tmp_path / "transformer.npz", **kept)
    (tmp_path / "transformer.mlir").write_bytes((EXAMPLES / "transformer.mlir").read_bytes())
    monkeypatch.setattr(example, "HERE", tmp_path)
    assert example.main() == 1
    assert "WRONG" in capsys.readouterr().err


def test_exports_are_what_the_script_writes():
    """The stored inputs are those of the script: the answers belong to them."""
    pytest.importorskip("jax")
    import jax

    export_models = load(EXAMPLES / "export_models.py")
    models = export_models.models()
    assert sorted(models) == NAMES
    for name, (_, arguments) in models.items():
        with np.load(EXAMPLES / f"{name}.npz") as stored:
            for i, leaf in enumerate(jax.tree.leaves(arguments)):
                np.testing.assert_array_equal(stored[f"in{i}"], leaf)


def test_the_assertions_hold(capsys):
    from stablehlo_py.cli import shlo

    assert shlo.main(["check", str(EXAMPLES / "assertions.mlir")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "2 programs: 2 agree"


def test_the_program_of_the_readme(capsys):
    """The twenty lines run, and agree with JAX."""
    pytest.importorskip("jax")
    page = (ROOT / "README.md").read_text()
    found = re.search(r"## Twenty lines\n\n```python\n(.*?)```", page, re.DOTALL)
    assert found is not None
    names: dict[str, object] = {}
    exec(found[1], names)
    printed = capsys.readouterr().out
    differences = [
        float(line.rpartition(") ")[2]) for line in printed.splitlines() if re.match(r"\([\d, ]*\) \d", line)
    ]
    assert len(differences) == 3
    assert max(differences) < 1e-5
    assert "linalg.generic" in printed


def test_the_pass_of_the_readme_is_the_example():
    """The lines that the page quotes stand in the example."""
    page = (ROOT / "README.md").read_text()
    found = re.search(r"without its imports:\n\n```python\n(.*?)    def rewrite", page, re.DOTALL)
    assert found is not None
    assert found[1] in (EXAMPLES / "python_pass.py").read_text()


def test_the_walk_through_of_a_pass(tmp_path):
    """docs/adding_a_pass.md: the pass and its test, as they stand there."""
    page = (ROOT / "docs/adding_a_pass.md").read_text()
    code, test = re.search(r"```python\n(.*?)```", page, re.DOTALL), re.search(r"```mlir\n(.*?)```", page, re.DOTALL)
    assert code is not None
    assert test is not None
    (tmp_path / "own.py").write_text(code[1])
    (tmp_path / "test.mlir").write_text(test[1])
    opt = [sys.executable, str(ROOT / "tools/stablehlo-opt"), str(tmp_path / "test.mlir")]
    done = subprocess.run(
        [
            *opt,
            f"--load-pass-plugin={tmp_path}/own.py",
            "--pass-pipeline=hlo-cancel-transposes{max-rank=4},canonicalize",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    cancelled, _, kept = done.stdout.partition("@twice_there")
    assert "transpose" not in cancelled
    assert kept.count("stablehlo.transpose") == 2


def test_the_walk_through_of_an_op():
    """docs/adding_an_op.md: the rows and rules that it quotes are those of the code."""
    page = (ROOT / "docs/adding_an_op.md").read_text()
    package = ROOT / "python/stablehlo_py"
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for quoted, file in ((blocks[0], "ops/chlo_functions.py"), (blocks[1], "ops/evaluate/chlo.py")):
        assert quoted.strip() in (package / file).read_text()
    for part in re.split(r"# (ops/\S+)\n", blocks[3])[2::2]:
        assert any(part.strip() in (package / file).read_text() for file in ("ops/shape.py", "ops/evaluate/shape.py"))
    exec(blocks[2], names := {"__name__": "walk_through"})
    names["test_square"](np.float32)  # type: ignore[operator]
