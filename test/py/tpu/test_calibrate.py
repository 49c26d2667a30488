"""The tool that fits a chip's constants: it finds those that made the measurements."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.machine.tpu import CHIPS, chip
from stablehlo_py.targets.tpu import calibrate

SHAPES = [
    (64, 384, 512),
    (2048, 768, 768),
    (256, 8192, 64),
    (768, 1536, 2048),
    (4096, 512, 256),
    (16, 512, 2048),
    (1088, 256, 256),
]
TRUE = np.array([1.5, 0.9, 0.8, 0.6])


@pytest.fixture
def measured(tmp_path):
    """A CSV of times that constants other than the chip's own would give."""
    path = tmp_path / "measured.csv"
    path.write_text("# made up\nM,N,K,us\n" + "".join(f"{m},{n},{k},1.0\n" for m, n, k in SHAPES))
    rows = calibrate.read_rows(path, "v6e")
    machine = calibrate.calibrated(chip("v6e"), TRUE)
    times = [1e6 * calibrate.time_program(row.program, machine).seconds(machine) for row in rows]
    lines = [f"{m},{n},{k},{us}\n" for (m, n, k), us in zip(SHAPES, times, strict=True)]
    path.write_text("# made up\nM,N,K,us\n" + "".join(lines))
    return path


def test_the_true_constants_have_no_error(measured):
    rows = calibrate.read_rows(measured, "v6e")
    assert [(row.m, row.n, row.k) for row in rows] == SHAPES
    assert calibrate.errors(rows, calibrate.calibrated(chip("v6e"), TRUE)).max() < 1e-9
    assert calibrate.errors(rows, chip("v6e")).mean() > 0.1


def test_fitting_comes_near_them(measured, monkeypatch):
    monkeypatch.setattr(calibrate, "STARTS", ((1.1, 0.95, 0.95, 0.8),))
    rows = calibrate.read_rows(measured, "v6e")
    values = calibrate.fit(rows, chip("v6e"))
    assert calibrate.errors(rows, calibrate.calibrated(chip("v6e"), values)).mean() < 0.03


def test_the_tool_prints_folds_and_constants(measured, monkeypatch, capsys):
    monkeypatch.setattr(calibrate, "STARTS", ((1.4, 0.9, 0.8, 0.65),))
    monkeypatch.setattr(calibrate, "EVALUATIONS", 6)
    assert calibrate.main(["v6e", str(measured)]) == 0
    printed = capsys.readouterr().out
    assert printed.count("held out") == calibrate.FOLDS + 1
    assert "Calibration(launch_seconds=" in printed


def test_constants_are_shares():
    for machine in CHIPS.values():
        fit = machine.calibration
        assert 0 < fit.launch_seconds < 5e-6
        assert all(0.5 < share <= 1 for share in (fit.mxu_efficiency, fit.hbm_efficiency, fit.overlap_rate))
        assert fit.fitted_on
