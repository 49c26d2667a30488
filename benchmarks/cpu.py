"""Compile time and run time on the CPU, beside XLA's and the machine's limit: `python benchmarks/cpu.py [NAME...]`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measure import Row


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    take_cores(options.threads)
    # Only now: each library makes as many threads as it finds cores when it starts.
    import page
    from measure import measure, measure_limit, start
    from workloads import WORKLOADS

    if options.list:
        print("\n".join(WORKLOADS))
        return 0
    unknown = [name for name in options.names if name not in WORKLOADS]
    if unknown:
        print(f"no workload {', '.join(unknown)}; there are {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    machine = page.machine(options.threads)
    start()
    limit = measure_limit(options.threads)
    print(
        f"{'':<19}{'run us':>11}{'XLA':>11}{'ratio':>8}{'median':>8}{'limit':>7}{'compile ms':>12}{'XLA':>8}{'ratio':>7}"
    )
    rows = []
    for name in options.names or WORKLOADS:
        rows.append(measure(name, WORKLOADS[name], limit, options.seconds))
        print(text_of(rows[-1]), flush=True)
    means = page.means(rows)
    if means:
        print("geometric means, XLA / ours: " + ", ".join(f"{name} {mean:.2f}" for name, mean in means.items()))
    if options.json:
        found = {"machine": machine, "limit": asdict(limit), "means": means, "rows": [asdict(row) for row in rows]}
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    if options.page:
        Path(options.page).write_text(page.text(rows, limit, machine, command_of(options)))
    return 1 if any(row.failure for row in rows) else 0


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="workloads to run; all without one")
    parser.add_argument("--list", action="store_true", help="print the names of the workloads")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="cores of each side")
    parser.add_argument("--seconds", type=float, default=2.0, help="that a workload's calls take, both sides together")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--page", metavar="FILE", help="write the page of results")
    options = parser.parse_args(arguments)
    if not 1 <= options.threads <= len(os.sched_getaffinity(0)):
        parser.error(f"--threads: 1 to {len(os.sched_getaffinity(0))} here")
    return options


def command_of(options: argparse.Namespace) -> str:
    """What to type for the same measurement."""
    return " ".join(
        [f"python benchmarks/cpu.py --threads {options.threads} --seconds {options.seconds:g}", *options.names]
    )


def take_cores(count: int) -> None:
    """The process keeps the first of the cores that it may use, and JAX looks for no other device."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])
    os.environ["STABLEHLO_PY_THREADS"] = str(count)
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def text_of(row: Row) -> str:
    if row.failure:
        return f"{row.name:<19} {row.failure}"
    ran = f"{row.ours.fastest * 1e6:11.1f}{row.xla.fastest * 1e6:11.1f}{row.fastest_ratio:8.2f}{row.median_ratio:8.2f}"
    compiled = f"{row.ours.compile * 1e3:12.0f}{row.xla.compile * 1e3:8.0f}{row.compile_ratio:7.2f}"
    return f"{row.name:<19}{ran}{row.limit / row.ours.fastest:7.0%}{compiled}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
