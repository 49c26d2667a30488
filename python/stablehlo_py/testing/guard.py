"""An executor that dies or complains where a kernel touches memory beyond its buffers.

Each buffer of a program lies in pages of its own with GUARD inaccessible bytes behind it and before it: it ends at most
ALIGNMENT - 1 bytes before those behind, since kernels may count on where a buffer begins. A read or a write past that
is a signal, so this runs in a child process; the few bytes between are looked at after the run.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np

from stablehlo_py.runtime.executable import Executable
from stablehlo_py.runtime.executor import PythonExecutor, address_of
from stablehlo_py.runtime.program import ALIGNMENT

CANARY = 0xA5
GUARD = 16 * mmap.PAGESIZE  # a row too many or too few should fall within, not into another buffer


class OutOfBounds(Exception):
    """A kernel wrote beyond a buffer."""


class _Guarded:
    """`size` bytes that end at an inaccessible page, or at most ALIGNMENT - 1 bytes before one."""

    def __init__(self, size: int) -> None:
        end = GUARD + -(-max(size, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._map = mmap.mmap(-1, end + GUARD)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        for guard in (0, end):
            if _libc().mprotect(ctypes.c_void_p(base + guard), ctypes.c_size_t(GUARD), 0):
                raise OSError(ctypes.get_errno(), "mprotect failed")
        begin = end - -(-size // ALIGNMENT) * ALIGNMENT
        whole = np.frombuffer(self._map, np.uint8)
        self._rest = (whole[GUARD:begin], whole[begin + size : end])
        for rest in self._rest:
            rest[:] = CANARY
        self.bytes = whole[begin : begin + size]
        self.address = base + begin

    @property
    def intact(self) -> bool:
        return all((rest == CANARY).all() for rest in self._rest)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class GuardedExecutor(PythonExecutor):
    """Runs a program command by command, every buffer between guards; OutOfBounds after a write beside one."""

    def run(self, arguments: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        self.addresses(arguments, self.argument_bytes)
        self.addresses(results, self.result_bytes)
        guarded = [_Guarded(buffer.bytes) for buffer in self.program.buffers]
        contents = {"argument": arguments, "constant": self.constants}
        for buffer, memory in zip(self.program.buffers, guarded, strict=True):
            if buffer.kind in contents:
                memory.bytes[:] = _bytes(contents[buffer.kind][buffer.index])
        self._block(self.program.commands, [memory.address for memory in guarded])
        for buffer, memory in zip(self.program.buffers, guarded, strict=True):
            if not memory.intact:
                raise OutOfBounds(f"a kernel wrote beside buffer {buffer.id}, a {buffer.kind} of {buffer.bytes} bytes")
            if buffer.kind == "result":
                _bytes(results[buffer.index])[:] = memory.bytes


def guarded_call(executable: Executable, arguments: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of an executable's program for C-contiguous arguments, every buffer between guards."""
    old = executable.executor
    kernels = old.kernel_addresses
    executor = GuardedExecutor(
        executable.program, kernels, old.host_calls, threads=old.threads, plan=old.plan, owner=old.owner
    )
    results = tuple(np.empty(ty.shape, ty.numpy) for ty in executable.program.results)
    executor.run(arguments, results)
    return results


def _bytes(array: np.ndarray) -> np.ndarray:
    """The memory of a contiguous array, also of a type that numpy does not know by itself."""
    return np.ctypeslib.as_array((ctypes.c_uint8 * array.nbytes).from_address(address_of(array)))
