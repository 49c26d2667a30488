"""Donated arguments: which result may stand in the memory of which argument."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stablehlo_py.errors import BadInput
from stablehlo_py.records import replace
from stablehlo_py.runtime.plan import Liveness, analyse_liveness
from stablehlo_py.runtime.program import Command, Copy, Fill, Program


def places_of_results(program: Program, donors: Sequence[int]) -> tuple[int, ...]:
    """For each result the donated argument whose memory it takes, or -1.

    It must be of the same type, and nothing may read the argument once the result is being written. A copy of the
    argument into the result is no such read: it does nothing when both are one.
    """
    for number in donors:
        if not 0 <= number < len(program.arguments):
            raise BadInput(f"argument {number} cannot be donated, there are {len(program.arguments)}")
    if not donors:
        return (-1,) * len(program.results)
    liveness = analyse_liveness(_without_copies(program))
    places, free = [], list(dict.fromkeys(donors))
    for result, ty in enumerate(program.results):
        fitting = [n for n in free if program.arguments[n] == ty and _read_before(program, liveness, n, result)]
        # One that the program copies into the result is the one that was meant.
        fitting.sort(key=lambda n: -_copied(program, n, result))
        places.append(fitting[0] if fitting and ty.bytes else -1)
        if places[-1] >= 0:
            free.remove(places[-1])
    return tuple(places)


def sole_owners(arrays: Sequence[np.ndarray], places: Sequence[int]) -> tuple[np.ndarray, ...]:
    """The arrays, with a copy of each donated one that cannot be written or shares memory with another."""
    made = list(arrays)
    for number in places:
        others = (other for i, other in enumerate(made) if i != number)
        if number >= 0 and (
            not made[number].flags.writeable or any(np.may_share_memory(made[number], other) for other in others)
        ):
            made[number] = made[number].copy()
    return tuple(made)


def _without_copies(program: Program) -> Program:
    """The program with whole copies of an argument into a result as mere writes of the result."""
    return replace(program, commands=tuple(_written(program, command) for command in program.commands))


def _written(program: Program, command: Command) -> Command:
    if not isinstance(command, Copy):
        return command
    source, target = program.buffers[command.source], program.buffers[command.target]
    whole = source.bytes == target.bytes == command.bytes
    is_donation = source.kind == "argument" and target.kind == "result"
    return Fill(command.target, command.bytes) if whole and is_donation else command


def _read_before(program: Program, liveness: Liveness, argument: int, result: int) -> bool:
    last = max((liveness.last[b] for b in _buffers(program, "argument", argument)), default=-1)
    return all(last < liveness.first[b] for b in _buffers(program, "result", result))


def _copied(program: Program, argument: int, result: int) -> bool:
    sources, targets = _buffers(program, "argument", argument), _buffers(program, "result", result)
    return any(isinstance(c, Copy) and c.source in sources and c.target in targets for c in program.commands)


def _buffers(program: Program, kind: str, index: int) -> list[int]:
    return [buffer.id for buffer in program.buffers if buffer.kind == kind and buffer.index == index]
