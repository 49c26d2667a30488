"""Compile the transformer block of transformer.mlir, run it, and compare with the stored answer of JAX. Needs no JAX."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

import stablehlo_py

HERE = Path(__file__).parent
TOLERANCE = 1e-5  # of the largest element of the answer


def main() -> int:
    with np.load(HERE / "transformer.npz") as stored:
        arguments = [stored[f"in{i}"] for i in range(sum(name.startswith("in") for name in stored.files))]
        wanted = stored["out0"]

    started = time.perf_counter()
    block = stablehlo_py.compile(HERE / "transformer.mlir", cache=False)
    compile_seconds = time.perf_counter() - started
    (result,) = block(*arguments)
    seconds = []
    for _ in range(20):
        started = time.perf_counter()
        block(*arguments)
        seconds.append(time.perf_counter() - started)

    error = float(np.abs(result.astype(np.float64) - wanted).max())
    relative = error / float(np.abs(wanted).max())
    print(f"transformer block: {len(arguments)} arguments -> {block.signature.results[0]}")
    print(np.array2string(result, precision=5, threshold=20, edgeitems=2))
    print(f"against the stored answer: largest error {error:.2e}, relative {relative:.2e}")
    print(f"compiled in {compile_seconds:.2f} s, runs in {min(seconds) * 1e3:.3f} ms (best of {len(seconds)})")
    if not relative <= TOLERANCE:  # NaN too
        print(f"WRONG: the relative error is above {TOLERANCE:.0e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
