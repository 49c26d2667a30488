"""Memory plans: random programs keep their meaning under them, bad ones are found, big ones are quick."""

from __future__ import annotations

import dataclasses
import time
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_py.runtime.executor import make_executor
from stablehlo_py.runtime.plan import Plan, PlanError, analyse_liveness, check_plan, plan_memory
from stablehlo_py.runtime.program import (
    ArrayType,
    Buffer,
    Case,
    Command,
    Copy,
    Fill,
    Kernel,
    Launch,
    Program,
    While,
    walk,
)

from .kernels import KERNELS, addresses

NAMES = ("mix", "tick", "pick")
MIX, TICK, PICK = range(3)
BYTES = ArrayType((48,), "uint8")


class Maker:
    """Random programs in which every read has a writer before it, with loops, branches and carried buffers."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.buffers = [Buffer(0, 48, "argument"), Buffer(1, 48, "result")]

    def temporary(self, size: int) -> int:
        self.buffers.append(Buffer(len(self.buffers), size, "temporary"))
        return len(self.buffers) - 1

    def mix(self, known: list[int], target: int) -> Command:
        a, b = self.random.choice(known), self.random.choice(known)
        sizes = self.buffers[a].bytes << 20 | self.buffers[b].bytes
        return Launch(MIX, (a, b, target), sizes, self.buffers[target].bytes)

    def block(self, known: list[int], depth: int) -> list[Command]:
        """Commands that add what they surely write to `known`."""
        made: list[Command] = []
        for _ in range(self.random.randint(1, 5)):
            choice = self.random.randrange(6 if depth < 3 else 4)
            if choice == 4:
                made += self.loop(known, depth)
            elif choice == 5:
                made += self.branch(known, depth)
            else:
                writable = [b for b in known if self.buffers[b].kind != "argument"]
                again = choice == 3 and writable
                target = self.random.choice(writable) if again else self.temporary(self.random.choice((1, 5, 64, 200)))
                made.append(self.mix(known, target))
                known.append(target)
        return made

    def loop(self, known: list[int], depth: int) -> list[Command]:
        counter, predicate = self.temporary(1), self.temporary(1)
        condition = [Launch(TICK, (counter, counter, predicate))]
        if self.random.random() < 0.3:
            seen = self.temporary(7)
            condition.append(self.mix(known, seen))
            known.append(seen)
        body = self.block(list(known), depth + 1)
        return [Fill(counter, 1, self.random.randrange(4)), While(tuple(condition), predicate, tuple(body))]

    def branch(self, known: list[int], depth: int) -> list[Command]:
        index, joined = self.temporary(4), self.temporary(9)
        branches = []
        for _ in range(self.random.randint(1, 3)):
            inside = list(known)
            body = self.block(inside, depth + 1)
            branches.append((*body, self.mix(inside, joined)))
        source = self.random.choice(known)
        known.append(joined)
        return [Launch(PICK, (source, index)), Case(index, tuple(branches))]

    def program(self) -> Program:
        known = [0]
        commands = self.block(known, 0) + self.block(known, 0)
        commands += [self.mix(known, 1)]
        for buffer in known:  # every value that is still there reaches the result
            sizes = 48 << 20 | self.buffers[buffer].bytes
            folded = self.temporary(48)
            commands += [Launch(MIX, (1, buffer, folded), sizes, 48), Copy(folded, 1, 48)]
        kernels = tuple(KERNELS[name] for name in NAMES)
        return Program(tuple(self.buffers), tuple(commands), kernels, (), (BYTES,), (BYTES,))


def apart(program: Program) -> Plan:
    """A plan in which no two temporaries share memory."""
    offsets, top = [], 0
    for buffer in program.buffers:
        offsets.append(top if buffer.kind == "temporary" else -1)
        top += 256 if buffer.kind == "temporary" else 0
    return Plan(analyse_liveness(program), tuple(offsets), top)


def outcome(program: Program, plan: Plan, kind: str) -> bytes:
    argument, result = np.arange(48, dtype=np.uint8), np.empty(48, np.uint8)
    make_executor(program, addresses(*NAMES), prefer=kind, plan=plan).run([argument], [result])
    return result.tobytes()


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_sharing_memory_changes_nothing(random):
    program = Maker(random).program()
    plan = plan_memory(program)
    check_plan(program, plan)
    assert plan.lower_bound <= plan.arena_bytes <= sum(256 for buffer in program.buffers)
    wanted = outcome(program, apart(program), "python")
    assert outcome(program, plan, "native") == wanted
    assert outcome(program, plan, "python") == wanted


@settings(max_examples=60, deadline=None)
@given(st.randoms(use_true_random=False))
def test_checker_finds_two_live_buffers_in_one_place(random):
    program = Maker(random).program()
    plan, live = plan_memory(program), analyse_liveness(program)
    placed = [b.id for b in program.buffers if plan.offsets[b.id] >= 0]
    a = random.choice(placed)
    others = [b for b in placed if b != a and live.first[b] <= live.last[a] and live.first[a] <= live.last[b]]
    if not others:
        return
    offsets = list(plan.offsets)
    offsets[a] = offsets[random.choice(others)]
    bad = dataclasses.replace(plan, offsets=tuple(offsets), arena_bytes=plan.arena_bytes + 256)
    with pytest.raises(PlanError, match="overlap"):
        check_plan(program, bad)


def simple(commands: list[Command], temporaries: int) -> Program:
    """Argument 0, result 1, temporaries from 2 on; kernels copy one (0), and add to a buffer in place (1)."""
    kernels = (Kernel("move", 1, 1), Kernel("update", 2, 1), Kernel("test", 1, 1), Kernel("with_scratch", 1, 1, 1))
    buffers = [Buffer(0, 48, "argument"), Buffer(1, 48, "result")]
    buffers += [Buffer(i + 2, 48, "temporary") for i in range(temporaries)]
    return Program(tuple(buffers), tuple(commands), kernels, (), (BYTES,), (BYTES,))


def test_chain_needs_two_places():
    chain = [Launch(0, (0, 2))] + [Launch(0, (i, i + 1)) for i in range(2, 11)] + [Launch(0, (11, 1))]
    plan = plan_memory(simple(chain, 10))
    assert plan.arena_bytes == plan.lower_bound == 2 * 64


def test_temporaries_of_a_loop_body_share_and_carried_ones_live_on():
    body = (Launch(0, (2, 4)), Launch(0, (4, 5)), Launch(0, (5, 6)), Launch(0, (6, 2)))
    program = simple([Launch(0, (0, 2)), While((Launch(2, (2, 3)),), 3, body), Launch(0, (2, 1))], 5)
    live = analyse_liveness(program)
    assert (live.first[2], live.last[2]) == (0, 8)
    assert (live.first[5], live.last[5]) == (4, 5)
    # carried value, and two of the body (the predicate's place is free by then)
    assert plan_memory(program).arena_bytes == 3 * 64


def test_value_from_the_last_iteration_lives_over_the_loop():
    """Buffer 4 is read before it is written in an iteration: the value goes round, so nothing may take its place."""
    body = (Launch(0, (4, 5)), Launch(0, (5, 4)), Launch(0, (0, 6)), Launch(0, (6, 2)))
    program = simple([Launch(0, (0, 2)), Launch(0, (0, 4)), While((Launch(2, (2, 3)),), 3, body), Launch(0, (2, 1))], 5)
    live = analyse_liveness(program)
    assert (live.first[4], live.last[4]) == (1, 8)


def test_branches_share_memory():
    branches = tuple((Launch(0, (0, i)), Launch(0, (i, 1))) for i in (3, 4, 5))
    plan = plan_memory(simple([Launch(2, (0, 2)), Case(2, branches)], 4))
    assert plan.offsets[3] == plan.offsets[4] == plan.offsets[5]


def test_scratch_is_written_not_read():
    program = simple([Launch(3, (0, 1, 2))], 1)
    check_plan(program, plan_memory(program))


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([Launch(0, (2, 1))], "temporary 2 is read before"),
        ([Launch(0, (0, 2))], "result 0 is not written"),
        ([Launch(1, (0, 2, 2)), Launch(0, (2, 1))], "temporary 2 is read before"),
        ([Launch(2, (0, 3)), While((Launch(2, (0, 3)),), 3, (Launch(0, (0, 1)),))], "result 0 is not written"),
        ([Launch(2, (0, 3)), Case(3, ((Launch(0, (0, 1)),), ()))], "result 0 is not written"),
        ([While((), 3, ()), Launch(0, (0, 1))], "temporary 3 is read before"),
        (
            [While((Launch(2, (0, 3)),), 3, (Launch(0, (4, 2)), Launch(0, (0, 4)))), Launch(0, (0, 1))],
            "temporary 4 is read",
        ),
    ],
)
def test_reads_and_results_without_a_writer(commands, message):
    program = simple(commands, 3)
    with pytest.raises(PlanError, match=message):
        check_plan(program, plan_memory(program))


def test_a_result_that_every_branch_writes_is_written():
    program = simple([Launch(2, (0, 2)), Case(2, ((Launch(0, (0, 1)),), (Fill(1, 48),)))], 1)
    check_plan(program, plan_memory(program))


def test_a_plan_for_5000_buffers_takes_less_than_half_a_second():
    random = Random(0)
    sizes = [random.choice((4, 64, 4096, 1 << 20, random.randrange(1, 1 << 16))) for _ in range(5000)]
    buffers = [Buffer(0, 48, "argument"), Buffer(1, 48, "result")]
    buffers += [Buffer(i + 2, size, "temporary") for i, size in enumerate(sizes)]
    commands: list[Command] = [Launch(0, (0, 2))]
    commands += [Launch(1, (random.randrange(max(i - 9, 2), i), i - 1, i)) for i in range(3, len(buffers))]
    program = Program(
        tuple(buffers), (*commands, Copy(2, 1, 4)), (Kernel("a", 1, 1), Kernel("b", 2, 1)), (), (BYTES,), (BYTES,)
    )
    assert len(list(walk(program.commands))) == 5001
    begin = time.process_time()
    plan = plan_memory(program)
    assert time.process_time() - begin < 0.5
    check_plan(program, plan)
    assert plan.arena_bytes <= 1.1 * plan.lower_bound
