"""Launches in parts: same bits for any number of threads, from many threads at once, after fork and at exit."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.runtime.executor import NativeExecutor, load_native, make_executor
from stablehlo_py.runtime.flatten import SPLIT, flatten
from stablehlo_py.runtime.parts import (
    AWAKE_WORK_PER_PART,
    BYTES_PER_WORK,
    MOST_PARTS,
    WORK_PER_CHUNK,
    WORK_PER_PART,
    awake_parts_of,
    chunk_of,
    cuts,
    parts_of,
    parts_of_bytes,
    thread_count,
)
from stablehlo_py.runtime.plan import plan_memory
from stablehlo_py.runtime.program import ArrayType, Buffer, Copy, Fill, Launch, Program

from .kernels import KERNELS, addresses

needs_native = pytest.mark.skipif(load_native() is None, reason="the native runtime is not built")
KINDS = [pytest.param("native", marks=needs_native), "python"]


def adding(steps: int, kernel: str = "add_i32", work: int = 1 << 40, launches: int = 1, grain: int = 1) -> Program:
    """result = a + launches * b in launches that can be cut."""
    size, plain = 4 * steps, KERNELS[kernel]
    buffers = [Buffer(0, size, "argument", 0), Buffer(1, size, "argument", 1), Buffer(2, size, "result")]
    buffers += [Buffer(3 + i, 64, "temporary") for i in range(plain.scratch)]
    scratch = tuple(range(3, 3 + plain.scratch))
    commands = [Launch(0, (0 if i == 0 else 2, 1, 2, *scratch), 0, steps) for i in range(launches)]
    types = ArrayType((steps,), "int32")
    kernels = (dataclasses.replace(plain, work=work, grain=grain),)
    return Program(tuple(buffers), tuple(commands), kernels, arguments=(types, types), results=(types,))


def made(program: Program, kind: str, threads: int):
    return make_executor(program, addresses(program.kernels[0].name), prefer=kind, threads=threads)


def run(running, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    result = np.full(a.shape, -1, np.int32)
    running.run([a, b], [result])
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ["add_i32", "add_by_scratch"])
@pytest.mark.parametrize("threads", [1, 2, 3, 7, MOST_PARTS])
@pytest.mark.parametrize(("steps", "grain"), [(1, 1), (2, 1), (5, 1), (1000, 1), (1000, 7), (100_000, 1)])
def test_every_step_is_done_once_whatever_the_parts(kind, kernel, threads, steps, grain):
    a, b = np.arange(steps, dtype=np.int32), np.arange(steps, dtype=np.int32)[::-1] * 1000
    b = np.ascontiguousarray(b)
    running = made(adding(steps, kernel, launches=3, grain=grain), kind, threads)
    for _ in range(3):
        np.testing.assert_array_equal(run(running, a, b), a + 3 * b)


@needs_native
@pytest.mark.parametrize("threads", [2, 3])
def test_parts_have_scratch_of_their_own(threads):
    """Each sum goes through one place of scratch, so two parts that shared it would mix their sums."""
    a, b = np.arange(300_000, dtype=np.int32), np.full(300_000, 7, np.int32)
    running = made(adding(len(a), "add_by_scratch"), "native", threads)
    for _ in range(10):
        np.testing.assert_array_equal(run(running, a, b), a + b)


@needs_native
def test_who_has_nothing_left_takes_from_others():
    """The first step waits for the last half of its own share, so it ends only if somebody else does that."""
    steps = 16
    types = ArrayType((steps,), "int32")
    buffers = (Buffer(0, 4 * steps, "argument", 0), Buffer(1, 4 * steps, "result", 0))
    kernel = dataclasses.replace(KERNELS["held_up"], work=1 << 40)
    program = Program(buffers, (Launch(0, (0, 1), 0, steps),), (kernel,), arguments=(types,), results=(types,))
    running = make_executor(program, addresses("held_up"), threads=2)
    for _ in range(20):
        result = np.zeros(steps, np.int32)
        running.run([np.zeros(steps, np.int32)], [result])
        np.testing.assert_array_equal(result, 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2, 3, MOST_PARTS])
@pytest.mark.parametrize("size", [0, 1, 32_768, 32_769, 100_001, 3_000_000])
@pytest.mark.parametrize("shift", [None, 1, 40_000])
def test_each_byte_is_filled_and_copied_once_whatever_the_parts(kind, threads, size, shift, monkeypatch):
    """shift: of a second copy, within the result; one that meets its source moves as if it read all of it first."""
    monkeypatch.setattr("stablehlo_py.runtime.parts.AWAKE_WORK_PER_PART", 1)
    monkeypatch.setattr("stablehlo_py.runtime.parts.WORK_PER_PART", 1)
    whole = size + 50_000
    types = ArrayType((whole,), "uint8")
    commands = [Fill(1, whole, 7), Copy(0, 1, size, source_offset=3, target_offset=5)]
    commands += [Copy(1, 1, size, source_offset=5, target_offset=5 + shift)] if shift else []
    buffers = (Buffer(0, whole, "argument", 0), Buffer(1, whole, "result", 0))
    program = Program(buffers, tuple(commands), (), arguments=(types,), results=(types,))
    running = make_executor(program, [], prefer=kind, threads=threads)
    a, result = np.random.default_rng(0).integers(0, 256, whole, np.uint8), np.zeros(whole, np.uint8)
    wanted = np.full(whole, 7, np.uint8)
    wanted[5 : 5 + size] = a[3 : 3 + size]
    if shift:
        wanted[5 + shift :][:size] = wanted[5:][:size].copy()
    for _ in range(3):
        running.run([a], [result])
        np.testing.assert_array_equal(result, wanted)


def test_small_copies_stay_in_one_part():
    least = BYTES_PER_WORK * AWAKE_WORK_PER_PART
    assert parts_of_bytes(2 * least - 1, 8) == (1, 1)
    assert parts_of_bytes(2 * least, 8) == (2, 1)
    assert parts_of_bytes(2 * BYTES_PER_WORK * WORK_PER_PART, 8) == (8, 2)
    assert parts_of_bytes(1 << 40, 3) == (3, 3)
    assert parts_of_bytes(1 << 40, 1) == (1, 1)


def test_pieces_cover_the_range_once():
    for begin, end, parts in [(0, 10, 3), (5, 6, 1), (2, 9, 7), (0, 2**47, 255)]:
        pieces = list(cuts(begin, end, parts))
        assert [low for low, _ in pieces] == [begin, *[high for _, high in pieces[:-1]]]
        assert pieces[-1][1] == end and all(low < high for low, high in pieces)


@pytest.mark.parametrize(
    ("work", "steps", "threads", "parts", "awake"),
    [
        (0, 8, 8, 1, 1),
        (2 * AWAKE_WORK_PER_PART - 1, 8, 8, 1, 1),
        (2 * AWAKE_WORK_PER_PART, 8, 8, 1, 2),
        (2 * WORK_PER_PART - 1, 8, 8, 1, 8),
        (2 * WORK_PER_PART, 8, 8, 2, 8),
        (100 * WORK_PER_PART, 8, 4, 4, 4),
        (100 * WORK_PER_PART, 3, 4, 3, 3),
        (100 * WORK_PER_PART, 3, 1, 1, 1),
    ],
)
def test_small_work_stays_in_one_part(work, steps, threads, parts, awake):
    program = adding(steps, work=work)
    assert parts_of(program, program.commands[0], threads) == parts
    assert awake_parts_of(program, program.commands[0], threads) == awake
    flat = flatten(program, plan_memory(program), threads)
    assert (flat.code[0] == SPLIT) == (awake > 1)
    if awake > 1:
        assert list(flat.code[-3:-1]) == [awake, parts]


@needs_native
def test_nobody_is_woken_for_little_work():
    """It is cut only while the threads that a larger launch has called are awake."""
    a = np.zeros(1000, np.int32)
    large, little = (made(adding(1000, work=w), "native", 2) for w in (1 << 40, 3 * AWAKE_WORK_PER_PART))
    library = load_native()
    run(large, a, a)
    deadline = time.monotonic() + 10
    while library.shlo_pool_sleepers() < library.shlo_pool_workers():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert library.shlo_pool_awake() == 0
    for _ in range(100):
        run(little, a, a)
    assert library.shlo_pool_sleepers() == library.shlo_pool_workers()


def test_a_kernel_without_range_is_not_cut():
    program = adding(4)
    whole = dataclasses.replace(program, commands=(Launch(0, (0, 1, 2)),))
    assert parts_of(whole, whole.commands[0], 8) == 1


@pytest.mark.parametrize(
    ("work", "steps", "grain", "parts", "chunk"),
    [
        (1 << 40, 3200, 1, 2, 100),  # by the parts
        (1 << 40, 7, 1, 2, 1),
        (10 * WORK_PER_CHUNK, 1000, 1, 2, 100),  # by the work
        (1 << 40, 1000, 200, 2, 250),  # by the grain, and as many for each part
        (1 << 40, 1000, 600, 2, 500),  # each part has one
        (1 << 40, 1000, 1 << 40, 3, 334),
    ],
)
def test_chunks_are_worth_taking(work, steps, grain, parts, chunk):
    program = adding(steps, work=work, grain=grain)
    assert chunk_of(program, program.commands[0], parts) == chunk


def test_scratch_of_parts_stands_behind_the_plan():
    program = adding(100, "add_by_scratch", launches=2)
    plan = plan_memory(program)
    flat = flatten(program, plan, 3)
    assert flat.arena_bytes == plan.arena_bytes + 2 * 64
    temporaries = flat.origins[flat.origins[:, 0] == 3][:, 1]
    assert set(temporaries) == {plan.offsets[3], plan.arena_bytes, plan.arena_bytes + 64}


def test_thread_count(monkeypatch):
    monkeypatch.delenv("STABLEHLO_PY_THREADS", raising=False)
    assert thread_count() == len(os.sched_getaffinity(0))
    assert thread_count(5) == 5
    monkeypatch.setenv("STABLEHLO_PY_THREADS", "3")
    assert thread_count() == 3 and thread_count(2) == 2
    for bad in ("0", "-1", "many", "", "257"):
        monkeypatch.setenv("STABLEHLO_PY_THREADS", bad)
        with pytest.raises(BadInput, match="threads"):
            thread_count()


@needs_native
def test_many_python_threads_at_once():
    """One has the pool, the others do their parts themselves; nobody waits and all are right."""
    a = np.arange(2000, dtype=np.int32)
    running = made(adding(2000, "add_by_scratch", launches=8), "native", 3)
    wrong, start = [], threading.Barrier(6)

    def work(seed: int) -> None:
        start.wait()
        for i in range(100):
            b = np.full(2000, seed * 1000 + i, np.int32)
            if not np.array_equal(run(running, a, b), a + 8 * b):
                wrong.append((seed, i))

    callers = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert not wrong


@needs_native
def test_workers_sleep_when_there_is_nothing_to_do():
    running = made(adding(1000), "native", 3)
    a = np.zeros(1000, np.int32)
    run(running, a, a)
    library = load_native()
    assert library is not None
    workers = library.shlo_pool_workers()
    assert workers >= 2
    for _ in range(1000):  # each waits for one more look; a busy machine may need some
        if library.shlo_pool_sleepers() == workers:
            break
        time.sleep(0.01)
    assert library.shlo_pool_sleepers() == workers
    assert run(running, a, a).sum() == 0  # and they wake, or the caller does it all


@needs_native
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="sets the flag of x86 by glibc")
def test_parts_round_as_the_caller_does():
    """The rounding mode of the calling thread holds in every part, as in one."""
    libm, upward, size = ctypes.CDLL("libm.so.6"), 0x800, 64
    types = ArrayType((size,), "float32")
    buffers = (Buffer(0, 4 * size, "argument", 0), Buffer(1, 4 * size, "result", 0))
    kernel = dataclasses.replace(KERNELS["third_f32"], work=1 << 40)
    program = Program(buffers, (Launch(0, (0, 1), 0, size),), (kernel,), arguments=(types,), results=(types,))
    running = make_executor(program, addresses("third_f32"), threads=4)
    a, result = np.full(size, 5, np.float32), np.empty(size, np.float32)
    found = set()
    libm.fesetround(upward)
    try:
        for _ in range(50):
            running.run([a], [result])
            found.update(result.view(np.int32).tolist())
    finally:
        libm.fesetround(0)
    nearest = int(np.float32(5 / 3).view(np.int32))
    assert found == {nearest + 1}


CHILD = """
import os, sys, threading
import numpy as np
from runtime.test_parts import adding, made, run

a = np.arange(5000, dtype=np.int32)
running = made(adding(5000, "add_by_scratch", launches=4), "native", 3)
right = lambda: np.array_equal(run(running, a, a), 5 * a)
assert right()
"""

FORK = """
done = []
def keep_busy():
    while not done:
        assert right()
busy = threading.Thread(target=keep_busy)
busy.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(right() for _ in range(20)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert right()
done.append(1)
busy.join()
print("forked")
"""

EXIT = """
def for_ever():
    while True:
        run(running, a, a)
threading.Thread(target=for_ever, daemon=True).start()
for _ in range(50):
    assert right()
print("leaving")
"""


def python(text: str) -> subprocess.CompletedProcess:
    """A program in another interpreter that finds the package and this test."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, env=environment)


@needs_native
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_children_of_fork_have_a_pool_of_their_own():
    child = python(CHILD + FORK)
    assert (child.returncode, child.stdout, child.stderr) == (0, "forked\n", "")


@needs_native
def test_exit_while_a_thread_is_computing():
    child = python(CHILD + EXIT)
    assert (child.returncode, child.stdout, child.stderr) == (0, "leaving\n", "")


@needs_native
def test_threads_of_the_compiler_option_reach_the_executor():
    from stablehlo_py.compiler import Options, compile

    exe = compile(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }", options=Options(threads=3)
    )
    assert isinstance(exe.executor, NativeExecutor) and exe.executor.threads == 3
