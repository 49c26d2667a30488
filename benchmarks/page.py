"""The page of results: what one run measured, and how to read it."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path
from statistics import geometric_mean

from measure import Limit, Row

from stablehlo_py.targets.cpu.features import host

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
EVEN = 0.97  # a ratio from here on is called even: two runs of the same code differ by as much
VECTORS = ("avx2", "fma", "avx512f", "avx512bf16", "avx512vnni", "amx-int8", "amx-bf16", "neon", "sve")

INTRODUCTION = """\
# Performance on the CPU

`make performance` writes this page from one run; the numbers are of one machine, and yours are others.
"""

HOW = """\
## How to read it

- Both sides run in one process, one after the other in turn, on the same cores, from the same lowered program and with the
  same inputs: ours gets NumPy arrays, XLA its own arrays, so that neither copies its arguments. Results are new arrays in
  both. Only what agrees is timed.
- **µs** is the fastest call, and **ratio** is XLA's time divided by ours, above 1 where we are faster: of the fastest calls,
  and of the medians. On a machine that does other things too, the fastest calls are the steadier of the two; where the
  ratios differ much, something disturbed one side or the threads had to wait.
- **limit** is the share of the machine's limit that each side reaches: the time that the workload's flops, or the bytes of its
  arguments and results, would take at the rates above, whichever is longer, divided by the fastest time. The rate of flops
  is that of the first argument's element type, f32 for those without one. The word says which of the two it is. Shares can
  be above 100%: data that stays in the caches between calls is faster than memory, reading alone is faster than a copy, and
  spectra and Winograd's filters need fewer flops than the sum that is counted for a convolution. Where the share is a few
  percent, the work is something that the two rates do not count: the cost of a call, comparisons, functions such as exp,
  steps that wait for each other.
- **compile ms** is from the lowered program to one that can be called, with nothing cached, once, after both sides have
  compiled something else; JAX's own tracing and lowering, which both need, is not in it. The ratio is again XLA's time
  divided by ours.
"""


def machine(threads: int) -> dict[str, str]:
    """What a reader needs to compare with another machine."""
    cpu, features = host()
    has = {name[1:] for name in features.split(",") if name.startswith("+")}
    vectors = [name for name in VECTORS if name in has]
    if "avx2" in has and "avx512f" not in has:
        vectors.append("no avx512")
    packages = [f"stablehlo_py {_own_version()}"]
    packages += [f"{name} {version(name)}" for name in ("jax", "jaxlib", "torch-mlir", "llvmlite", "numpy")]
    return {
        "CPU": f"{cpu} in LLVM's names, {', '.join(vectors) or 'no vector extension that we look for'}",
        "cores": f"{threads} used by each side, of {os.cpu_count()}",
        "load": f"{os.getloadavg()[0]:.1f} processes on average in the minute before; the numbers of a busy machine say little",
        "versions": ", ".join(packages),
    }


def _own_version() -> str:
    """As pyproject.toml has it: a checkout need not be installed to be measured."""
    found = re.search(r'^version = "(.+)"$', PROJECT.read_text(), re.MULTILINE)
    return found.group(1) if found else "unknown"


def means(rows: list[Row]) -> dict[str, float]:
    """Geometric means of XLA's times divided by ours, over the rows that have times."""
    timed = [row for row in rows if not row.failure]
    if not timed:
        return {}
    return {
        "fastest": geometric_mean(row.fastest_ratio for row in timed),
        "median": geometric_mean(row.median_ratio for row in timed),
        "compile": geometric_mean(row.compile_ratio for row in timed),
    }


def text(rows: list[Row], limit: Limit, machine: dict[str, str], command: str) -> str:
    """The page in Markdown."""
    timed = [row for row in rows if not row.failure]
    even = sum(row.fastest_ratio >= EVEN for row in timed)
    facts = [f"- {name}: {fact}" for name, fact in machine.items()]
    rates = ", ".join(f"{element} {rate / 1e9:.0f}" for element, rate in limit.flops_per_second.items())
    facts.append(
        f"- limit of the cores used: {rates} GFLOP/s (multiply-adds of these in registers), "
        f"{limit.bytes_per_second / 1e9:.1f} GB/s (a copy larger than the caches, read and written)"
    )
    facts.append(f"- command: `{command}`")
    summary = (
        f"{len(timed)} of {len(rows)} workloads ran and agree; {even} are even with XLA:CPU or ahead (ratio of the "
    )
    summary += f"fastest calls at least {EVEN})."
    if timed:
        summary += " Geometric means of the ratios: " + ", ".join(f"{n} {m:.2f}" for n, m in means(rows).items()) + "."
    return "\n".join(
        [INTRODUCTION, *facts, "", summary, "", *_table(timed), "", *_failures(rows), HOW, *_behind(timed)]
    )


def _table(rows: list[Row]) -> list[str]:
    lines = [
        "| workload | ours µs | XLA µs | ratio | of medians | limit, ours | limit, XLA | bound | compile ms | XLA ms | ratio |",
        "|:--|--:|--:|--:|--:|--:|--:|:--|--:|--:|--:|",
    ]
    for row in rows:
        cells = [
            row.name,
            _digits(row.ours.fastest * 1e6),
            _digits(row.xla.fastest * 1e6),
            f"{row.fastest_ratio:.2f}",
            f"{row.median_ratio:.2f}",
            _share(row.limit / row.ours.fastest),
            _share(row.limit / row.xla.fastest),
            row.bound if row.bound == "memory" or row.element == "f32" else f"{row.bound}, {row.element}",
            _digits(row.ours.compile * 1e3),
            _digits(row.xla.compile * 1e3),
            f"{row.compile_ratio:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _failures(rows: list[Row]) -> list[str]:
    found = [f"- `{row.name}`: {row.failure}" for row in rows if row.failure]
    return ["Without numbers:", "", *found, ""] if found else []


def _behind(rows: list[Row]) -> list[str]:
    """Which rows are slower than XLA, and what their limits say about it."""
    slow = sorted((row for row in rows if row.fastest_ratio < EVEN), key=lambda row: row.fastest_ratio)
    late = sorted((row for row in rows if row.compile_ratio < EVEN), key=lambda row: row.compile_ratio)
    lines = ["## Where we are behind", ""]
    lines += [f"- `{row.name}` runs at {row.fastest_ratio:.2f} of XLA's speed: {_reason(row)}." for row in slow]
    if not slow:
        lines.append("- No workload runs slower than XLA's in this run.")
    if late:
        names = ", ".join(f"`{row.name}` {row.compile_ratio:.2f}" for row in late)
        lines.append(f"- Compiling takes longer than XLA's for {len(late)} of {len(rows)} (ratio): {names}.")
    else:
        lines.append("- No workload takes longer to compile than with XLA in this run.")
    return [*lines, ""]


def _reason(row: Row) -> str:
    """As far as the shares tell: which side of the limit is left unused, or that the limit is not what counts."""
    ours, theirs = row.limit / row.ours.fastest, row.limit / row.xla.fastest
    shares = f"{_share(ours)} of the {row.bound} limit against {_share(theirs)}"
    if row.xla.fastest < 20e-6:
        return f"{shares}, in calls so short that the call itself counts"
    if theirs < 0.1:
        return f"{shares}, so the time of both goes into other work than these flops and bytes"
    unit = (
        "arithmetic units wait for our code" if row.bound == "compute" else "memory could deliver more than we ask for"
    )
    return f"{shares}: the {unit}"


def _share(ratio: float) -> str:
    return f"{100 * ratio:.0f}%" if ratio >= 0.01 else "< 1%"


def _digits(number: float) -> str:
    """Three digits, or all before the point."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
