"""`shlo bench` and `shlo run --profile`: how long a program takes, against what this machine can do."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np

from stablehlo_py.cli.inputs import read_inputs, source_of
from stablehlo_py.records import record
from stablehlo_py.runtime.dynamic import DynamicExecutable
from stablehlo_py.runtime.executable import Executable
from stablehlo_py.runtime.profile import Profile, profile
from stablehlo_py.targets.cpu import peak


@record
class Row:
    """One benchmark: seconds of compilation and of the calls, rates at the fastest of them, and this machine's limits.

    gflops_limit: multiply-adds in registers on one core, of the element types that the program computes in, times the
    threads. gbytes_limit: a copy by one core.
    """

    compile_s: float
    runs: int
    fastest_s: float
    median_s: float
    slowest_s: float
    gflops: float
    gbytes: float
    threads: int
    gflops_limit: float
    gbytes_limit: float


def bench(arguments: argparse.Namespace) -> int:
    """Compile without the cache, call until the time is over, print what came out."""
    from stablehlo_py import compile

    source = source_of(arguments)
    started = time.perf_counter()
    executable = compile(source, cache=False)
    compile_s = time.perf_counter() - started
    inputs = read_inputs(arguments.input, executable.signature.arguments, arguments.seed)
    if isinstance(executable, DynamicExecutable):
        executable = executable.specialized(*inputs)
    executable(*inputs)
    seconds = []
    end = time.perf_counter() + arguments.seconds
    while len(seconds) < 5 or (time.perf_counter() < end and len(seconds) < 100_000):
        before = time.perf_counter()
        executable(*inputs)
        seconds.append(time.perf_counter() - before)
    threads = executable.executor.threads
    fastest = min(seconds)
    moved = sum(a.nbytes for a in inputs) + sum(ty.bytes for ty in executable.program.results)
    cost = executable.cost_analysis()
    by_element = {name.removeprefix("flops."): count for name, count in cost.items() if name.startswith("flops.")}
    row = Row(
        compile_s,
        len(seconds),
        fastest,
        statistics.median(seconds),
        max(seconds),
        cost["flops"] / fastest / 1e9,
        moved / fastest / 1e9,
        threads,
        threads * peak.mixed_flops_per_second(by_element) / 1e9,
        peak.bytes_per_second() / 1e9,
    )
    print(json.dumps(asdict(row)) if arguments.json else _text(row))
    return 0


def _text(row: Row) -> str:
    def share(rate: float, limit: float) -> str:
        return f"{100 * rate / limit:.0f}% of {limit:.0f}"

    compute, memory = share(row.gflops, row.gflops_limit), share(row.gbytes, row.gbytes_limit)
    fewer = ["          more than the limit: filters or spectra do fewer than the program's sums count"]
    return "\n".join(
        [
            f"compile   {row.compile_s * 1e3:10.3f} ms, nothing cached",
            f"fastest   {row.fastest_s * 1e3:10.3f} ms",
            f"median    {row.median_s * 1e3:10.3f} ms of {row.runs} calls, slowest {row.slowest_s * 1e3:.3f} ms",
            f"compute   {row.gflops:10.2f} GFLOP/s, {compute} of multiply-adds in registers on {row.threads} threads",
            *(fewer if row.gflops > row.gflops_limit else []),
            f"memory    {row.gbytes:10.2f} GB/s of arguments and results, {memory} that one core copies",
        ]
    )


def profiled(executable: Executable, inputs: list[np.ndarray], trace: str) -> str:
    """A table of the kernels, slowest first; the runs go to `trace` as a Chrome trace when it is given."""
    results = [np.empty(ty.shape, ty.numpy) for ty in executable.program.results]
    arrays = [np.ascontiguousarray(a) for a in inputs]
    found = profile(executable.executor, executable.executor.owner.addresses, arrays, results)  # type: ignore[attr-defined]
    if trace:
        Path(trace).write_text(json.dumps(found.chrome_trace()))
    return _table(found)


def _table(found: Profile) -> str:
    total = sum(k.seconds for k in found.kernels) or 1.0
    lines = [f"{'kernel':40} {'calls':>7} {'ms':>10} {'share':>6} {'us a call':>10} {'GB/s':>8} {'threads':>8}"]
    for k in found.kernels:
        rate = k.bytes * k.calls / k.seconds / 1e9 if k.seconds else 0.0
        lines.append(
            f"{k.name:40.40} {k.calls:7} {k.seconds * 1e3:10.3f} {100 * k.seconds / total:5.1f}% "
            f"{k.seconds / k.calls * 1e6:10.2f} {rate:8.2f} {k.parts:8}"
        )
    whole = f"kernels {total * 1e3:.3f} ms of {found.seconds * 1e3:.3f} ms"
    lines.append(f"{whole}, here on one thread, command by command; else each is shared by so many threads")
    return "\n".join(lines)
