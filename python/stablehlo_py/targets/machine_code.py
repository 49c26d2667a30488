"""Machine code of this computer: what it is made for, and objects as functions in memory. Without the MLIR bindings."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Sequence

from stablehlo_py.errors import BadOption, CompileError
from stablehlo_py.records import record
from stablehlo_py.targets import amx
from stablehlo_py.targets.cpus import may_use_tiles, resolved
from stablehlo_py.targets.elf import Image, NotUnderstoodError, is_understood

ENTRY = "kernel_entry"


@record
class CodegenOptions:
    """What the code of a kernel depends on beside its IR.

    cpu, features: LLVM's names; empty for the host's own, or what is known of a CPU of that name. speed: LLVM's
    optimisation level, 0 to 3.
    """

    cpu: str = ""
    features: str = ""
    speed: int = 2

    def __post_init__(self) -> None:
        if self.speed not in range(4):
            raise BadOption(f"speed is {self.speed!r}", hint="LLVM's levels are 0 to 3; 2 is usual")

    def resolved(self) -> CodegenOptions:
        """With the host's own names filled in."""
        return CodegenOptions(*resolved(self.cpu, self.features), self.speed)


class Code:
    """Loaded objects; their addresses hold as long as this lives.

    is_refused: the operating system does not let the process run them, as it lets it run code without AMX's tiles.
    """

    def __init__(self, objects: Sequence[bytes]) -> None:
        self.is_refused = any(amx.are_in(data) for data in objects) and not may_use_tiles()
        self._owner: object
        self.addresses: list[int]
        if all(is_understood(data) for data in objects):
            try:
                image = Image(objects, ENTRY, _function)
                self._owner, self.addresses = image, image.addresses
                return
            except NotUnderstoodError:
                pass  # what only LLVM's linker knows
        from stablehlo_py.targets.llvm_linker import link  # llvmlite's import takes longer than all the rest

        load_libm()
        self._owner = trackers = [link(data, ENTRY) for data in objects]
        self.addresses = [tracker[ENTRY] for tracker in trackers]


def _function(name: str) -> int:
    """The address of a function of the process, as kernels call them by name."""
    for library in _libraries():
        if (found := getattr(library, name, None)) is not None:
            return ctypes.cast(found, ctypes.c_void_p).value or 0
    raise CompileError(f"a kernel calls {name}, which no library of this process has")


@functools.cache
def _libraries() -> list[ctypes.CDLL]:
    """What the process has loaded, and what kernels call and Python need not have loaded.

    libm has functions such as sin, libgcc the conversions of f16 for a CPU without instructions for them.
    """
    load_libm()
    with contextlib.suppress(OSError):
        return [ctypes.CDLL(None), ctypes.CDLL("libgcc_s.so.1")]
    return [ctypes.CDLL(None)]


@functools.cache
def load_libm() -> None:
    """Make libm's functions known to the process."""
    try:
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        from ctypes.util import find_library  # imports what it starts processes with

        name = find_library("m")
        if name:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
