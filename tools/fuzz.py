"""Random programs, mutated texts, damaged artifacts and absurd sizes, each in a child process; findings are reduced.

    tools/fuzz.py --seed 0 --count 1000 --seconds 600
    tools/fuzz.py --mode texts --count 2000
    tools/fuzz.py --mode artifacts --count 2000
    tools/fuzz.py --mode sizes

Programs are compiled for the CPU and compared with the reference interpreter, those of open shapes in several shapes. The
number of each program is its seed:
`--seed N --count 1` repeats it alone. Exit code 1 when anything was found.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

from stablehlo_py.testing.edits import Program
from stablehlo_py.testing.generate import module_of, other_calls, random_part
from stablehlo_py.testing.mutate import absurd_programs, damaged_artifact, mutated_text
from stablehlo_py.testing.shrink import shrink
from stablehlo_py.testing.store import store, store_bytes
from stablehlo_py.testing.worker import Verdict, Worker

ALIVE = ("ok", "refused")


def main() -> int:
    options = _options()
    started, last_said = time.monotonic(), time.monotonic()
    counts: Counter[str] = Counter()
    findings: list[str] = []
    cases = {"programs": _programs, "texts": _texts, "artifacts": _artifacts, "sizes": _sizes}[options.mode]
    with Worker(seconds=options.run_seconds, memory=options.memory << 30) as worker:
        for name, verdict, many in cases(options, worker):
            counts[verdict.kind] += many
            wanted = ("ok",) if options.mode == "programs" else ALIVE
            if verdict.kind not in wanted:
                findings.append(name)
                print(f"{name}: {verdict.kind}: {verdict.detail[:600]}", flush=True)
            if time.monotonic() - last_said > 60:
                last_said = time.monotonic()
                print(f"... {_told(counts)} in {last_said - started:.0f} s", file=sys.stderr, flush=True)
            if time.monotonic() - started > options.seconds:
                break
    seconds = time.monotonic() - started
    print(
        f"{options.mode} from seed {options.seed}: {_told(counts)} in {seconds:.0f} s, {worker.started} child processes"
    )
    return 1 if findings else 0


def _told(counts: Counter[str]) -> str:
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    return f"{sum(counts.values())} run ({kinds})"


def _programs(options: argparse.Namespace, worker: Worker) -> Iterator[tuple[str, Verdict, int]]:
    """Several graphs in a module, since a compilation costs more than a graph; one by one where the module fails."""
    for first in range(options.seed, options.seed + options.count, options.batch):
        seeds = range(first, min(first + options.batch, options.seed + options.count))
        prefixes = [f"g{seed}_" for seed in seeds]
        together = module_of([random_part(seed, prefix) for seed, prefix in zip(seeds, prefixes, strict=True)])
        verdict = worker.judge(together.text, together.arrays(), other_calls(seeds, prefixes))
        if verdict.kind == "ok":
            yield f"programs {seeds.start} to {seeds.stop - 1}", verdict, len(seeds)
            continue
        alone = [(seed, _alone(seed, options, worker)) for seed in seeds]
        if all(one.kind == "ok" for _, one in alone):
            name = f"programs_{seeds.start}_{seeds.stop - 1}"
            _reduced(name, Program(together.text, tuple(together.arrays())), verdict, options, worker)
            yield name, verdict, len(seeds)
        else:
            for seed, one in alone:
                yield f"program {seed}", one, 1


def _alone(seed: int, options: argparse.Namespace, worker: Worker) -> Verdict:
    case = module_of([random_part(seed)])
    calls = [case.arrays(), *other_calls([seed], [""])]
    verdict = worker.judge(case.text, calls[0], calls[1:])
    if verdict.kind != "ok":
        alone = ((arrays, worker.judge(case.text, arrays)) for arrays in calls)
        arrays, wrong = next(((a, v) for a, v in alone if v.kind != "ok"), (calls[0], verdict))
        _reduced(f"program_{seed}", Program(case.text, tuple(arrays)), wrong, options, worker)
    return verdict


def _reduced(name: str, program: Program, verdict: Verdict, options: argparse.Namespace, worker: Worker) -> None:
    """Store the program as it is and as small as it gets."""
    store(options.findings, name, program, verdict)
    if options.reduce_seconds <= 0:
        return
    last = verdict.detail.splitlines()[-1] if verdict.kind in ("error", "refused") else ""
    mark = re.sub(r"^.*?:\d+:\d+: ", "", last)  # places in the program change with it
    patience, worker.seconds = worker.seconds, min(worker.seconds, max(5.0, 10 * verdict.seconds))

    def check(candidate: Program) -> bool:
        again = worker.judge(candidate.text, list(candidate.arrays))
        return again.kind == verdict.kind and mark in again.detail

    try:
        best = shrink(program, check, seconds=options.reduce_seconds).best
        store(options.findings, f"{name}_reduced", best, worker.judge(best.text, list(best.arrays)))
    finally:
        worker.seconds = patience


def _texts(options: argparse.Namespace, worker: Worker) -> Iterator[tuple[str, Verdict, int]]:
    for seed in range(options.seed, options.seed + options.count):
        text = mutated_text(seed)
        verdict = worker.judge(text.encode("utf-8", "surrogatepass"))
        if verdict.kind not in ALIVE:
            _reduced_text(f"text_{seed}", text, verdict, options, worker)
        yield f"text {seed}", verdict, 1


def _reduced_text(name: str, text: str, verdict: Verdict, options: argparse.Namespace, worker: Worker) -> None:
    store(options.findings, name, Program(text), verdict)
    mark = verdict.detail.splitlines()[-1] if verdict.kind == "error" else ""

    def check(candidate: Program) -> bool:
        again = worker.judge(candidate.text.encode("utf-8", "surrogatepass"))
        return again.kind == verdict.kind and mark in again.detail

    if options.reduce_seconds > 0 and verdict.kind != "hang":
        best = shrink(Program(text), check, seconds=options.reduce_seconds).best
        store(options.findings, f"{name}_reduced", best, verdict)


def _artifacts(options: argparse.Namespace, worker: Worker) -> Iterator[tuple[str, Verdict, int]]:
    for seed in range(options.seed, options.seed + options.count):
        data = damaged_artifact(seed)
        verdict = worker.judge(data)
        if verdict.kind not in ALIVE:
            store_bytes(options.findings, f"artifact_{seed}", data, verdict)
        yield f"artifact {seed}", verdict, 1


def _sizes(options: argparse.Namespace, worker: Worker) -> Iterator[tuple[str, Verdict, int]]:
    for name, text in absurd_programs():
        verdict = worker.judge(text)
        if verdict.kind not in ALIVE:
            store(options.findings, name.replace("^", ""), Program(text[:100_000]), verdict)
        yield f"{name} ({verdict.seconds:.1f} s)", verdict, 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--mode", choices=("programs", "texts", "artifacts", "sizes"), default="programs")
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next ones count on from it")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after this long")
    parser.add_argument("--batch", type=int, default=8, help="graphs in one module (programs)")
    parser.add_argument("--run-seconds", type=float, default=60.0, help="a case that takes longer hangs")
    parser.add_argument(
        "--reduce-seconds", type=float, default=60.0, help="for making a finding smaller; 0 for not at all"
    )
    parser.add_argument("--memory", type=int, default=8, help="GiB of address space of a child")
    parser.add_argument("--findings", type=Path, default=Path("findings"), help="the folder for what is found")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
