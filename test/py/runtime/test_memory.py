"""memory_analysis: its numbers, against the program and against what the operating system counts."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from stablehlo_py.runtime.executable import Executable
from stablehlo_py.runtime.executor import load_native, make_executor
from stablehlo_py.runtime.memory import MemoryAnalysis
from stablehlo_py.runtime.program import ArrayType, Buffer, Copy, Fill, Program

from .kernels import addresses
from .test_parts import adding

MEGABYTE = 1 << 20


def chain(size: int, length: int, constant: int = 0) -> Executable:
    """argument -> t0 -> t1 ... -> result by copies: two temporaries are live at once, however long it is."""
    ty = ArrayType((size,), "uint8")
    buffers = [Buffer(0, size, "argument"), Buffer(1, size, "result")]
    buffers += [Buffer(2 + i, size, "temporary") for i in range(length)]
    path = [0, *range(2, 2 + length), 1]
    commands = [Copy(source, target, size) for source, target in itertools.pairwise(path)]
    if constant:
        buffers.append(Buffer(len(buffers), constant, "constant"))
        commands.append(Copy(len(buffers) - 1, 1, constant))
    constants = (np.full(constant, 7, np.uint8),) if constant else ()
    program = Program(tuple(buffers), tuple(commands), (), constants, (ty,), (ty,))
    return Executable(program, make_executor(program, [], threads=4), target="cpu", stages={}, timing={})


def test_each_kind_is_counted():
    found = chain(1024, 5, constant=192).memory_analysis()
    assert found == MemoryAnalysis(
        arguments=1024,
        results=1024,
        constants=192,
        temporaries=2048,
        least_temporaries=2048,
        peak=1024 + 1024 + 192 + 2048,
    )


def test_temporaries_do_not_grow_with_the_program():
    assert chain(4096, 2).memory_analysis() == chain(4096, 100).memory_analysis()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_scratch_counts_once_for_each_part(threads):
    program = adding(1000, "add_by_scratch")
    executor = make_executor(program, addresses("add_by_scratch"), threads=threads)
    exe = Executable(program, executor, target="cpu", stages={}, timing={})
    assert exe.memory_analysis().temporaries == 64 * threads
    assert exe.memory_analysis().least_temporaries == 64


MEASURE = """
import sys
import numpy as np
from runtime.test_memory import chain, memory_in_use

exe = chain(int(sys.argv[1]), 6)
small = np.zeros(1 << 20, np.uint8)
chain(len(small), 2)(small)  # what the first call of all brings in
argument = np.ones(int(sys.argv[1]), np.uint8)
before, _ = memory_in_use()
result = exe(argument)
_, peak = memory_in_use()
del result
for _ in range(5):
    result = exe(argument)
    del result
print(peak - before, memory_in_use()[1] - before)
"""


def memory_in_use() -> tuple[int, int]:
    """Resident bytes of this process: now, and the most there ever were."""
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    now, most = (int(lines[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="asks Linux")
@pytest.mark.skipif(load_native() is None, reason="the native runtime is not built")
def test_the_operating_system_counts_the_same():
    """Temporaries and results are what a first call adds, and further calls add nothing."""
    size = 24 * MEGABYTE
    path = os.pathsep.join(entry for entry in sys.path if entry)
    child = subprocess.run(
        [sys.executable, "-c", MEASURE, str(size)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": path},
        check=True,
    )
    first, later = map(int, child.stdout.split())
    found = chain(size, 6).memory_analysis()
    expected = found.results + found.temporaries
    assert expected == 3 * size
    assert abs(first - expected) < 5 * MEGABYTE  # huge pages round up
    assert later - first < MEGABYTE


def test_an_unused_temporary_takes_nothing():
    ty = ArrayType((64,), "uint8")
    buffers = (Buffer(0, 64, "result"), Buffer(1, 1 << 30, "temporary"))
    program = Program(buffers, (Fill(0, 64, 1),), results=(ty,))
    exe = Executable(program, make_executor(program, []), target="cpu", stages={}, timing={})
    assert exe.memory_analysis().temporaries == 0
