"""Findings on disk: a program, its inputs and what was wrong, each in a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stablehlo_py.testing.edits import Program
from stablehlo_py.testing.worker import Verdict


def write_arrays(path: Path, arrays: Sequence[np.ndarray]) -> None:
    """in0, in1, ...; types that .npz files do not know as unsigned integers of the same width."""
    plain = {
        f"in{i}": a if a.dtype.isbuiltin == 1 else a.view(f"u{a.dtype.itemsize}").astype(f"u{a.dtype.itemsize}")
        for i, a in enumerate(arrays)
    }
    np.savez(path, **plain)  # type: ignore[arg-type] - the keywords are names of arrays


def store(folder: Path, name: str, program: Program, verdict: Verdict) -> Path:
    """name.mlir, name.npz and name.txt in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.mlir"
    path.write_text(program.text)
    if program.arrays:
        write_arrays(path.with_suffix(".npz"), program.arrays)
    path.with_suffix(".txt").write_text(f"{verdict.kind}: {verdict.detail}\n")
    return path


def store_bytes(folder: Path, name: str, data: bytes, verdict: Verdict) -> Path:
    """An input that is no text: name.bin and name.txt."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.bin"
    path.write_bytes(data)
    path.with_suffix(".txt").write_text(f"{verdict.kind}: {verdict.detail}\n")
    return path
