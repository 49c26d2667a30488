"""The native entry: a function in C that checks arrays, makes the results and runs a NativeExecutor."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Sequence
from importlib.machinery import ExtensionFileLoader
from types import ModuleType

import numpy as np

from stablehlo_py.resources import native_library
from stablehlo_py.runtime.executor import RUNTIME_VERSION, Executor, NativeExecutor
from stablehlo_py.runtime.program import Case, Copy, Fill, Host, Launch, Program, View, While

QUICK = 20_000  # operations, some microseconds: less is not worth to let go of the interpreter's lock and take it again

# Takes arrays; the results as a tuple, the status of a run that failed, or None for arrays that it does not take.
Call = Callable[..., tuple[np.ndarray, ...] | int | None]


def call_of(executor: Executor, places: Sequence[int]) -> Call | None:
    """The call of an executor, which must outlive it; None when there is no native entry or executor.

    It takes arrays of numpy's own class, of the exact shapes and dtypes, contiguous and aligned. places: for each
    result the argument that is to become it, or -1; that array must be writable and overlap no other.
    """
    module = _load()
    if module is None or not isinstance(executor, NativeExecutor):
        return None
    program = executor.program
    types = (tuple((ty.numpy, ty.shape) for ty in side) for side in (program.arguments, program.results))
    return module.make(executor.handle, not is_quick(program), *types, tuple(places))


def is_quick(program: Program) -> bool:
    """Whether a run surely takes microseconds only."""
    total = 0
    for command in program.commands:
        match command:
            case Launch(kernel):
                total += program.kernels[kernel].work or QUICK  # unknown
            case Copy(bytes=size) | Fill(bytes=size):
                total += size // 16
            case View():
                total += 1
            case While() | Case() | Host():
                return False
    return total < QUICK


@functools.cache
def _load() -> ModuleType | None:
    """The extension module, or None when it was not built, or not with this Python or this runtime in mind."""
    path = native_library("stablehlo_entry")
    if path is None:
        return None
    spec = importlib.util.spec_from_loader("stablehlo_entry", ExtensionFileLoader("stablehlo_entry", str(path)))
    assert spec is not None and spec.loader is not None
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError:
        return None
    return module if module.version() == RUNTIME_VERSION else None
