"""shlo bench and shlo run --profile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stablehlo_py.cli.shlo import main
from stablehlo_py.targets.cpu import peak

PROGRAM = """func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return str(path)


def test_bench_reports_rates_against_limits(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", program, "--seconds=0.05", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["runs"] >= 5
    assert row["fastest_s"] <= row["median_s"] <= row["slowest_s"]
    assert row["gflops"] == pytest.approx(2 * 64**3 / row["fastest_s"] / 1e9)
    # more than the machine can do would mean that one of the two is counted wrongly
    assert 0 < row["gflops"] < 1.5 * row["gflops_limit"]
    assert main(["bench", program, "--seconds=0.05"]) == 0
    assert "GFLOP/s" in capsys.readouterr().out


def test_profile_lists_every_kernel(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    assert main(["run", program, "--profile", f"--trace={trace}"]) == 0
    text = capsys.readouterr().out
    assert "dot_general_0" in text
    assert "reverse_1" in text
    events = json.loads(trace.read_text())["traceEvents"]
    assert {e["name"] for e in events} == {"dot_general_0", "reverse_1"}
    assert all(e["dur"] > 0 for e in events)


def test_limits_of_this_machine_are_plausible() -> None:
    assert 1e9 < peak.flops_per_second() < 1e12
    assert 1e8 < peak.bytes_per_second() < 1e12
