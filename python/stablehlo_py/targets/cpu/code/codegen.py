"""Objects of kernels from their LLVM IR, without a system compiler.

Most kernels need no pass of LLVM's: the bindings' own LLVM makes their code. Those whose loops LLVM is to vectorise run through
its passes first, by llvmlite, which also stands in where the bindings' library is not known.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

from stablehlo_py.targets import code_generator
from stablehlo_py.targets.cpu.code.kernel_text import QUICK, READY
from stablehlo_py.targets.machine_code import CodegenOptions

# LLVM's level of code generation for each speed: what 2 has more than 1 is a second scheduling, which no core here needs.
CODE_LEVELS = (0, 1, 1, 3)


class Maker(Protocol):
    """What makes code of one kernel after the other."""

    def begin(self, text: str, *, quick: bool = False) -> None:
        """Take the LLVM IR of a kernel; quick: select its instructions fast, where that can be chosen."""
        ...

    def run(self) -> None:
        """Make its object: the long part, which any thread may do."""
        ...

    def object(self) -> bytes:
        """The relocatable object."""
        ...

    def assembly(self) -> str:
        """The assembly of the same code, in place of `run`."""
        ...

    def end(self) -> None:
        """Be done with the kernel."""
        ...


class Making:
    """The object of a kernel while it is made: `run` is the long part, which any thread may do."""

    _error: Exception | None = None

    def __init__(self, text: str, options: CodegenOptions) -> None:
        options = options.resolved()
        if _stand_ins:
            text, options = _stand_ins[-1](text, options)
        self._key: _Key = (options, text.startswith(READY))
        self._maker = _take(self._key)
        self._maker.begin(text, quick=options.speed < 3 and text.startswith(QUICK))

    def run(self) -> None:
        """Read the text, optimise and make the object."""
        try:
            self._maker.run()
        except Exception as error:  # raised where the object is asked for
            self._error = error

    def object(self) -> bytes:
        """The relocatable object, once `run` has returned."""
        if self._error is not None:
            raise self._error
        return self._maker.object()

    def assembly(self) -> str:
        """The text of the same code; needs no `run`."""
        return self._maker.assembly()

    def close(self) -> None:
        """Leave what has made it to the next kernel."""
        self._error = None
        self._maker.end()
        _free.setdefault(self._key, []).append(self._maker)


def make_object(text: str, options: CodegenOptions) -> bytes:
    """A relocatable object from LLVM IR text."""
    with contextlib.closing(Making(text, options)) as making:
        making.run()
        return making.object()


def make_assembly(text: str, options: CodegenOptions) -> str:
    """The assembly of the same code."""
    with contextlib.closing(Making(text, options)) as making:
        return making.assembly()


StandIn = Callable[[str, CodegenOptions], tuple[str, CodegenOptions]]
_stand_ins: list[StandIn] = []


@contextlib.contextmanager
def standing_in(change: StandIn) -> Iterator[None]:
    """Make code of what `change` makes of each kernel's text and options, as where another CPU's code is to run here."""
    _stand_ins.append(change)
    try:
        yield
    finally:
        _stand_ins.remove(change)


_Key = tuple[CodegenOptions, bool]  # what a maker is for, and whether for kernels that need no passes
_free: dict[_Key, list[Maker]] = {}  # those that nobody uses now


def _take(key: _Key) -> Maker:
    """A maker for one kernel at a time; what it works out about its CPU, in 0.7 ms, it keeps."""
    try:
        return _free[key].pop()
    except LookupError:
        options, is_ready = key
    level = CODE_LEVELS[options.speed]
    if is_ready and code_generator.is_here():
        return code_generator.Generator(options.cpu, options.features, level)
    from stablehlo_py.targets.llvm_passes import Optimizer  # llvmlite: many programs do without

    return Optimizer(options.cpu, options.features, level, None if is_ready else options.speed)
