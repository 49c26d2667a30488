"""Custom calls as host functions of a Program, by the JSON that it keeps of each."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from stablehlo_py.custom_calls.call import CustomCall, Layout
from stablehlo_py.custom_calls.registry import PythonFunction, Registered, as_results, find_for
from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.host import HostFunction
from stablehlo_py.runtime.program import ArrayType

C_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))


def host_functions(names: Sequence[str]) -> list[HostFunction]:
    """A host function for each name in `Program.host_calls`; UnsupportedOp for one that this process does not know."""
    return [host_function(CustomCall.from_json(name)) for name in names]


def host_function(call: CustomCall) -> HostFunction:
    """The registered function on the bytes of a program's buffers."""
    return _on_memory(call, find_for(call))


def run_on_arrays(call: CustomCall, inputs: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of a call outside a program."""
    found = find_for(call)
    if found.python is not None:
        return as_results(found.python(list(inputs), call.attributes, call.results), call.results)
    outputs = [np.zeros(ty.shape, ty.numpy) for ty in call.results]
    _call_c(call, found, list(inputs), outputs)
    return tuple(outputs)


def _on_memory(call: CustomCall, found: Registered) -> HostFunction:
    def run(sources: list[np.ndarray], targets: list[np.ndarray]) -> None:
        inputs = [_typed(source, ty) for source, ty in zip(sources, call.operands, strict=True)]
        outputs = [_typed(target, ty) for target, ty in zip(targets, call.results, strict=True)]
        try:
            if found.python is None:
                _call_c(call, found, inputs, outputs)
            else:
                _call_python(call, found.python, inputs, outputs)
        except CompileError:
            raise
        except Exception as error:
            raise RuntimeError(f"{call.where}: {error}" if call.where else str(error)) from error

    return run


def _call_python(
    call: CustomCall, function: PythonFunction, inputs: list[np.ndarray], outputs: list[np.ndarray]
) -> None:
    results = as_results(function(inputs, call.attributes, call.results), call.results)
    for output, result in zip(outputs, results, strict=True):
        output[...] = result


def _call_c(call: CustomCall, found: Registered, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> None:
    """Call a C function on copies in the layouts that the call asks for."""
    operands = [_in_layout(x, layout) for x, layout in zip(inputs, _all(call.operand_layouts, inputs), strict=True)]
    results = [_in_layout(x, layout) for x, layout in zip(outputs, _all(call.result_layouts, outputs), strict=True)]
    for result, operand in call.aliases:
        results[result][...] = operands[operand]
        operands[operand] = results[result]
    pointers = [array.ctypes.data for array in (*operands, *results)]
    C_FUNCTION(found.address)((ctypes.c_void_p * max(len(pointers), 1))(*pointers))
    for output, result, layout in zip(outputs, results, _all(call.result_layouts, outputs), strict=True):
        output[...] = result if layout is None else result.transpose(_back(layout))


def _all(layouts: tuple[Layout, ...], arrays: Sequence[np.ndarray]) -> tuple[Layout, ...]:
    return layouts or (None,) * len(arrays)


def _in_layout(array: np.ndarray, layout: Layout) -> np.ndarray:
    """A contiguous copy whose dimensions are in the order of memory, slowest first."""
    return np.array(array if layout is None else array.transpose(layout[::-1]), order="C", copy=True)


def _back(layout: tuple[int, ...]) -> list[int]:
    return [int(at) for at in np.argsort(layout[::-1])]


def _typed(memory: np.ndarray, ty: ArrayType) -> np.ndarray:
    return memory.view(ty.numpy).reshape(ty.shape)
