"""The native entry and what stands behind it: which arrays it takes, how results own their memory, what a call costs."""

from __future__ import annotations

import dataclasses
import gc
import re
import sys
import threading
import time
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py.runtime import entry
from stablehlo_py.runtime.executable import Executable
from stablehlo_py.runtime.executor import load_native, make_executor
from stablehlo_py.runtime.host import HostCallError
from stablehlo_py.runtime.program import ArrayType, Buffer, Copy, Fill, Host, Launch, Program, While

from .kernels import KERNELS, addresses

needs_entry = pytest.mark.skipif(entry._load() is None, reason="the native entry is not built")


def executable(program: Program, host_calls=()) -> Executable:
    executor = make_executor(program, addresses(*[k.name for k in program.kernels]), host_calls)
    return Executable(program, executor, target="cpu", stages={}, timing={})


def copying(*types: ArrayType) -> Executable:
    """The arguments as results."""
    count = len(types)
    buffers = [Buffer(i, ty.bytes, "argument", i) for i, ty in enumerate(types)]
    buffers += [Buffer(count + i, ty.bytes, "result", i) for i, ty in enumerate(types)]
    commands = tuple(Copy(i, count + i, ty.bytes) for i, ty in enumerate(types))
    return executable(Program(tuple(buffers), commands, arguments=types, results=types))


def adding(steps: int = 4, work: int = 10) -> Executable:
    types = ArrayType((steps,), "int32")
    buffers = (Buffer(0, 4 * steps, "argument", 0), Buffer(1, 4 * steps, "argument", 1), Buffer(2, 4 * steps, "result"))
    kernel = dataclasses.replace(KERNELS["add_i32"], work=work)
    commands = (Launch(0, (0, 1, 2), 0, steps),)
    return executable(Program(buffers, commands, (kernel,), arguments=(types, types), results=(types,)))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 5), (1,) * 12])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint64", "float32", "complex128", "bfloat16", "float8_e4m3fn", "int4"]
)
def test_every_dtype_and_shape_comes_back(dtype, shape):
    ty = ArrayType(shape, dtype)
    exe = copying(ty, ty)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(0, 2, shape).astype(ty.numpy) for _ in range(2)]
    results = exe(*arrays)
    assert isinstance(results, tuple)
    for given, result in zip(arrays, results, strict=True):
        assert type(result) is np.ndarray and result.dtype == given.dtype and result.shape == shape
        assert result.flags.writeable and result.flags.c_contiguous
        np.testing.assert_array_equal(result, given)
    if entry._load() is not None:
        assert type(exe._call(*arrays)) is tuple


@needs_entry
def test_many_arguments():
    exe = copying(*[ArrayType((2,), "float32")] * 100)
    arrays = [np.full(2, i, np.float32) for i in range(100)]
    np.testing.assert_array_equal(np.stack(exe(*arrays)), np.stack(arrays))


class Subclass(np.ndarray):
    pass


@needs_entry
@pytest.mark.parametrize(
    "make",
    [
        lambda a: np.repeat(a, 2)[::2],
        lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(np.int32),
        lambda a: a.view(Subclass),
        lambda a: memoryview(a),
        lambda a: a.astype(np.dtype("int32", metadata={"m": 1})),
    ],
    ids=["strided", "unaligned", "subclass", "buffer", "other dtype object"],
)
def test_what_the_entry_does_not_take_goes_another_way(make):
    exe, a = adding(), np.array([1, -2, 3, 5], np.int32)
    given = make(a)
    assert exe._call(given, given) is None
    (result,) = exe(given, given)
    assert type(result) is np.ndarray
    np.testing.assert_array_equal(result, 2 * a)


def test_arrays_by_dlpack_only():
    class Tensor:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    a = np.array([1, 2, 3, 4], np.int32)
    np.testing.assert_array_equal(adding()(Tensor(a), a)[0], 2 * a)


def test_jax_arrays():
    jnp = pytest.importorskip("jax.numpy")
    a = jnp.arange(4, dtype=jnp.int32)
    np.testing.assert_array_equal(adding()(a, a)[0], 2 * np.arange(4))
    b = jnp.ones(3, jnp.bfloat16)
    (result,) = copying(ArrayType((3,), "bfloat16"))(b)
    assert result.dtype == ml_dtypes.bfloat16 and (result == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([np.zeros(4, np.int32)], "1 arguments given, 2 wanted"),
        ([np.zeros(4, np.int32)] * 3, "3 arguments given, 2 wanted"),
        ([np.zeros(4, np.int32), np.zeros(5, np.int32)], r"argument 1 is int32\[5\], wanted is int32\[4\]"),
        ([np.zeros(4, np.int64), np.zeros(4, np.int32)], r"convert it: array.astype\('int32'\)"),
        ([np.zeros(4, ">i4"), np.zeros(4, np.int32)], "argument 0"),
        ([np.zeros((4, 1), np.int32), np.zeros(4, np.int32)], "argument 0"),
        ([None, np.zeros(4, np.int32)], "argument 0"),
    ],
)
def test_wrong_arguments_are_type_errors(arguments, message):
    with pytest.raises(TypeError, match=message):
        adding()(*arguments)


def test_without_the_entry_calls_are_the_same(monkeypatch):
    monkeypatch.setattr(entry, "_load", lambda: None)
    exe, a = adding(), np.arange(4, dtype=np.int32)
    assert exe._call(a, a) is None
    np.testing.assert_array_equal(exe(a, a)[0], 2 * a)
    with pytest.raises(TypeError, match="argument 1"):
        exe(a, a.astype(np.int64))


def test_host_errors_come_out():
    ty = ArrayType((4,), "int32")
    buffers = (Buffer(0, 16, "argument"), Buffer(1, 16, "result"))
    program = Program(buffers, (Host(0, (0,), (1,)),), arguments=(ty,), results=(ty,), host_calls=("f",))

    def fail(inputs, outputs):
        raise ZeroDivisionError("no")

    exe = executable(program, [fail])
    for _ in range(3):
        with pytest.raises(HostCallError, match="f failed: no"):
            exe(np.zeros(4, np.int32))


@needs_entry
def test_calls_leak_nothing():
    exe, a, b = adding(), np.zeros(4, np.int32), np.zeros(4, np.int64)
    dtype = np.dtype("int32")

    def counts():
        return sys.getrefcount(dtype), sys.getrefcount(a), sys.getrefcount(b), sys.getrefcount(None)

    exe(a, a)
    before = counts()
    for _ in range(1000):
        exe(a, a)
        exe._call(a, b)
        exe._call(a)
    assert all(abs(now - then) < 100 for now, then in zip(counts(), before, strict=True))


@needs_entry
def test_an_executable_dies_with_its_last_name():
    exe = adding()
    gone = weakref.ref(exe)
    exe(np.zeros(4, np.int32), np.zeros(4, np.int32))
    gc.disable()
    try:
        del exe
        assert gone() is None
    finally:
        gc.enable()


def idle() -> int:
    library = load_native()
    assert library is not None
    return library.shlo_blocks_idle()


@pytest.fixture
def no_idle_blocks():
    """Nothing waits, and what is set is set back."""
    library = load_native()
    if entry._load() is None or library is None:
        pytest.skip("the native entry is not built")
    gc.collect()
    limit = library.shlo_blocks_limit(0)
    library.shlo_blocks_limit(limit)
    yield library
    library.shlo_blocks_limit(0)
    library.shlo_blocks_limit(limit)


def test_memory_of_a_large_result_serves_the_next(no_idle_blocks):
    exe = copying(ArrayType((1 << 18,), "float32"))
    a = np.arange(1 << 18, dtype=np.float32)
    (result,) = exe(a)
    place = result.ctypes.data
    assert place % 64 == 0
    view = result[10:20]
    del result
    assert idle() == 0  # the view still needs it
    (other,) = exe(a)
    assert other.ctypes.data != place
    np.testing.assert_array_equal(view, a[10:20])
    del view, other
    assert idle() == 2 * a.nbytes
    (again,) = exe(a)
    assert idle() == a.nbytes
    np.testing.assert_array_equal(again, a)


def test_results_outlive_their_executable(no_idle_blocks):
    exe = copying(ArrayType((1 << 16,), "float32"))
    a = np.arange(1 << 16, dtype=np.float32)
    (result,) = exe(a)
    del exe
    gc.collect()
    np.testing.assert_array_equal(result, a)


def test_idle_memory_is_bounded(no_idle_blocks):
    types = ArrayType((1 << 16,), "float32")
    exe, a = copying(types), np.zeros(1 << 16, np.float32)
    no_idle_blocks.shlo_blocks_limit(3 * a.nbytes)
    results = [exe(a)[0] for _ in range(8)]
    del results
    assert idle() == 3 * a.nbytes
    assert no_idle_blocks.shlo_blocks_limit(a.nbytes) == 3 * a.nbytes
    assert idle() == a.nbytes


def test_threads_share_the_idle_memory(no_idle_blocks):
    exe, wrong = copying(ArrayType((1 << 15,), "int32")), []

    def work(seed: int) -> None:
        for i in range(100):
            (result,) = exe(np.full(1 << 15, seed + i, np.int32))
            if not (result == seed + i).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(1000 * seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_quick():
    assert entry.is_quick(adding(work=100).program)
    assert not entry.is_quick(adding(work=1 << 30).program)
    assert not entry.is_quick(adding(work=0).program), "unknown work may be any"
    loop = While((Fill(0, 1, 0),), 0, ())
    assert not entry.is_quick(Program((Buffer(0, 1, "temporary"),), (loop,)))


@needs_entry
def test_other_threads_run_during_a_long_call():
    """A program that takes long runs without the interpreter's lock."""
    loop = While((Launch(0, (0, 0, 1)),), 1, (Fill(2, 1 << 20, 1),))
    buffers = (Buffer(0, 1, "temporary"), Buffer(1, 1, "temporary"), Buffer(2, 1 << 20, "temporary"))
    exe = executable(Program(buffers, (Fill(0, 1, 255), loop), (KERNELS["tick"],)))
    caller = threading.Thread(target=lambda: [exe() for _ in range(20)])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(10)  # nobody is made to let go of the lock
    steps = 0
    try:
        caller.start()
        while caller.is_alive():
            steps += 1
            time.sleep(0)
    finally:
        sys.setswitchinterval(interval)
        caller.join()
    assert steps > 20


@needs_entry
def test_a_small_call_is_cheap():
    """Half a microsecond on an idle core; here against numpy's own addition, which takes 0.35, as a busy machine must."""
    exe, a = adding(16), np.zeros(16, np.int32)

    def cost(function) -> float:
        start = time.thread_time_ns()
        for _ in range(5000):
            function(a, a)
        return (time.thread_time_ns() - start) / 5000

    pairs = [(cost(exe), cost(np.add)) for _ in range(9)]
    assert min(ours / numpys for ours, numpys in pairs) < 1.6


def test_the_code_of_the_page(capsys):
    page = Path(__file__).parents[3] / "docs/running.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    exec(code, names := {})
    assert (names["result"] == 2).all()
    assert "arguments=2097152, results=1048576" in capsys.readouterr().out
