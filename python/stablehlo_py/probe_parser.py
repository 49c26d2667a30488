"""What the process of `probe` runs: programs parsed by the C functions of MLIR, one after the other.

    python -I -S probe_parser.py LIBRARY      reads a length (8 bytes) and a program; answers with one byte

A script that is run by its path. It imports neither this package nor the bindings, whose NumPy alone takes longer to
import than all of this, so that it is ready after 30 ms.
"""

import ctypes
import os
import re
import signal
import sys

READY, PARSED, REFUSED = b"a", b"p", b"r"
_USES = 100  # of one context: it never forgets a type
_ARTIFACT = re.compile(rb"StableHLO_v\d")  # as `reading` tells one from other bytecode
# Dialects that come with a pass and by no other way, as `mlir.load_chlo` and `reading.parse_bytecode` have them.
_WITH_PASSES = {b"chlo": b"func.func(convert-torch-to-stablehlo)", b"vhlo": b"stablehlo-legalize-to-vhlo"}


class _Text(ctypes.Structure):
    """An MlirStringRef."""

    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))

    def __init__(self, data: bytes) -> None:
        super().__init__(data, len(data))


class Parser:
    """Parses in a context of its own, by the library of the bindings at `path`."""

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        self._knows_passes = False
        self._registry = self._call("mlirDialectRegistryCreate")
        self._call("mlirRegisterAllDialects", self._registry)
        self._begin()

    def parse(self, data: bytes) -> bool:
        """Whether the program can be parsed; a damaged one may take the process down."""
        if self._uses == _USES:
            self._call("mlirContextDestroy", self._context)
            self._begin()
        self._uses += 1
        for name, step in _WITH_PASSES.items():
            if name in data and name not in self._loaded:
                self._load(name, step)
        if _ARTIFACT.search(data[:64]):
            module = self._call("stablehloDeserializePortableArtifactNoError", _Text(data), self._context)
        else:
            module = self._call("mlirModuleCreateParse", self._context, _Text(data))
        if module:
            self._call("mlirModuleDestroy", module)
        return bool(module)

    def _begin(self) -> None:
        self._context = self._call("mlirContextCreateWithThreading", ctypes.c_bool(False))
        self._call("mlirContextAppendDialectRegistry", self._context, self._registry)
        self._call("mlirDialectHandleRegisterDialect", self._call("mlirGetDialectHandle__stablehlo__"), self._context)
        self._uses, self._loaded = 0, set[bytes]()

    def _load(self, name: bytes, step: bytes) -> None:
        """Have the dialect `name`: run the pass `step`, which makes ops of it, over nothing."""
        if not self._knows_passes:
            self._knows_passes = True
            self._call("mlirRegisterAllStablehloPasses")
            self._call("torchMlirRegisterAllPasses")
        self._loaded.add(name)
        self._call("mlirDialectHandleRegisterDialect", self._call("mlirGetDialectHandle__torch__"), self._context)
        manager = self._call("mlirPassManagerCreate", self._context)
        steps = self._call("mlirPassManagerGetAsOpPassManager", manager)
        said = ctypes.CFUNCTYPE(None, _Text, ctypes.c_void_p)(lambda _text, _data: None)
        self._call("mlirParsePassPipeline", steps, _Text(b"builtin.module(" + step + b")"), said, None)
        nothing = self._call("mlirModuleCreateParse", self._context, _Text(b"func.func private @nothing() { return }"))
        self._call("mlirPassManagerRunOnOp", manager, self._call("mlirModuleGetOperation", nothing))
        self._call("mlirModuleDestroy", nothing)
        self._call("mlirPassManagerDestroy", manager)

    def _call(self, name: str, *arguments: object) -> int:
        """Call a function of C on addresses, as ints, and others; its result is an address, or means nothing."""
        function = getattr(self._library, name)
        function.restype = ctypes.c_void_p
        return function(*(ctypes.c_void_p(each) if isinstance(each, int) else each for each in arguments)) or 0


def main() -> None:
    """Parse what comes, say what came of it, end with the pipe."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash here is an answer, not news
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells the process that asks too
    source, answers = sys.stdin.buffer, os.dup(1)
    os.dup2(2, 1)
    parser = Parser(sys.argv[1])
    os.write(answers, READY)
    while len(head := source.read(8)) == 8:
        parsed = parser.parse(source.read(int.from_bytes(head, "little")))
        os.write(answers, PARSED if parsed else REFUSED)


if __name__ == "__main__":
    main()
