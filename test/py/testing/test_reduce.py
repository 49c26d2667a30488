"""`shlo reduce`: a planted wrong rule, crash or hang is found again in the smallest program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stablehlo_py.cli.shlo import main
from stablehlo_py.testing.worker import Worker

PROGRAM = """
func.func @main(%x: tensor<4x7xi32>, %y: tensor<4x7xi32>, %p: tensor<i1>) -> (tensor<4x7xi32>, tensor<7xi32>) {
  %a = stablehlo.add %x, %y : tensor<4x7xi32>
  %b = "stablehlo.if"(%p) ({
    %m = stablehlo.maximum %y, %a : tensor<4x7xi32>
    stablehlo.return %m : tensor<4x7xi32>
  }, {
    stablehlo.return %a : tensor<4x7xi32>
  }) : (tensor<i1>) -> tensor<4x7xi32>
  %c = stablehlo.multiply %b, %a : tensor<4x7xi32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %d = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<4x7xi32>, tensor<i32>) -> tensor<7xi32>
  return %a, %d : tensor<4x7xi32>, tensor<7xi32>
}"""
TWO = """
func.func @main(%x: tensor<i32>, %y: tensor<i32>) -> tensor<i32> {{
  %0 = stablehlo.{} %x, %y : tensor<i32>
  return %0 : tensor<i32>
}}"""
# what replaces the scalar rule of maximum in the child
PLANTED = """
from stablehlo_py.core.registry import scalar
import stablehlo_py.ops.elementwise
def wrong(op, lhs, rhs):
    {action}
scalar._rules["stablehlo.maximum", "any"] = wrong
"""


def planted(tmp_path: Path, action: str, text: str = PROGRAM) -> list[str]:
    plugin, program, inputs = (tmp_path / name for name in ("plugin.py", "program.mlir", "inputs.npz"))
    plugin.write_text(PLANTED.format(action=action))
    program.write_text(text)
    random = np.random.default_rng(0)
    x, y = (random.integers(1, 9, (4, 7)).astype(np.int32) for _ in range(2))
    np.savez(inputs, in0=x, in1=y, in2=np.array(True))
    return ["reduce", str(program), f"--input=@{inputs}", f"--plugin={plugin}", "--seconds=60"]


@pytest.mark.parametrize(
    ("check", "action"),
    [
        ("mismatch", "return lhs"),
        ("error:planted", "raise RuntimeError('planted')"),
    ],
)
def test_planted(tmp_path, check, action):
    out = tmp_path / "out.mlir"
    assert main([*planted(tmp_path, action), f"--check={check}", f"-o{out}"]) == 0
    text = out.read_text()
    assert text.count("stablehlo.") == 1
    assert "stablehlo.maximum" in text
    assert "tensor<1x1xi32>" in text
    assert len(np.load(out.with_suffix(".npz")).files) in (1, 2)


def test_planted_crash(tmp_path):
    """Few candidates: each that crashes costs a new child."""
    plugin, program, out = (tmp_path / name for name in ("plugin.py", "program.mlir", "out.mlir"))
    text = TWO.format("maximum").replace("return %0", "%1 = stablehlo.negate %0 : tensor<i32>\n  return %1")
    plugin.write_text(PLANTED.format(action="import os; os.abort()"))
    program.write_text(text)
    assert main(["reduce", str(program), f"--plugin={plugin}", "--seconds=8", "--check=crash", f"-o{out}"]) == 0
    assert "stablehlo.maximum" in out.read_text()
    assert "stablehlo.negate" not in out.read_text()


def test_sound_program_is_not_reduced(tmp_path, capsys):
    assert main([*planted(tmp_path, "return max(lhs, rhs)")[:3], "--check=crash"]) == 1
    assert "the program gives ok, not crash" in capsys.readouterr().err


def test_worker_outlives_its_child(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text(PLANTED.format(action="import time; time.sleep(60)"))
    with Worker(seconds=20, plugin=str(plugin)) as worker:
        assert worker.judge("func.func @main() { return }", []).kind == "ok"
        worker.seconds = 1
        assert worker.judge(TWO.format("maximum")).kind == "hang"
        worker.seconds = 20
        assert worker.judge(TWO.format("add"), [np.array(3, np.int32)] * 2).kind == "ok"
        assert worker.started == 2


def test_text_that_is_no_program(tmp_path, capsys):
    program = tmp_path / "bad.mlir"
    program.write_text("func.func @main() {\n  this is\n  no program\n  return\n}\n")
    assert main(["reduce", str(program), "--check=error:BadInput", "--seconds=20"]) == 0
    assert len(capsys.readouterr().out) < 20


def test_a_child_that_never_answers_hangs(tmp_path):
    plugin = tmp_path / "plugin.py"
    plugin.write_text("while True: pass")
    with Worker(seconds=3, plugin=str(plugin)) as worker:
        assert worker.judge("").kind == "hang"
