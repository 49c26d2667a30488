"""Host calls: Python functions that a Program calls on the bytes of its buffers."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Sequence

import numpy as np

from stablehlo_py.runtime.program import ArrayType

# Takes inputs (read only) and outputs (to be filled), each a flat uint8 array over the buffer's own memory.
HostFunction = Callable[[list[np.ndarray], list[np.ndarray]], None]


class HostCallError(RuntimeError):
    """A function that the program calls back into raised; the program stopped there. `__cause__` is what it raised."""


def title_of(name: str) -> str:
    """A host call's name for people: a custom call is stored with all that it says, as JSON."""
    if not name.startswith("{"):
        return name
    try:
        return f"custom_call @{json.loads(name)['custom_call']}"
    except (ValueError, KeyError, TypeError):
        return name


def on_arrays(
    function: Callable[..., object], inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]
) -> HostFunction:
    """A host function from one on typed arrays that returns its results: an array, or a tuple of them."""

    def call(sources: list[np.ndarray], targets: list[np.ndarray]) -> None:
        arrays = [source.view(ty.numpy).reshape(ty.shape) for source, ty in zip(sources, inputs, strict=True)]
        returned = function(*arrays)
        results = returned if isinstance(returned, tuple | list) else (returned,)
        if len(results) != len(outputs):
            raise ValueError(f"returned {len(results)} arrays, {len(outputs)} are wanted")
        for number, (target, ty, result) in enumerate(zip(targets, outputs, results, strict=True)):
            array = np.asarray(result)
            if array.shape != ty.shape or array.dtype != ty.numpy:
                found = f"{array.dtype}[{','.join(map(str, array.shape))}]"
                raise ValueError(f"returned {found} as result {number}, {ty} is wanted")
            target.view(ty.numpy).reshape(ty.shape)[...] = array

    return call


def call_host(function: HostFunction, addresses: Sequence[int | None], sizes: Sequence[int], inputs: int) -> None:
    """Call a host function on memory: the first `inputs` pieces are its inputs, the others its outputs."""
    arrays = [_view(address, size) for address, size in zip(addresses, sizes, strict=True)]
    for array in arrays[:inputs]:
        array.flags.writeable = False
    function(arrays[:inputs], arrays[inputs:])


def _view(address: int | None, size: int) -> np.ndarray:
    if not size:
        return np.empty(0, np.uint8)
    return np.frombuffer(memoryview((ctypes.c_uint8 * size).from_address(address or 0)), np.uint8)
