"""Executors of a Program: the native one, and the Python one that needs no library and is the oracle of the tests."""

from __future__ import annotations

import ctypes
import functools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from stablehlo_py.resources import native_library
from stablehlo_py.runtime.flatten import flatten
from stablehlo_py.runtime.host import HostCallError, HostFunction, call_host, title_of
from stablehlo_py.runtime.parts import cuts, parts_of, thread_count
from stablehlo_py.runtime.plan import Plan, check_plan, plan_memory
from stablehlo_py.runtime.program import (
    ALIGNMENT,
    Case,
    Command,
    Copy,
    Fill,
    Host,
    Index,
    Launch,
    Program,
    View,
    While,
    constant_bytes,
    walk,
)

RUNTIME_VERSION = 8  # shlo_runtime_version of native/runtime/executor.c
NO_MEMORY, HOST_FAILED = 1, 2  # 3: interrupted

_word_at, _HEAD = ctypes.c_size_t.from_address, object.__basicsize__

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
HOST = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))


class Executor:
    """Runs one Program; `run` may be called from several threads at once.

    kernel_addresses: the entry point of each kernel; `owner` keeps their code in memory as long as the executor lives.
    host_calls: a function for each name in program.host_calls. threads: into how many parts a launch is cut at most;
    None is as `parts.thread_count` says.
    """

    def __init__(
        self,
        program: Program,
        kernel_addresses: Sequence[int],
        host_calls: Sequence[HostFunction] = (),
        *,
        threads: int | None = None,
        plan: Plan | None = None,
        owner: object = None,
    ) -> None:
        if len(kernel_addresses) != len(program.kernels) or len(host_calls) != len(program.host_calls):
            raise ValueError(
                f"{len(kernel_addresses)} kernels and {len(host_calls)} host calls are given, "
                f"{len(program.kernels)} and {len(program.host_calls)} are in the program"
            )
        self.program = program
        self.plan = plan or plan_memory(program)
        check_plan(program, self.plan)
        self.kernel_addresses = tuple(kernel_addresses)
        self.owner, self.threads = owner, thread_count(threads)
        self.host_calls = tuple(host_calls)
        self.constants = [_aligned(constant_bytes(constant)) for constant in program.constants]
        self.argument_bytes = [ty.bytes for ty in program.arguments]
        self.result_bytes = [ty.bytes for ty in program.results]
        self.load(kernel_addresses)

    def load(self, kernel_addresses: Sequence[int]) -> None:
        """What a kind of executor makes once of the program and its kernels."""
        raise NotImplementedError

    def run(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Compute results from arguments, all C-contiguous and of the program's types; HostCallError stops it."""
        raise NotImplementedError

    def addresses(self, arrays: Sequence[np.ndarray], sizes: list[int]) -> list[int]:
        """Where the arrays' memory is, after a check that it is what the program will touch."""
        if len(arrays) != len(sizes):
            raise ValueError(f"{len(sizes)} arrays are wanted, not {len(arrays)}")
        found = []
        for array, size in zip(arrays, sizes):  # noqa: B905  checked above; strict costs as much as the rest
            if array.nbytes != size or not array.flags.c_contiguous:
                raise ValueError(f"a contiguous array of {size} bytes is wanted, not {array.shape} of {array.dtype}")
            found.append(address_of(array))
        return found


class NativeExecutor(Executor):
    """Runs the program in native/runtime/executor.c, without the interpreter's lock."""

    def load(self, kernel_addresses: Sequence[int]) -> None:
        program, library = self.program, load_native()
        if library is None:
            raise OSError("the native runtime library is not there")
        self._run = library.shlo_executor_run
        self._host_commands = [command for command in walk(program.commands) if isinstance(command, Host)]
        self._failure = threading.local()
        # The C side holds this callback as a bare pointer; it must not keep the executor alive in turn.
        self._callback = HOST(_host_callback(weakref.ref(self)))
        flat = flatten(program, self.plan, self.threads)
        code, origins = flat.code, flat.origins
        kernels = np.array(kernel_addresses, np.uint64)
        constants = np.array([address_of(constant) for constant in self.constants], np.uint64)
        self.handle = library.shlo_executor_create(
            code.ctypes.data,
            len(code),
            origins.ctypes.data,
            len(origins),
            kernels.ctypes.data,
            len(kernels),
            constants.ctypes.data,
            len(constants),
            flat.arena_bytes,
            self._callback,
            _interrupt(),
        )
        if not self.handle:
            raise MemoryError("no memory for the program")
        self._arenas = library.shlo_executor_arenas
        # Not at exit: a daemon thread may still be inside a call, and the memory goes with the process anyway.
        weakref.finalize(self, library.shlo_executor_destroy, self.handle).atexit = False
        self._arguments, self._results = (
            ctypes.c_void_p * len(program.arguments),
            ctypes.c_void_p * len(program.results),
        )

    def run(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        inputs = self.addresses(arguments, self.argument_bytes)
        outputs = self.addresses(results, self.result_bytes)
        status = self._run(self.handle, self._arguments(*inputs), self._results(*outputs))
        if status:
            raise self.failure(status)

    def failure(self, status: int) -> BaseException:
        """What a call on this thread that ended with a status other than 0 raises."""
        if status == NO_MEMORY:
            return MemoryError(f"no memory for an arena of {self.plan.arena_bytes} bytes")
        return self._failure.__dict__.pop("error") if status == HOST_FAILED else KeyboardInterrupt()

    @property
    def arenas(self) -> int:
        """How many arenas exist: the most calls that ever ran at once."""
        return self._arenas(self.handle)

    def call_host_command(self, number: int, addresses: Sequence[int | None]) -> int:
        """The host command of a number; 1 when it failed, with the error kept for `run` on this thread."""
        try:
            _call_host(self, self._host_commands[number], addresses)
        except BaseException as error:  # KeyboardInterrupt too: nothing may unwind through C
            self._failure.error = error
            return 1
        return 0


class PythonExecutor(Executor):
    """Runs the program's own tree of commands; ten microseconds a command, not ten nanoseconds.

    The parts of a launch run one after the other, so they share its scratch.
    """

    def load(self, kernel_addresses: Sequence[int]) -> None:
        self._kernels = [KERNEL(address) for address in kernel_addresses]

    def run(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        inputs = self.addresses(arguments, self.argument_bytes)
        outputs = self.addresses(results, self.result_bytes)
        arena = _aligned_empty(self.plan.arena_bytes)
        base = address_of(arena)
        memory: list[int] = []
        for buffer in self.program.buffers:
            if buffer.kind == "argument":
                memory.append(inputs[buffer.index])
            elif buffer.kind == "result":
                memory.append(outputs[buffer.index])
            elif buffer.kind == "constant":
                memory.append(address_of(self.constants[buffer.index]))
            else:
                memory.append(base + max(self.plan.offsets[buffer.id], 0))
        self._block(self.program.commands, memory)

    def _block(self, commands: tuple[Command, ...], memory: list[int]) -> None:
        for command in commands:
            match command:
                case Launch(kernel, buffers, begin, end):
                    pointers = (ctypes.c_void_p * len(buffers))(*[memory[buffer] for buffer in buffers])
                    for low, high in cuts(begin, end, parts_of(self.program, command, self.threads)):
                        self._kernels[kernel](ctypes.addressof(pointers), low, high)
                case Copy(source, target, count, source_offset, target_offset):
                    ctypes.memmove(memory[target] + target_offset, memory[source] + source_offset, count)
                case Fill(target, count, value):
                    ctypes.memset(memory[target], value, count)
                case View(target, source, offset, indices):
                    memory[target] = memory[source] + offset + sum(_place(index, memory) for index in indices)
                case While(condition, predicate, body):
                    self._block(condition, memory)
                    while ctypes.c_uint8.from_address(memory[predicate]).value:
                        self._block(body, memory)
                        self._block(condition, memory)
                case Case(index, branches):
                    chosen = ctypes.c_int32.from_address(memory[index]).value
                    self._block(branches[chosen if 0 <= chosen < len(branches) else -1], memory)
                case Host(_, inputs, outputs):
                    _call_host(self, command, [memory[buffer] for buffer in inputs + outputs])


def _place(index: Index, memory: Sequence[int]) -> int:
    """The bytes that an index adds to where a view begins."""
    value = int.from_bytes(ctypes.string_at(memory[index.buffer], index.width), sys.byteorder, signed=index.signed)
    return min(max(value, 0), index.limit) * index.stride


def make_executor(
    program: Program,
    kernel_addresses: Sequence[int],
    host_calls: Sequence[HostFunction] = (),
    *,
    prefer: Literal["native", "python"] = "native",
    threads: int | None = None,
    plan: Plan | None = None,
    owner: object = None,
) -> Executor:
    """The native executor, or with a warning the Python one where the library was not built."""
    native = prefer == "native" and load_native() is not None
    if prefer == "native" and not native:
        _warn_once()
    kind = NativeExecutor if native else PythonExecutor
    return kind(program, kernel_addresses, host_calls, threads=threads, plan=plan, owner=owner)


@functools.cache
def load_native() -> ctypes.CDLL | None:
    """The native runtime, or None when it was not built or is of another version than this package."""
    path = native_library("stablehlo_runtime")
    if path is None:
        return None
    library = ctypes.CDLL(str(path))  # CDLL, not PyDLL: calls release the interpreter's lock
    library.shlo_runtime_version.restype = ctypes.c_int64
    if library.shlo_runtime_version() != RUNTIME_VERSION:
        return None
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    create = library.shlo_executor_create
    create.restype = pointer
    create.argtypes = [*[pointer, integer] * 4, integer, HOST, pointer]
    library.shlo_executor_run.restype = ctypes.c_int32
    library.shlo_executor_run.argtypes = [pointer, pointer, pointer]
    library.shlo_executor_arenas.restype = integer
    library.shlo_executor_arenas.argtypes = [pointer]
    for count in (
        library.shlo_pool_workers,
        library.shlo_pool_sleepers,
        library.shlo_pool_awake,
        library.shlo_blocks_idle,
    ):
        count.restype, count.argtypes = integer, []
    library.shlo_blocks_limit.restype, library.shlo_blocks_limit.argtypes = integer, [integer]
    library.shlo_executor_destroy.restype = None
    library.shlo_executor_destroy.argtypes = [pointer]
    return library


def _interrupt() -> ctypes.Array:
    """shlo_interrupt for Python's signals: Ctrl-C stops a program that loops for ever."""
    python = ctypes.pythonapi
    functions = (python.PyGILState_Ensure, python.PyErr_CheckSignals, python.PyErr_Clear, python.PyGILState_Release)
    return (ctypes.c_void_p * 4)(*[ctypes.cast(function, ctypes.c_void_p).value for function in functions])


@functools.cache
def _warn_once() -> None:
    warnings.warn(
        "the native runtime was not built (no C compiler?): programs run command by command in Python, which is slower",
        RuntimeWarning,
        stacklevel=3,
    )


def address_of(array: np.ndarray) -> int:
    """Where an array's memory starts."""
    # PyArrayObject starts with the data pointer after the object's head, an ABI that numpy keeps; six times faster
    # than array.ctypes.data, which counts when a whole program takes two microseconds.
    return _word_at(id(array) + _HEAD).value


def _aligned_empty(size: int) -> np.ndarray:
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -address_of(memory) % ALIGNMENT
    return memory[start : start + size]


def _aligned(array: np.ndarray) -> np.ndarray:
    if address_of(array) % ALIGNMENT == 0:
        return array
    copy = _aligned_empty(array.size)
    copy[:] = array
    return copy


def _call_host(executor: Executor, command: Host, addresses: Sequence[int | None]) -> None:
    program = executor.program
    sizes = [program.buffers[buffer].bytes for buffer in command.inputs + command.outputs]
    try:
        call_host(executor.host_calls[command.call], addresses, sizes, len(command.inputs))
    except Exception as error:
        raise HostCallError(f"host call {title_of(program.host_calls[command.call])} failed: {error}") from error


def _host_callback(executor: Callable[[], NativeExecutor | None]) -> Callable[..., int]:
    def call(number: int, pointers: ctypes._Pointer) -> int:
        living = executor()
        if living is None:
            return 1
        command = living._host_commands[number]
        return living.call_host_command(number, pointers[: len(command.inputs) + len(command.outputs)])

    return call
