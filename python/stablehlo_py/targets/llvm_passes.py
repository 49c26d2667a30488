"""LLVM's passes and code generation through llvmlite: without what it leaves behind, and without its lock where it is long.

llvmlite puts one lock around every call. LLVM needs none between threads that share no context, module, pass manager or
target machine, so the calls that take all the time go around it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager


def _unlocked(name: str) -> Callable[..., Any]:  # Any: as ctypes has it
    """A function of llvmlite's library without the lock; with it, where another llvmlite keeps it elsewhere."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


_parse = _unlocked("LLVMPY_ParseAssembly")
_run = _unlocked("LLVMPY_RunNewModulePassManager")
_emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")


def pass_manager(builder: llvm.PassBuilder, names: Sequence[str] = ()) -> ModulePassManager:
    """The passes of these names, such as `sroa`; the builder's whole pipeline when none is given."""
    if not names:
        return builder.getModulePassManager()
    manager = llvm.create_new_module_pass_manager()
    for name in names:
        getattr(manager, f"add_{name}_pass")()
    return manager


def parse(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """The module of LLVM IR text, in a context that no other thread uses."""
    with ffi.OutputString() as problem:
        module = llvm.ModuleRef(_parse(context, ctypes.c_char_p(text.encode()), problem), context)
        if problem:
            module.close()
            raise RuntimeError(f"LLVM cannot read a kernel: {problem}")
    return module


def run_passes(manager: ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Run passes over a module, once: the manager is of no use afterwards."""
    _run(manager, module, builder)
    # llvmlite's own hook for freeing a pass manager is hidden by an empty one that comes first: 200 KB would stay.
    if type(manager)._dispose is ffi.ObjectRef._dispose:
        NewPassManager._dispose(manager)
        manager.detach()


class Buffer(ffi.ObjectRef):
    """A buffer of LLVM's with an object in it."""

    @property
    def data(self) -> bytes:
        return ctypes.string_at(ffi.lib.LLVMPY_GetBufferStart(self), ffi.lib.LLVMPY_GetBufferSize(self))

    def _dispose(self) -> None:
        self._capi.LLVMPY_DisposeMemoryBuffer(self)


def emit(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> Buffer:
    """The relocatable object of a module."""
    with ffi.OutputString() as problem:
        pointer = _emit(machine, module, 1, problem)
        if not pointer:
            raise RuntimeError(str(problem))
    return Buffer(pointer)
