"""The code generator of the LLVM that the MLIR bindings carry, for x86-64 on Linux.

The bindings' library holds all of LLVM, built without the assertions that llvmlite's checks itself with: the same code in
three quarters of the time, and nothing else to load. It exports LLVM's C interface but for target machines; what stands
for those here is LLVM's own C++, by the names that the library exports:

    JITTargetMachineBuilder::detectHost()            -> this machine's CPU and features, and all options with their defaults
    JITTargetMachineBuilder::createTargetMachine()   -> a target machine for what stands in the builder
    CodeGenTargetMachineImpl::addPassesToEmitFile    -> the passes that write a module's relocatable object, or its assembly
    raw_svector_ostream                              -> what they write it to, in memory

C++ promises nothing about where a builder keeps its options, or a stream its text, so the places are those of one release
of the bindings, and with any other `is_here` says no.

To make the passes takes 0.7 ms, a tenth of what they do for a matrix product: they run for one module after the other, as
LLVM's own `llc -compile-twice` has it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from stablehlo_py.installed import bindings_library, installed

RELEASE = "20261001"  # of torch-mlir: whose builder has its options at the places below
_CPU, _FEATURES, _RELOCATION, _CODE_MODEL, _LEVEL, _SIZE = 0x38, 0x58, 0x228, 0x230, 0x238, 0x240
_TRIPLE = 0x00
_VECTOR = 24  # bytes of a SmallVector: the address of its elements, their number and its room
_STRING = 32  # bytes of a std::string: the address of its characters, their number, and room for short ones
_PIC, _SMALL, _DEFAULT_LEVEL = 1, 1, 2  # Reloc::PIC_, CodeModel::Small, CodeGenOptLevel::Default
_ASSEMBLY, _OBJECT = 0, 1  # CodeGenFileType
_FAST_SELECTION, _IS_FAST = 0x510, 0x40  # where a target machine has TargetOptions::EnableFastISel
_IN_MEMORY = 2  # OStreamKind::OK_SVecStream
# What the psABI of x86-64 says of types, in LLVM's words.
LAYOUT = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"


@functools.cache
def is_here() -> bool:
    """Whether the bindings' library is the one that this module knows, on a machine that it knows."""
    if platform.machine() != "x86_64" or not sys.platform.startswith("linux"):
        return False
    return installed("torch_mlir").partition("-")[2].startswith((f"{RELEASE}.", f"{RELEASE}+"))


@functools.cache
def host() -> tuple[str, str]:
    """(cpu, features) of this machine in LLVM's spelling."""
    builder = _host_builder()
    first, end = struct.unpack_from("<QQ", builder, _FEATURES)
    features = [_string_at(place) for place in range(first, end, _STRING)]
    return _string_at(ctypes.addressof(builder) + _CPU), ",".join(features)


class Generator:
    """A target machine: for one module at a time, in any thread. level: LLVM's level of code generation, 0 to 3."""

    def __init__(self, cpu: str, features: str, level: int) -> None:
        library = _library()
        self._kept: list[Any] = []  # Any: buffers that the builder points to
        builder = ctypes.create_string_buffer(_host_builder().raw)
        self._set_string(builder, _CPU, cpu)
        names = [name for name in features.split(",") if name]
        strings = ctypes.create_string_buffer(_STRING * len(names) + 1)
        for number, name in enumerate(names):
            self._set_string(strings, _STRING * number, name)
        first = ctypes.addressof(strings)
        end = first + _STRING * len(names)
        struct.pack_into("<QQQ", builder, _FEATURES, first, end, end)
        struct.pack_into("<IBxxxIBxxxI", builder, _RELOCATION, _PIC, 1, _SMALL, 1, level)
        answer = ctypes.create_string_buffer(16)
        library.create_machine(answer, builder)
        self._machine = _expected(answer, f"LLVM makes no code for CPU {cpu!r}")
        if library.relocation_model(self._machine) != _PIC:
            raise RuntimeError(f"the bindings' library is not that of torch-mlir {RELEASE}")
        self._target = f'target datalayout = "{LAYOUT}"\ntarget triple = "{_triple()}"\n'
        self._level = level
        self._writers: dict[int, _Writer] = {}

    def _set_string(self, memory: ctypes.Array[ctypes.c_char], offset: int, value: str) -> None:
        characters = ctypes.create_string_buffer(value.encode())
        self._kept.append(characters)
        struct.pack_into("<QQ", memory, offset, ctypes.addressof(characters), len(characters) - 1)

    def begin(self, text: str, *, quick: bool = False) -> None:
        """Take the LLVM IR of a module.

        quick: select instructions one by one wherever those behind in their block can be, which takes a fifth off all of
        code generation; the others are selected together with what stands before them, as usual.
        """
        self._text, self._object, self._quick = self._target + text, b"", quick

    def run(self) -> None:
        """Make its object."""
        self._object = self._written(_OBJECT)

    def object(self) -> bytes:
        """The relocatable object."""
        return self._object

    def assembly(self) -> str:
        """The assembly of the same code."""
        return self._written(_ASSEMBLY).decode()

    def _written(self, kind: int) -> bytes:
        if kind not in self._writers:
            self._writers[kind] = _Writer(self._machine, kind)
        if self._level:  # at level 0, adding the passes has chosen it, and at others it has denied it
            options = ctypes.c_ubyte.from_address(self._machine + _FAST_SELECTION)
            options.value = options.value | _IS_FAST if self._quick else options.value & ~_IS_FAST
        return self._writers[kind].write(self._text)

    def end(self) -> None:
        """Be done with the module."""
        self._text, self._object = "", b""


class _Writer:
    """The passes that turn modules into bytes of one kind, one module after the other; it lives as long as the process."""

    def __init__(self, machine: int, kind: int) -> None:
        library = _library()
        # a std::vector of LLVM's for bytes: where they are, their number, and the room, which is what follows at first
        self._bytes = ctypes.create_string_buffer(_VECTOR)
        self._start = ctypes.addressof(self._bytes)
        struct.pack_into("<QQQ", self._bytes, 0, self._start + _VECTOR, 0, 0)
        # a stream: its functions, its kind, no buffer of its own (three pointers), no colours, unbuffered, its vector
        stream = struct.pack("<QIxxxxQQQIIQ", library.stream_table, _IN_MEMORY, 0, 0, 0, 0, 0, self._start)
        self._stream = ctypes.create_string_buffer(stream)
        self._passes = library.create_passes()
        if library.add_passes(machine, self._passes, self._stream, None, kind, True, None):
            raise RuntimeError(f"the bindings' library is not that of torch-mlir {RELEASE}")

    def write(self, text: str) -> bytes:
        """What the passes write of a module of LLVM IR."""
        library = _library()
        with _module(text) as module:
            library.run_passes(self._passes, module)
        first, size = struct.unpack_from("<QQ", self._bytes)
        written = ctypes.string_at(first, size)
        struct.pack_into("<Q", self._bytes, 8, 0)  # the room stays
        return written


@contextlib.contextmanager
def _module(text: str) -> Iterator[ctypes.c_void_p]:
    """A module of LLVM IR in a context of its own."""
    library = _library()
    data = text.encode()
    module, message = ctypes.c_void_p(), ctypes.c_char_p()
    context = library.create_context()
    try:
        buffer = library.create_buffer(data, len(data), b"kernel")
        if library.parse(context, buffer, ctypes.byref(module), ctypes.byref(message)):
            raise RuntimeError(f"LLVM cannot read a kernel: {(message.value or b'').decode(errors='replace')}")
        yield module
        library.dispose_module(module)
    finally:
        library.dispose_context(context)


class _Library:
    """Functions of the bindings' library. The long ones let other threads run; the others are over sooner than that."""

    def __init__(self, path: str) -> None:
        pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
        short, long = ctypes.PyDLL(path), ctypes.CDLL(path)

        # Any: what a function of C takes and gives
        def function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
            found = getattr(library, name)
            found.restype, found.argtypes = result, arguments
            return found

        for part in ("TargetInfo", "Target", "TargetMC", "AsmPrinter"):
            function(short, f"LLVMInitializeX86{part}", None)()
        builder = "_ZN4llvm3orc23JITTargetMachineBuilder"
        self.detect_host = function(short, f"{builder}10detectHostEv", pointer, pointer)
        self.create_machine = function(short, f"{builder}19createTargetMachineEv", pointer, pointer, pointer)
        self.relocation_model = function(short, "_ZNK4llvm13TargetMachine18getRelocationModelEv", ctypes.c_int, pointer)
        # objects point behind the two entries of a table that are not functions
        table = ctypes.cast(short._ZTVN4llvm19raw_svector_ostreamE, pointer).value
        self.stream_table = (table or 0) + 16

        self.create_context = function(short, "LLVMContextCreate", pointer)
        self.dispose_context = function(short, "LLVMContextDispose", None, pointer)
        self.create_buffer = function(short, "LLVMCreateMemoryBufferWithMemoryRangeCopy", pointer, text, size, text)
        self.parse = function(
            long, "LLVMParseIRInContext", ctypes.c_int, pointer, pointer, ctypes.POINTER(pointer), ctypes.POINTER(text)
        )
        self.dispose_module = function(short, "LLVMDisposeModule", None, pointer)

        flag, number = ctypes.c_bool, ctypes.c_int
        self.create_passes = function(short, "LLVMCreatePassManager", pointer)
        self.add_passes = function(
            short,
            "_ZN4llvm24CodeGenTargetMachineImpl19addPassesToEmitFileERNS_6legacy15PassManagerBaseE"
            "RNS_17raw_pwrite_streamEPS4_NS_15CodeGenFileTypeEbPNS_28MachineModuleInfoWrapperPassE",
            flag,
            *(pointer, pointer, pointer, pointer, number, flag, pointer),
        )
        self.run_passes = function(long, "LLVMRunPassManager", number, pointer, pointer)


@functools.cache
def begin_loading() -> None:
    """Load the bindings' library in a thread: 8 ms in which this one may import what does without."""
    if is_here():
        dlopen = ctypes.CDLL(None).dlopen  # ctypes' own, and Python's, keep Python's lock meanwhile
        dlopen.restype = ctypes.c_void_p
        threading.Thread(target=dlopen, args=(os.fsencode(bindings_library()), os.RTLD_NOW)).start()


@functools.cache
def _library() -> _Library:
    return _Library(bindings_library())


@functools.cache
def _host_builder() -> ctypes.Array[ctypes.c_char]:
    """A builder with this machine's names and LLVM's defaults. What it points to is never freed."""
    answer = ctypes.create_string_buffer(_SIZE + 16)
    _library().detect_host(answer)
    model, has_model, code, has_code, level = struct.unpack_from("<IBxxxIBxxxI", answer, _RELOCATION)
    if answer[_SIZE] != b"\0" or has_model or has_code or level != _DEFAULT_LEVEL:
        raise RuntimeError(f"the bindings' library is not that of torch-mlir {RELEASE}: {model} {code}")
    return answer


def _triple() -> str:
    return _string_at(ctypes.addressof(_host_builder()) + _TRIPLE)


def _string_at(place: int) -> str:
    """The value of a std::string."""
    start, length = struct.unpack("<QQ", ctypes.string_at(place, 16))
    return ctypes.string_at(start, length).decode()


def _expected(answer: ctypes.Array[ctypes.c_char], problem: str) -> int:
    """The pointer in an llvm::Expected, whose last bit says that it is an error."""
    pointer, failed = struct.unpack("<QBxxxxxxx", answer.raw)
    if failed & 1:
        raise RuntimeError(problem)
    return pointer
