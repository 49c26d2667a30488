"""One workload on both sides in turn, in one process: agreement first, then compile times, run times and the limit.

Imports the libraries, which count their cores when they start: cpu.py sets the affinity before.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import jax
import numpy as np
from workloads import Workload

import stablehlo_py
from stablehlo_py.targets.cpu import peak

BATCH_SECONDS = 100e-6  # a sample is as many calls: a clock's reading is small beside it
FEWEST = 3  # samples of each side
ELEMENTS = {
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "int8": "i8",
}  # with a rate of their own; the rest as f32
TRIES = 5  # at the limit, on a machine that may do other things too


@dataclass(frozen=True)
class Limit:
    """What `threads` cores reach: multiply-adds in registers by element type, and a copy of arrays larger than the caches."""

    threads: int
    flops_per_second: dict[str, float]
    bytes_per_second: float

    def seconds(self, flops: float, element: str, moved: int) -> tuple[float, str]:
        """The nearer bound of work that multiplies `element`s, and which one it is."""
        return max((flops / self.flops_per_second[element], "compute"), (moved / self.bytes_per_second, "memory"))


@dataclass(frozen=True)
class Side:
    """Seconds of one side: compilation, nothing cached, from the lowered program; the fastest and the median call."""

    compile: float
    fastest: float
    median: float


@dataclass(frozen=True)
class Row:
    """A measured workload; `failure` says why there are no numbers, `difference` is relative to the largest result."""

    name: str
    failure: str = ""
    difference: float = 0.0
    lower: float = 0.0  # JAX's tracing and lowering to StableHLO, which both sides need
    ours: Side = Side(0, 0, 0)
    xla: Side = Side(0, 0, 0)
    flops: float = 0.0
    bytes: int = 0
    element: str = "f32"  # what is multiplied: that of the first argument
    limit: float = 0.0
    bound: str = "memory"

    @property
    def fastest_ratio(self) -> float:
        return self.xla.fastest / self.ours.fastest

    @property
    def median_ratio(self) -> float:
        return self.xla.median / self.ours.median

    @property
    def compile_ratio(self) -> float:
        return self.xla.compile / self.ours.compile


def measure_limit(threads: int) -> Limit:
    """The best of several tries. Cores are taken to compute independently; memory they share: they copy all at once."""
    flops = {e: threads * max(peak.flops_per_second(e) for _ in range(TRIES)) for e in ELEMENTS.values()}
    if threads == 1:
        return Limit(1, flops, max(peak.bytes_per_second() for _ in range(TRIES)))
    source, target = (np.ones((threads, peak.COPY_BYTES // threads), np.uint8) for _ in range(2))
    with ThreadPoolExecutor(threads) as pool:
        copies = [_timed(lambda: list(pool.map(np.copyto, target, source))) for _ in range(5 * TRIES)]
    return Limit(threads, flops, 2 * source.nbytes / min(copies))


def start() -> None:
    """Both sides load and start what they need once in a process, so that no workload's compile time has it."""
    lowered = jax.jit(lambda x: x * 2 + 1).lower(np.ones(8, np.float32))
    stablehlo_py.compile(lowered, cache=False)(np.ones(8, np.float32))
    lowered.compile()(np.ones(8, np.float32))


def measure(name: str, workload: Workload, limit: Limit, seconds: float) -> Row:
    """Compile, compare and time a workload for about `seconds`."""
    arrays = workload.make_arguments()
    jitted = jax.jit(workload.function)
    started = time.perf_counter()
    lowered = jitted.lower(*arrays)
    lower = time.perf_counter() - started
    started = time.perf_counter()
    try:
        executable = stablehlo_py.compile(lowered, cache=False)
    except Exception as error:  # whatever it is, the other rows are still to be measured
        first = (str(error).splitlines() or [""])[0]
        return Row(name, failure=f"not compiled: {type(error).__name__}: {first}", lower=lower)
    our_compile = time.perf_counter() - started
    started = time.perf_counter()
    compiled = lowered.compile()
    xla_compile = time.perf_counter() - started

    there = [jax.device_put(a) for a in arrays]  # XLA's own arrays: its calls copy nothing
    wanted, found = np.asarray(compiled(*there)), executable(*arrays)[0]
    difference = _difference(found, wanted)
    if not difference <= workload.tolerance:
        return Row(name, failure=f"results differ by {difference:.1e}", difference=difference, lower=lower)

    ours, xla = in_turn(lambda: executable(*arrays), lambda: compiled(*there).block_until_ready(), seconds)
    moved = workload.bytes
    if moved is None:
        moved = sum(a.nbytes for a in arrays) + wanted.nbytes
    element = ELEMENTS.get(arrays[0].dtype.name, "f32")
    best, bound = limit.seconds(workload.flops, element, moved)
    return Row(
        name,
        difference=difference,
        lower=lower,
        ours=Side(our_compile, min(ours), statistics.median(ours)),
        xla=Side(xla_compile, min(xla), statistics.median(xla)),
        flops=workload.flops,
        bytes=moved,
        element=element,
        limit=best,
        bound=bound,
    )


def in_turn(one: Callable[[], object], other: Callable[[], object], seconds: float) -> tuple[list[float], list[float]]:
    """Samples of two calls, one after the other, so that both meet the same disturbances."""
    sides = [(call, _batch(call), list[float]()) for call in (one, other)]
    end = time.perf_counter() + seconds
    while len(sides[0][2]) < FEWEST or time.perf_counter() < end:
        for call, batch, samples in sides:
            samples.append(_timed(call, batch) / batch)
    return sides[0][2], sides[1][2]


def _batch(call: Callable[[], object]) -> int:
    call()
    return max(1, int(BATCH_SECONDS / min(_timed(call) for _ in range(3))))


def _timed(call: Callable[[], object], times: int = 1) -> float:
    started = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - started


def _difference(found: np.ndarray, wanted: np.ndarray) -> float:
    """The largest difference, relative to the largest wanted number; infinite for another shape or type."""
    if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
        return float("inf")
    if np.array_equal(found, wanted):
        return 0.0
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    found, wanted = found.astype(wide), wanted.astype(wide)
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), np.finfo(np.float32).tiny))
