"""Machine code of this computer: what it is made for, and objects as functions in memory. Without the MLIR bindings."""

from __future__ import annotations

import ctypes
import functools
import threading

import llvmlite.binding as llvm

from stablehlo_py.errors import BadOption
from stablehlo_py.records import record
from stablehlo_py.targets.cpus import resolved

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


@functools.cache
def initialize() -> None:
    """Make LLVM ready for this computer."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # kernels call libm by name; the names are looked up in the process, where Python need not have them
    try:
        ctypes.CDLL("libm.so.6", mode=ctypes.RTLD_GLOBAL)
    except OSError:
        from ctypes.util import find_library  # imports what it starts processes with

        name = find_library("m")
        if name:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)


class Code:
    """Loaded objects; their addresses hold as long as this lives."""

    def __init__(self, objects: list[bytes]) -> None:
        linker = _linker()
        self._trackers = [linker.link(data) for data in objects]
        self.addresses = [tracker[ENTRY] for tracker in self._trackers]


class _Linker:
    """The one JIT of the process; llvmlite's objects are not safe to use from several threads."""

    def __init__(self) -> None:
        initialize()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        # JITLink keeps the sections of an object together. The older linker maps each by itself, and where a process holds
        # large mappings it finds its constants beyond the 2 GiB that an address in the code can span, and aborts.
        self._jit = llvm.create_lljit_compiler(machine, use_jit_link=True)
        self._lock = threading.Lock()
        self._count = 0

    def link(self, data: bytes) -> llvm.ResourceTracker:
        with self._lock:
            self._count += 1
            library = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(ENTRY).add_current_process()
            return library.link(self._jit, f"kernel{self._count}")


@functools.cache
def _linker() -> _Linker:
    return _Linker()
