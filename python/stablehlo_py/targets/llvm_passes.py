"""LLVM's passes and code generation through llvmlite: without what it leaves behind, and without its lock where it is long.

llvmlite puts one lock around every call. LLVM needs none between threads that share no context, module, pass manager or
target machine, so the calls that take all the time go around it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import ModulePassManager, NewPassManager

from stablehlo_py.targets.cpus import host
from stablehlo_py.targets.llvm_literals import fix_literals


def _unlocked(name: str) -> Callable[..., Any]:  # Any: as ctypes has it
    """A function of llvmlite's library without the lock; with it, where another llvmlite keeps it elsewhere."""
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


_parse = _unlocked("LLVMPY_ParseAssembly")
_run = _unlocked("LLVMPY_RunNewModulePassManager")
_emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")


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


class Optimizer:
    """LLVM's passes and code generation for one kernel at a time.

    What it needs for a kernel is made by `begin`, under llvmlite's lock, and `run` goes around that lock: a context, a module
    and a target machine of its own are all that LLVM asks for.
    """

    _module: llvm.ModuleRef | None = None
    _builder: llvm.PassBuilder | None = None
    _manager: ModulePassManager | None = None
    _buffer: Buffer | None = None

    def __init__(self, cpu: str, features: str, level: int, speed: int | None) -> None:
        """level: LLVM's level of code generation; speed: that of its passes, None for none of them."""
        initialize()
        if (cpu, features) == host():  # in the words of llvmlite's LLVM, which may know fewer
            cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        self._machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=features, opt=level, reloc="pic", codemodel="small", jit=False
        )
        layout = str(self._machine.target_data)
        self._target = f'target datalayout = "{layout}"\ntarget triple = "{llvm.get_default_triple()}"\n'
        self._speed = speed

    def begin(self, text: str, *, quick: bool = False) -> None:
        """Take the LLVM IR of a kernel; quick: llvmlite has no such choice."""
        # LLVM's global context keeps what the vectoriser notes of each loop for ever; one of its own goes with the module.
        self._text, self._context = self._target + fix_literals(text), llvm.create_context()
        if self._speed is None:
            return
        # The vectoriser interleaves by itself; unrolling and SLP double the time here and bought nothing in the benchmarks.
        tuning = llvm.create_pipeline_tuning_options(speed_level=self._speed)
        tuning.loop_unrolling = tuning.slp_vectorization = False
        self._builder = llvm.create_pass_builder(self._machine, tuning)
        self._manager = self._builder.getModulePassManager()

    def run(self) -> None:
        """Read the text, optimise and make the object."""
        self._buffer = emit(self._machine, self._optimized())

    def object(self) -> bytes:
        """The relocatable object."""
        assert self._buffer is not None
        return self._buffer.data

    def assembly(self) -> str:
        """The assembly of the same code."""
        return self._machine.emit_assembly(self._optimized())

    def _optimized(self) -> llvm.ModuleRef:
        self._module = parse(self._text, self._context)
        if self._builder is not None:
            assert self._manager is not None
            run_passes(self._manager, self._module, self._builder)
        return self._module

    def end(self) -> None:
        """Free the module now: were it part of a cycle, its context could go before it."""
        if self._module is not None:
            self._module.close()
        self._module = self._builder = self._manager = self._buffer = None


@functools.cache
def initialize() -> None:
    """Make llvmlite's LLVM ready for this computer."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
