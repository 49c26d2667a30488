"""`shlo run` of a program with symbolic dimensions: the inputs decide."""

from __future__ import annotations

from pathlib import Path

import pytest

from stablehlo_py.cli.shlo import main


@pytest.fixture
def twice(tmp_path: Path) -> str:
    file = tmp_path / "twice.mlir"
    file.write_text("""func.func @main(%a: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %c = stablehlo.add %a, %a : tensor<?x3xf32>
      return %c : tensor<?x3xf32>
    }""")
    return str(file)


def test_inputs_decide_the_shapes(twice: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", twice, "--input", "2x3xf32=1"]) == 0
    assert "float32[2, 3] [2.0, 2.0, 2.0, 2.0, 2.0, 2.0]" in capsys.readouterr().out


def test_without_inputs_it_cannot_run(twice: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", twice]) != 0
    assert "it takes float32[?,3]" in capsys.readouterr().err


def test_an_input_that_does_not_fit(twice: str, capsys: pytest.CaptureFixture[str]):
    assert main(["run", twice, "--input", "2x4xf32=1"]) != 0
    assert "input 0 is float32[2,4], the program takes float32[?,3]" in capsys.readouterr().err
