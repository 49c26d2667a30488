#!/usr/bin/env python3
"""Call programs a great many times from several threads: memory must stay flat, results must be the same bits.

    tools/soak.py                                        1,000,000 calls of a small program, 2,000 of the transformer
    tools/soak.py --small 10000 --large 100 --threads 2  less of it

Exit code 1 when memory grows or a result differs.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402

import stablehlo_py  # noqa: E402
from stablehlo_py.cli.inputs import read_inputs  # noqa: E402

SMALL = """func.func @main(%a: tensor<4x4xf32>, %b: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.tanh %0 : tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}"""
GROWTH = 16 << 20  # bytes that memory may grow by after warming up: what allocators and arenas of threads keep


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def soak(name: str, source: object, calls: int, threads: int) -> bool:
    """Run `calls` calls from `threads` threads; whether all results were equal and memory stayed flat."""
    executable = stablehlo_py.compile(source)
    inputs = read_inputs([], executable.program.arguments, 0)
    expected = [r.tobytes() for r in executable(*inputs)]
    different = [0] * threads

    def work(number: int, count: int) -> None:
        for _ in range(count):
            different[number] += [r.tobytes() for r in executable(*inputs)] != expected

    def run(count: int) -> None:
        workers = [threading.Thread(target=work, args=(i, count // threads)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    run(max(calls // 20, threads))
    before, started = resident(), time.perf_counter()
    run(calls)
    seconds, grown = time.perf_counter() - started, resident() - before
    good = sum(different) == 0 and grown < GROWTH
    print(
        f"{name}: {calls} calls from {threads} threads in {seconds:.1f} s, {sum(different)} results differ, "
        f"memory grew by {grown / 1e6:.2f} MB: {'good' if good else 'BAD'}",
        flush=True,
    )
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", type=int, default=1_000_000)
    parser.add_argument("--large", type=int, default=2_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    np.seterr(all="ignore")
    results = [
        soak("small program", SMALL, options.small, options.threads),
        soak("transformer block", ROOT / "examples" / "transformer.mlir", options.large, options.threads),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
