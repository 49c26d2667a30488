"""shlo bench and shlo run --profile."""

from __future__ import annotations

import json
from pathlib import Path

import llvmlite.binding as llvmlite
import pytest

from stablehlo_py.cli.shlo import main
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.targets.cpu import peak
from stablehlo_py.targets.cpu.emit.matrix_tiles import MULTIPLY
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.products.matrix_tile import form_of_tiles
from stablehlo_py.targets.cpu.products.product_forms import DOTS, form_of
from stablehlo_py.targets.cpus import known

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


def test_bench_says_why_a_rate_is_above_the_limit(
    program: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a convolution's may be, whose sums are counted and not made."""
    for limit, is_above in ((1e15, False), (1.0, True)):
        monkeypatch.setattr(peak, "mixed_flops_per_second", lambda *_, limit=limit: limit)
        assert main(["bench", program, "--seconds=0.05"]) == 0
        assert ("more than the limit" in capsys.readouterr().out) == is_above


def test_profile_lists_every_kernel(program: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.json"
    assert main(["run", program, "--profile", f"--trace={trace}"]) == 0
    text = capsys.readouterr().out
    assert "dot_general_0" in text
    assert "reverse_1" in text
    events = json.loads(trace.read_text())["traceEvents"]
    assert {e["name"] for e in events} == {"dot_general_0", "reverse_1"}
    assert all(e["dur"] > 0 for e in events)


def test_profile_says_how_many_threads_share_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STABLEHLO_PY_THREADS", "3")
    program = tmp_path / "sums.mlir"
    large, small = "tensor<1000x1000xf32>", "tensor<10xf32>"
    program.write_text(f"""func.func @main(%x: {large}, %y: {small}) -> ({large}, {small}) {{
      %0 = stablehlo.add %x, %x : {large}
      %1 = stablehlo.negate %y : {small}
      return %0, %1 : {large}, {small}
    }}""")
    assert main(["run", str(program), "--profile"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("elementwise_")]
    assert {row[0]: row[-1] for row in rows} == {"elementwise_add_0": "3", "elementwise_negate_1": "1"}


def test_bf16_is_multiplied_in_pairs_where_that_is_faster() -> None:
    for name, pays in (("znver4", True), ("sapphirerapids", False), ("icelake-server", False)):
        features = ",".join(f"+{feature}" for feature in known(name))
        assert cpu_of(features).bf16_dot == pays, name


def test_limits_of_this_machine_are_plausible() -> None:
    f32 = peak.flops_per_second()
    assert 1e9 < f32 < 1e12
    assert 1e8 < peak.bytes_per_second() < 1e12
    cpu = cpu_of(host()[1])
    # half, twice and four times as many in a register; far from each other even on a busy machine
    assert peak.flops_per_second("f64") < 0.8 * f32
    if cpu.bf16_tiles:
        assert 4 * f32 < peak.flops_per_second("bf16") < 0.8 * peak.flops_per_second("i8")
    elif cpu.bf16_dot:
        assert peak.flops_per_second("bf16") > 1.3 * f32
    if cpu.int8_dot:
        assert peak.flops_per_second("i8") > 2 * f32


@pytest.mark.parametrize("element", ["f32", "f64", "f16", "bf16", "i8", "ui8"])
@pytest.mark.parametrize("cpu", [Cpu(64, 32, bf16_dot=True, int8_dot=True), Cpu(64, 32), Cpu(32, 16), Cpu(16, 32)])
def test_the_limit_is_measured_with_the_instruction_of_products(element: str, cpu: Cpu) -> None:
    form = form_of(element, cpu, accumulates=False)
    text = peak._multiply_adds(form)
    assert (DOTS[element] if form.group > 1 else "llvm.fma") in text
    llvmlite.parse_assembly(text).verify()


@pytest.mark.parametrize("element", ["bf16", "i8", "ui8"])
def test_the_limit_of_tiles_is_measured_with_their_instruction(element: str) -> None:
    form = form_of_tiles(element, Cpu(64, 32, bf16_tiles=True, int8_tiles=True))
    text = peak._tile_multiply_adds(form)
    assert text.count(f"call void @{MULTIPLY[element, element]}(") == 4
    llvmlite.parse_assembly(text).verify()


def test_the_limit_of_mixed_work_is_the_time_of_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"f32": 10.0, "i8": 40.0}
    monkeypatch.setattr(peak, "flops_per_second", lambda element="f32": rates[element])
    assert peak.mixed_flops_per_second({"f32": 100, "i8": 0}) == pytest.approx(10)
    assert peak.mixed_flops_per_second({}) == pytest.approx(10)
    assert peak.mixed_flops_per_second({"f32": 100, "i8": 400}) == pytest.approx(500 / 20)


def test_bench_of_bytes_is_held_against_the_rate_of_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bytes.mlir"
    path.write_text("""func.func @main(%a: tensor<64x64xi8>, %b: tensor<64x64xi8>) -> tensor<64x64xi32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi32>
      return %0 : tensor<64x64xi32>
    }""")
    asked = []
    monkeypatch.setattr(peak, "flops_per_second", lambda element="f32": asked.append(element) or 7e9)
    assert main(["bench", str(path), "--seconds=0.01", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert asked == ["i8"]
    assert row["gflops_limit"] == pytest.approx(7 * row["threads"])
