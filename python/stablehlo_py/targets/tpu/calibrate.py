"""python -m stablehlo_py.targets.tpu.calibrate CHIP MEASURED.csv: fit a chip's calibrated constants to measured products.

The CSV has the columns M, N, K and us (microseconds of a bf16 product on the whole chip); lines with # are comments. Four
constants are fitted by the mean absolute percentage error, from several starting points; five folds are held out one after
the other, and the errors on them are what may be quoted. The last line is the Calibration for machine/tpu.py.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stablehlo_py.core.types import element_type
from stablehlo_py.machine.tpu import Calibration, Chip, chip
from stablehlo_py.records import record, replace
from stablehlo_py.simulator.program import Program
from stablehlo_py.simulator.timed import time_program
from stablehlo_py.targets.tpu.gemm import compile_gemm

STARTS = ((1.1, 0.95, 0.95, 0.8), (1.3, 0.98, 0.9, 0.7), (0.9, 0.9, 0.95, 0.75))
LOWEST = (0.1, 0.5, 0.5, 0.3)
HIGHEST = (3.0, 1.0, 1.0, 1.0)
EVALUATIONS = 80
FOLDS = 5


@record
class Row:
    """One measured product and its kernel."""

    m: int
    n: int
    k: int
    microseconds: float
    program: Program


def read_rows(path: Path, chip_name: str) -> list[Row]:
    """The rows of a CSV, each compiled for the chip."""
    bf16 = element_type("bf16")
    with path.open(encoding="utf-8") as lines:
        table = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    rows = []
    for entry in table:
        m, n, k = (int(entry[name]) for name in "MNK")
        rows.append(Row(m, n, k, float(entry["us"]), compile_gemm(m, n, k, bf16, chip_name)))
    return rows


def calibrated(machine: Chip, values: np.ndarray) -> Chip:
    """The chip with constants (launch in microseconds, MXU and HBM efficiency, overlap rate)."""
    launch, mxu, hbm, overlap = (float(value) for value in values)
    changed = replace(
        machine.calibration, launch_seconds=launch * 1e-6, mxu_efficiency=mxu, hbm_efficiency=hbm, overlap_rate=overlap
    )
    return machine.replace(calibration=changed)


def errors(rows: Sequence[Row], machine: Chip) -> np.ndarray:
    """Absolute relative error of each row."""
    ours = np.array([time_program(row.program, machine).seconds(machine) * 1e6 for row in rows])
    return np.abs(ours / np.array([row.microseconds for row in rows]) - 1)


def fit(rows: Sequence[Row], machine: Chip) -> np.ndarray:
    """The constants of least mean error."""
    from scipy.optimize import minimize  # takes a while to import, and only this tool needs it

    def loss(values: np.ndarray) -> float:
        inside = np.clip(values, LOWEST, HIGHEST)
        outside = float(np.abs(values - inside).sum())
        return float(errors(rows, calibrated(machine, inside)).mean()) + 10 * outside

    options = {"maxfev": EVALUATIONS, "xatol": 1e-3, "fatol": 1e-5}
    results = [minimize(loss, start, method="Nelder-Mead", options=options) for start in STARTS]
    return np.clip(min(results, key=lambda result: result.fun).x, LOWEST, HIGHEST)


def cross_validate(rows: Sequence[Row], machine: Chip, seed: int = 0) -> list[np.ndarray]:
    """The errors on each fold, with constants fitted to the others."""
    order = np.random.default_rng(seed).permutation(len(rows))
    held_out = []
    for fold in range(FOLDS):
        test = [rows[i] for i in order[fold::FOLDS]]
        train = [rows[i] for place, i in enumerate(order) if place % FOLDS != fold]
        held_out.append(errors(test, calibrated(machine, fit(train, machine))))
    return held_out


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chip", help="the chip that the rows were measured on, such as v4-megacore")
    parser.add_argument("measured", type=Path, help="the CSV file")
    options = parser.parse_args(arguments)
    machine = chip(options.chip)
    rows = read_rows(options.measured, options.chip)
    folds = cross_validate(rows, machine)
    for number, fold in enumerate(folds):
        print(f"fold {number}: mean error {100 * fold.mean():.1f}% over {len(fold)} products held out")
    together = np.concatenate(folds)
    print(f"held out: mean error {100 * together.mean():.1f}%, median {100 * np.median(together):.1f}%")
    values = fit(rows, machine)
    launch, mxu, hbm, overlap = (float(value) for value in values)
    own = errors(rows, calibrated(machine, values))
    print(f"fitted to all: mean error {100 * own.mean():.1f}%, median {100 * np.median(own):.1f}%")
    result = Calibration(
        launch_seconds=round(launch * 1e-6, 9),
        mxu_efficiency=round(mxu, 3),
        hbm_efficiency=round(hbm, 3),
        overlap_rate=round(overlap, 3),
        fitted_on=f"{len(rows)} bf16 products on {options.chip}",
        folds=tuple(round(100 * float(fold.mean()), 1) for fold in folds),
    )
    print(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
