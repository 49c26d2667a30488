"""Objects as functions in memory by LLVM's linker, through llvmlite: for machines whose objects `elf` does not know."""

from __future__ import annotations

import functools
import threading

import llvmlite.binding as llvm

from stablehlo_py.targets.llvm_passes import initialize


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

    def link(self, data: bytes, entry: str) -> llvm.ResourceTracker:
        with self._lock:
            self._count += 1
            library = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(entry).add_current_process()
            return library.link(self._jit, f"kernel{self._count}")


def link(data: bytes, entry: str) -> llvm.ResourceTracker:
    """Load an object; what it gives keeps it, and says where `entry` is. Functions that it calls are the process's."""
    return _linker().link(data, entry)


@functools.cache
def _linker() -> _Linker:
    return _Linker()
