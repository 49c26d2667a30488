"""benchmarks/: three workloads go through the runner, and what it writes has the promised form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")

ROOT = Path(__file__).parents[2]
NAMES = ["add4x4", "gather", "conv_int8"]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: the runner takes cores away from the one it is in."""
    command = [sys.executable, str(ROOT / "benchmarks" / "cpu.py"), *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any], str]:
    """What one run prints, its JSON and its page."""
    folder = tmp_path_factory.mktemp("benchmarks")
    written = [f"--json={folder / 'run.json'}", f"--page={folder / 'page.md'}"]
    done = run("--threads=1", "--seconds=0.01", *written, *NAMES)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "run.json").read_text()), (folder / "page.md").read_text()


def test_rows_are_consistent(measured):
    _, found, _ = measured
    assert [row["name"] for row in found["rows"]] == NAMES
    for row in found["rows"]:
        assert row["failure"] == ""
        for side in (row["ours"], row["xla"]):
            assert 0 < side["fastest"] <= side["median"]
            assert side["compile"] > 0
    assert found["limit"]["threads"] == 1


def test_bytes_are_of_arguments_and_results_unless_stated(measured):
    add, gather, _ = measured[1]["rows"]
    assert (add["flops"], add["bytes"]) == (16, 3 * 16 * 4)
    assert gather["bytes"] == 32768 * (64 + 64 + 1) * 4  # not the whole table of 65536 rows
    limit = measured[1]["limit"]
    assert gather["bound"] == "memory"
    assert gather["limit"] == pytest.approx(gather["bytes"] / limit["bytes_per_second"])


def test_flops_are_held_against_the_rate_of_their_elements(measured):
    _, found, page = measured
    rates = found["limit"]["flops_per_second"]
    assert list(rates) == ["f32", "f64", "bf16", "i8"]
    conv = found["rows"][2]
    times = {"compute": conv["flops"] / rates["i8"], "memory": conv["bytes"] / found["limit"]["bytes_per_second"]}
    bound = max(times, key=lambda name: times[name])  # where AMX has tiles for bytes, memory
    assert (conv["element"], conv["bound"]) == ("i8", bound)
    assert conv["limit"] == pytest.approx(times[bound])
    assert "| compute, i8 |" in page or bound == "memory"
    assert f"i8 {rates['i8'] / 1e9:.0f} GFLOP/s" in page


def test_means_are_geometric(measured):
    _, found, _ = measured
    ratios = [row["xla"]["fastest"] / row["ours"]["fastest"] for row in found["rows"]]
    assert found["means"]["fastest"] == pytest.approx((ratios[0] * ratios[1] * ratios[2]) ** (1 / 3))


def test_page_has_machine_table_and_text(measured):
    _, found, page = measured
    headings = [line for line in page.splitlines() if line.startswith("#")]
    assert headings == ["# Performance on the CPU", "## How to read it", "## Where we are behind"]
    for name, fact in found["machine"].items():
        assert f"- {name}: {fact}" in page
    table = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("|")]
    assert {len(row) for row in [table[0], *table[2:]]} == {11}
    assert [row[0] for row in table[2:]] == NAMES
    assert f"fastest {found['means']['fastest']:.2f}" in page


def test_page_names_what_is_behind(measured):
    _, found, page = measured
    behind = page.partition("## Where we are behind")[2]
    for row in found["rows"]:
        slower = row["xla"]["fastest"] / row["ours"]["fastest"] < 0.97
        assert (f"`{row['name']}` runs at" in behind) == slower


def test_list_names_workloads_of_each_kind():
    names = run("--list").stdout.split()
    assert len(names) == len(set(names)) >= 30
    assert {"scalar_add", "matmul1024_bf16", "softmax", "conv_int8", "sort1M", "transformer_block"} <= set(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["nonsense"], "no workload nonsense; there are scalar_add"), (["--threads=0"], "--threads: 1 to ")],
)
def test_wrong_arguments(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
