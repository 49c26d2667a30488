#!/usr/bin/env python3
"""Random programs for the TPU-like target: verifier rules, VMEM limits and values of each.

    tools/fuzz_tpu.py --seed 0 --count 2000
    tools/fuzz_tpu.py --seed 0 --count 2000 --large    sizes up to 8192: rules and limits, without values

Programs for which no block fits into their VMEM limit are refused with a message to that end; they are counted apart.
The number of each program is its seed: `--seed N --count 1` repeats it alone. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from stablehlo_py.errors import CompileError
from stablehlo_py.testing.tpu_programs import Case, problems, random_case

TOO_SMALL = re.compile(r"^not compiled: (no blocks of .* fit|.* do not fit) into \d+ bytes of VMEM")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next ones count on from it")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--large", action="store_true", help="compile and check large programs, run none")
    options = parser.parse_args()
    started = time.monotonic()
    kinds: Counter[str] = Counter()
    chips: Counter[str] = Counter()
    bad = exact = refused = 0
    for seed in range(options.seed, options.seed + options.count):
        case = random_case(seed, large=options.large)
        found = _found(case)
        if found and TOO_SMALL.search(found[0]):
            refused += 1
            continue
        kinds[case.kind] += 1
        chips[case.chip] += 1
        exact += case.tolerance == 0 and not case.large
        if found:
            bad += 1
            print(f"program {seed} ({case.kind}, {case.chip}, VMEM limit {case.vmem_limit}): {'; '.join(found)}")
            print(case.text, flush=True)
        if time.monotonic() - started > options.seconds:
            break
    run = sum(kinds.values())
    print(
        f"{run} programs from seed {options.seed}: {bad} with problems, {exact} compared bit by bit;"
        f" {refused} more refused for want of VMEM"
    )
    for counts in (kinds, chips):
        print("  " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    print(f"  {time.monotonic() - started:.0f} s, {time.process_time():.0f} s of CPU time")
    return 1 if bad else 0


def _found(case: Case) -> list[str]:
    try:
        return problems(case)
    except CompileError as error:
        return [f"not compiled: {error}"]
    except Exception as error:  # a fuzzer reports whatever happens and goes on
        return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    sys.exit(main())
