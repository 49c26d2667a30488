"""The executors: commands, control flow, host calls, errors and threads, native against Python."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.runtime import executor as executor_module
from stablehlo_py.runtime.executor import NativeExecutor, PythonExecutor, load_native, make_executor
from stablehlo_py.runtime.host import HostCallError, on_arrays
from stablehlo_py.runtime.plan import PlanError
from stablehlo_py.runtime.program import (
    ArrayType,
    Buffer,
    Case,
    Copy,
    Fill,
    Host,
    Index,
    Launch,
    Program,
    View,
    While,
)

from .kernels import KERNELS, addresses

I32 = ArrayType((4,), "int32")
NAMES = ("add_i32", "tick")
KINDS = [
    pytest.param("native", marks=pytest.mark.skipif(load_native() is None, reason="the native runtime is not built")),
    "python",
]


def executor(program: Program, kind: str, host_calls=()):
    return make_executor(program, addresses(*[k.name for k in program.kernels]), host_calls, prefer=kind)


def run(program: Program, kind: str, *arguments: np.ndarray, host_calls=()) -> list[np.ndarray]:
    results = [np.full(ty.shape, 77, ty.numpy) for ty in program.results]
    executor(program, kind, host_calls).run(list(arguments), results)
    return results


def program(buffers, commands, arguments=1, **fields) -> Program:
    kernels = tuple(KERNELS[name] for name in NAMES)
    return Program(tuple(buffers), tuple(commands), kernels, arguments=(I32,) * arguments, results=(I32,), **fields)


@pytest.mark.parametrize("kind", KINDS)
def test_launch_with_temporary_and_constant(kind):
    """(a + b) + c with the range split in two launches."""
    buffers = [
        Buffer(0, 16, "argument", 0),
        Buffer(1, 16, "argument", 1),
        Buffer(2, 16, "constant", 0),
        Buffer(3, 16, "temporary"),
        Buffer(4, 16, "result", 0),
    ]
    commands = [Launch(0, (0, 1, 3), 0, 4), Launch(0, (3, 2, 4), 0, 1), Launch(0, (3, 2, 4), 1, 4)]
    constant = np.array([100, 200, 300, 400], np.int32)
    made = program(buffers, commands, arguments=2, constants=(constant,))
    a, b = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.int32) * 10
    np.testing.assert_array_equal(run(made, kind, a, b)[0], a + b + constant)


@pytest.mark.parametrize("kind", KINDS)
def test_copy_and_fill_with_offsets(kind):
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "result")]
    commands = [Fill(1, 16, 255), Copy(0, 1, 8, source_offset=4, target_offset=8), Copy(1, 1, 8, 8, 4)]
    result = run(program(buffers, commands), kind, np.array([1, 2, 3, 4], np.int32))[0]
    np.testing.assert_array_equal(result, [-1, 2, 3, 3])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "index", [np.int8(-3), np.uint8(1), np.int16(2), np.uint32(2**31), np.int64(-1), np.uint64(2**63)]
)
def test_view_at_an_index(kind, index):
    """The index counts from 0 to 2, whatever it is; what is read and what is written lie there."""
    width, signed = index.itemsize, index.dtype.kind == "i"
    at = min(max(int(index), 0), 2)
    buffers = [
        Buffer(0, 16, "argument"),
        Buffer(1, 16, "result"),
        Buffer(2, width, "constant"),
        Buffer(3, 8, "view"),
        Buffer(4, 4, "view"),
        Buffer(5, 8, "view"),
    ]
    commands = [
        Fill(1, 16, 0),
        View(3, 0, 0, (Index(2, width, signed, 2, 4),)),
        View(4, 3, 4),
        View(5, 1, 0, (Index(2, width, signed, 2, 4),)),
        Copy(4, 5, 4, target_offset=4),
        Launch(0, (3, 3, 5), 0, 1),
    ]
    made = program(buffers, commands, constants=(np.array(index),))
    result = run(made, kind, np.array([1, 2, 3, 4], np.int32))[0]
    wanted = np.zeros(4, np.int32)
    wanted[at : at + 2] = 2 * (at + 1), at + 2
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize(
    ("commands", "message"),
    [
        ([View(2, 0, 12)], "View of 20 bytes is outside buffer 0"),
        ([View(2, 0, 0, (Index(0, 4, True, 3, 4),))], "View of 20 bytes is outside buffer 0"),
        ([View(2, 0, -1)], "View counts backwards"),
        ([View(1, 0)], "View makes result 1"),
        ([View(2, 0), View(2, 0)], "makes a view in two places"),
        ([View(2, 0, 0, (Index(0, 3, True, 1, 1),))], "an index of 3 bytes"),
        ([View(2, 0), Fill(2, 4)], "Fill writes argument 0"),
    ],
)
def test_unsound_views_are_refused(commands, message):
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "result"), Buffer(2, 8, "view")]
    with pytest.raises(BadInput, match=message):
        executor(program(buffers, [*commands, Copy(0, 1, 16)]), "python")


def test_a_view_is_made_before_it_is_read():
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "result"), Buffer(2, 16, "view")]
    with pytest.raises(PlanError, match="view 2 is read before"):
        executor(program(buffers, [Copy(2, 1, 16), View(2, 0)]), "python")


def test_what_a_view_lies_in_lives_as_long():
    """A temporary that only a view still reads keeps its place."""
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "result"), *(Buffer(i, 16, "temporary") for i in (2, 3))]
    buffers.append(Buffer(4, 16, "view"))
    commands = [Copy(0, 2, 16), View(4, 2), Fill(3, 16, 1), Launch(0, (3, 4, 1), 0, 4)]
    result = run(program(buffers, commands), "python", np.array([1, 2, 3, 4], np.int32))[0]
    np.testing.assert_array_equal(result, np.array([1, 2, 3, 4]) + 0x01010101)


def counted_loop(times: int, inner: int | None = None) -> Program:
    """result = argument * 2 ** (times * inner): a loop that doubles, or one around another."""
    buffers = [
        Buffer(0, 16, "argument"),
        Buffer(1, 16, "result"),
        Buffer(2, 1, "temporary"),
        Buffer(3, 1, "temporary"),
        Buffer(4, 1, "temporary"),
        Buffer(5, 1, "temporary"),
        Buffer(6, 16, "temporary"),
    ]
    double = (Launch(0, (1, 1, 6), 0, 4), Copy(6, 1, 16))
    if inner is not None:
        double = (Fill(4, 1, inner), While((Launch(1, (4, 4, 5)),), 5, double))
    return program(buffers, [Copy(0, 1, 16), Fill(2, 1, times), While((Launch(1, (2, 2, 3)),), 3, double)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("times", "inner"), [(0, None), (1, None), (7, None), (3, 2), (2, 0)])
def test_while(kind, times, inner):
    a = np.array([1, -2, 3, 5], np.int32)
    factor = 2 ** (times * (1 if inner is None else inner))
    np.testing.assert_array_equal(run(counted_loop(times, inner), kind, a)[0], a * factor)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("index", "branch"), [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2), (2**31 - 1, 2), (-(2**31), 2)])
def test_case_out_of_range_takes_the_last_branch(kind, index, branch):
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "result")]
    # The branches have different lengths, so a wrong jump is seen.
    branches = ((Fill(1, 16, 10),), (Fill(1, 16, 0), Fill(1, 16, 11)), (Fill(1, 16, 1), Fill(1, 4, 2), Fill(1, 16, 12)))
    made = program(buffers, [Case(0, branches), Fill(1, 1, 9)])
    result = run(made, kind, np.array([index, 0, 0, 0], np.int32))[0]
    assert result.tobytes() == bytes([9] + [10 + branch] * 15)


def host_program(calls: int = 1) -> Program:
    buffers = [Buffer(0, 16, "argument"), Buffer(1, 16, "temporary"), Buffer(2, 16, "result")]
    commands = [Host(0, (0,), (1,)), Launch(0, (0, 1, 2), 0, 4)] + [Host(0, (0,), (1,))] * (calls - 1)
    return program(buffers, commands, host_calls=("square",))


@pytest.mark.parametrize("kind", KINDS)
def test_host_call(kind):
    a = np.array([1, 2, 3, 4], np.int32)
    square = on_arrays(lambda x: x * x, [I32], [I32])
    np.testing.assert_array_equal(run(host_program(), kind, a, host_calls=[square])[0], a + a * a)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("returned", [np.zeros(3, np.int32), np.zeros(4, np.float32), (), None])
def test_host_call_with_wrong_result_is_an_error(kind, returned):
    a = np.zeros(4, np.int32)
    with pytest.raises(HostCallError, match="square failed: returned"):
        run(host_program(), kind, a, host_calls=[on_arrays(lambda x: returned, [I32], [I32])])


@pytest.mark.parametrize("kind", KINDS)
def test_host_error_stops_the_program_and_the_next_call_is_fine(kind):
    calls = []

    def square(x):
        calls.append(x)
        if len(calls) == 1:
            raise ZeroDivisionError("no")
        return x * x

    running = executor(host_program(calls=3), kind, [on_arrays(square, [I32], [I32])])
    a, result = np.array([1, 2, 3, 4], np.int32), np.full(4, 77, np.int32)
    with pytest.raises(HostCallError, match="host call square failed: no") as caught:
        running.run([a], [result])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert len(calls) == 1 and (result == 77).all()
    running.run([a], [result])
    np.testing.assert_array_equal(result, a + a * a)


@pytest.mark.parametrize("kind", KINDS)
def test_host_inputs_are_read_only(kind):
    def write(inputs, outputs):
        inputs[0][0] = 1

    with pytest.raises(HostCallError, match="read-only"):
        run(host_program(), kind, np.zeros(4, np.int32), host_calls=[write])


@pytest.mark.parametrize("kind", KINDS)
def test_keyboard_interrupt_in_a_host_call_comes_out_as_it_is(kind):
    def interrupted(inputs, outputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(host_program(), kind, np.zeros(4, np.int32), host_calls=[interrupted])


ENDLESS = """
import os, signal, sys, threading
from stablehlo_py.runtime.executor import make_executor
from stablehlo_py.runtime.program import Buffer, Fill, Program, While

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what it runs in the background
loop = While((Fill(0, 1, 1),), 0, ())
endless = make_executor(Program((Buffer(0, 1, "temporary"),), (loop,)), [], prefer=sys.argv[1])
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    endless.run([], [])
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_control_c_stops_an_endless_loop(kind):
    child = subprocess.run([sys.executable, "-c", ENDLESS, kind], capture_output=True, text=True, timeout=60)
    assert (child.returncode, child.stdout, child.stderr) == (0, "stopped\n", "")


@pytest.mark.parametrize("kind", KINDS)
def test_an_executor_may_call_itself_from_a_host_call(kind):
    """f(x) = x + g(x), g(x) = f(x - 1) while x > 0 else 0: a sum."""
    running = None

    def recurse(x):
        if x[0] <= 0:
            return np.zeros_like(x)
        result = np.empty_like(x)
        running.run([x - 1], [result])
        return result

    running = executor(host_program(), kind, [on_arrays(recurse, [I32], [I32])])
    result = np.empty(4, np.int32)
    running.run([np.full(4, 5, np.int32)], [result])
    np.testing.assert_array_equal(result, [15] * 4)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_get_their_own_arenas(kind):
    running = executor(counted_loop(20 if kind == "native" else 5), kind)
    factor = 2 ** (20 if kind == "native" else 5)
    wrong, threads = [], 4
    start = threading.Barrier(threads)

    def work(seed: int) -> None:
        start.wait()
        for i in range(200 if kind == "native" else 10):
            a, result = np.array([seed, i, 1, 2], np.int32), np.empty(4, np.int32)
            running.run([a], [result])
            if not np.array_equal(result, a * factor):
                wrong.append((seed, i))

    pool = [threading.Thread(target=work, args=(seed,)) for seed in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    assert not wrong
    if isinstance(running, NativeExecutor):
        assert 1 <= running.arenas <= threads


@pytest.mark.skipif(load_native() is None, reason="the native runtime is not built")
def test_one_arena_serves_many_calls_and_errors():
    def fail(inputs, outputs):
        raise ValueError

    running = executor(host_program(), "native", [fail])
    for _ in range(50):
        with pytest.raises(HostCallError):
            running.run([np.zeros(4, np.int32)], [np.zeros(4, np.int32)])
    assert running.arenas == 1


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_of_the_wrong_size_are_refused(kind):
    running = executor(counted_loop(1), kind)
    good = np.zeros(4, np.int32)
    for bad in (np.zeros(3, np.int32), np.zeros(8, np.int32)[::2]):
        with pytest.raises(ValueError, match="wanted"):
            running.run([bad], [good])
        with pytest.raises(ValueError, match="wanted"):
            running.run([good], [bad])
    with pytest.raises(ValueError, match="wanted"):
        running.run([], [good])


@pytest.mark.parametrize("kind", KINDS)
def test_zero_sized_buffers(kind):
    empty = ArrayType((0, 3), "float32")
    buffers = (Buffer(0, 0, "argument"), Buffer(1, 0, "temporary"), Buffer(2, 0, "result"), Buffer(3, 0, "constant"))
    commands = (Copy(0, 1, 0), Host(0, (1, 3), (2,)))
    made = Program(buffers, commands, (), (b"",), (empty,), (empty,), ("same",))
    same = on_arrays(lambda x, c: x, [empty, empty], [empty])
    assert run(made, kind, np.zeros((0, 3), np.float32), host_calls=[same])[0].shape == (0, 3)


def test_constants_are_aligned():
    raw = np.arange(65, dtype=np.uint8)[1:]
    made = Program(
        (Buffer(0, 64, "constant"), Buffer(1, 64, "result")),
        (Copy(0, 1, 64),),
        constants=(raw,),
        results=(ArrayType((64,), "uint8"),),
    )
    running = PythonExecutor(made, [])
    assert running.constants[0].ctypes.data % 64 == 0
    np.testing.assert_array_equal(run(made, "python")[0], raw)


def test_missing_library_is_said_once(monkeypatch):
    monkeypatch.setattr(executor_module, "load_native", lambda: None)
    executor_module._warn_once.cache_clear()
    with pytest.warns(RuntimeWarning, match="not built"):
        assert isinstance(executor(counted_loop(1), "native"), PythonExecutor)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        executor(counted_loop(1), "native")


def test_unsound_programs_do_not_get_an_executor():
    unwritten = program(
        [Buffer(0, 16, "argument"), Buffer(1, 16, "result"), Buffer(2, 16, "temporary")], [Copy(2, 1, 16)]
    )
    with pytest.raises(PlanError, match="read before"):
        executor(unwritten, "python")
    writes_argument = program([Buffer(0, 16, "argument"), Buffer(1, 16, "result")], [Fill(0, 16), Fill(1, 16)])
    with pytest.raises(BadInput, match="writes argument"):
        executor(writes_argument, "python")
    with pytest.raises(ValueError, match="host calls"):
        executor(host_program(), "python")
