"""What a call of a compiled program takes of memory."""

from __future__ import annotations

from stablehlo_py.records import record
from stablehlo_py.runtime.flatten import arena_bytes
from stablehlo_py.runtime.plan import Plan
from stablehlo_py.runtime.program import Program


@record
class MemoryAnalysis:
    """Bytes. temporaries: the arena of one call, which is kept for the next; each call that runs at once has its own.

    peak: the most that one call needs at any time, its arguments and constants included. least_temporaries: the most
    bytes of temporaries that are live at once, below which no plan can get.
    """

    arguments: int
    results: int
    constants: int
    temporaries: int
    least_temporaries: int
    peak: int


def analyse_memory(program: Program, plan: Plan, threads: int) -> MemoryAnalysis:
    """The memory of a program under a plan, run by so many threads."""
    arguments, results = (sum(ty.bytes for ty in side) for side in (program.arguments, program.results))
    constants = sum(buffer.bytes for buffer in program.buffers if buffer.kind == "constant")
    temporaries = arena_bytes(program, plan, threads)
    peak = arguments + results + constants + temporaries
    return MemoryAnalysis(arguments, results, constants, temporaries, plan.lower_bound, peak)
