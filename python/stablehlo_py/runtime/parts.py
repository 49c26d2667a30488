"""Launches in parts: how many threads there are, in how many parts a launch runs, and where it may be cut."""

from __future__ import annotations

import os
from collections.abc import Iterator

from stablehlo_py.errors import BadInput
from stablehlo_py.runtime.program import Launch, Program

VARIABLE = "STABLEHLO_PY_THREADS"
MOST_PARTS = 256  # SHLO_MOST_PARTS of native/runtime/pool.h
WORK_PER_PART = 400_000  # operations: 10 to 100 us. A worker that sleeps needs 20 to come
AWAKE_WORK_PER_PART = 40_000  # some microseconds; a worker that spins needs less than 1
BYTES_PER_WORK = 2  # copied in the time of an operation, by one core from L3
WORK_PER_CHUNK = 10_000  # a microsecond or two; to take a chunk costs some nanoseconds
CHUNKS_PER_PART = 16  # parts end at times that differ by no more than one of them


def thread_count(asked: int | None = None) -> int:
    """The number asked for, else that of the environment, else how many cores this process may use."""
    if asked is None:
        text = os.environ.get(VARIABLE)
        if text is None:
            return min(_cores(), MOST_PARTS)
        try:
            asked = int(text)
        except ValueError:
            raise BadInput(
                f"{VARIABLE}={text} is not a number of threads", hint=f"set it to 1 to {MOST_PARTS}, or do not set it"
            ) from None
    if not 1 <= asked <= MOST_PARTS:
        raise BadInput(f"a program runs on 1 to {MOST_PARTS} threads, not on {asked}")
    return asked


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts_of(program: Program, launch: Launch, threads: int) -> int:
    """How many parts a launch runs in: one for each WORK_PER_PART that it has, as far as there are threads and steps."""
    return _parts(program, launch, threads, WORK_PER_PART)


def awake_parts_of(program: Program, launch: Launch, threads: int) -> int:
    """The same where that many threads are awake; no fewer."""
    return _parts(program, launch, threads, min(AWAKE_WORK_PER_PART, WORK_PER_PART))


def _parts(program: Program, launch: Launch, threads: int, least: int) -> int:
    return max(1, min(threads, launch.end - launch.begin, program.kernels[launch.kernel].work // least))


def parts_of_bytes(count: int, threads: int) -> tuple[int, int]:
    """In how many parts so many bytes are copied or filled: where that many threads are awake, and where they sleep."""
    awake, asleep = (count // (BYTES_PER_WORK * least) for least in (AWAKE_WORK_PER_PART, WORK_PER_PART))
    return max(1, min(threads, awake)), max(1, min(threads, asleep))


def chunk_of(program: Program, launch: Launch, parts: int) -> int:
    """How many steps are taken at once at least where parts take from each other's shares, so that it pays."""
    kernel, steps = program.kernels[launch.kernel], launch.end - launch.begin
    least = max(kernel.grain, -(-WORK_PER_CHUNK * steps // max(kernel.work, 1)), -(-steps // (CHUNKS_PER_PART * parts)))
    if least <= 1:
        return 1
    chunks = max(parts, steps // least // parts * parts)  # as many in each share
    return -(-steps // chunks)


def cuts(begin: int, end: int, parts: int) -> Iterator[tuple[int, int]]:
    """begin..end as contiguous pieces of nearly one size."""
    steps = end - begin
    for part in range(parts):
        yield begin + steps * part // parts, begin + steps * (part + 1) // parts
