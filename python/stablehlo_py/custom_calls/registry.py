"""Which functions custom calls run, by name: a Python function on arrays, or a C function on memory.

@register_custom_call("scaled_sum")
def scaled_sum(inputs, attributes, results):
    return attributes["scale"] * (inputs[0] + inputs[1])
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from stablehlo_py.custom_calls.call import CustomCall
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.records import record
from stablehlo_py.runtime.program import ArrayType

# (inputs, attributes, result types) -> the result, or a tuple of them; None for a call without results
PythonFunction = Callable[[list[np.ndarray], Mapping[str, Any], tuple[ArrayType, ...]], object]
# what is wrong with a call, or None; asked when the program is compiled
Signature = Callable[[CustomCall], "str | None"]
F = TypeVar("F", bound=Callable[..., object])

FAMILIES = (
    "assertions",
    "permutations",
    "fft",
    "lapack",
    "tridiagonal",
    "sparse",
    "unset",
)  # modules here that register names

_REGISTERED: dict[str, Registered] = {}
_is_loaded = False


@record
class Registered:
    """A function under its name. Exactly one of python and address is given; keep: what must live as long."""

    name: str
    python: PythonFunction | None
    address: int = 0
    signature: Signature | None = None
    has_side_effect: bool = False
    keep: object = None


def register_custom_call(
    name: str,
    function: Callable[..., object] | int | None = None,
    *,
    signature: Signature | None = None,
    has_side_effect: bool = False,
    replace: bool = False,
) -> Any:  # Any: the function itself, or a decorator that gives it back
    """Let programs call `function` by `name`; without a function, a decorator.

    function: Python, `f(inputs, attributes, results)` with read-only arrays, a dict and the result types, which returns
    an array, or a tuple of them. Or C, as an address or a ctypes function, `void f(void *const *buffers)`: pointers to
    the operands and then to the results, each in the layout that the call asks for; a result that the program aliases
    to an operand has its pointer twice and starts with the operand's contents. signature: given the call when a
    program is compiled, says what is wrong with it. has_side_effect: the call stays even if nothing uses its results.
    """
    if function is None:

        def decorate(decorated: F) -> F:
            register_custom_call(name, decorated, signature=signature, has_side_effect=has_side_effect, replace=replace)
            return decorated

        return decorate
    _load_families()
    if name in _REGISTERED and not replace:
        raise ValueError(f"a custom call {name} is registered already; replace=True puts another in its place")
    address = _address(function)
    if not address and not callable(function):
        raise TypeError(f"custom call {name}: a function or its address is wanted, not {type(function).__name__}")
    python = None if address else function
    _REGISTERED[name] = Registered(name, python, address, signature, has_side_effect, function)  # type: ignore[arg-type]
    return function


def unregister_custom_call(name: str) -> None:
    """Forget a name; programs that call it are refused from now on."""
    _load_families()
    _REGISTERED.pop(name, None)


def registered_names() -> tuple[str, ...]:
    """All names that programs may call."""
    _load_families()
    return tuple(sorted(_REGISTERED))


def find(name: str, where: str = "") -> Registered:
    """What is registered under a name; UnsupportedOp where nothing is."""
    _load_families()
    found = _REGISTERED.get(name)
    if found is None:
        reason, hint = _why_unknown(name)
        raise UnsupportedOp(f"custom_call @{name}", reason, where=where, hint=hint)
    return found


def find_for(call: CustomCall) -> Registered:
    """The function of a call; UnsupportedOp where there is none, or where the call does not fit it."""
    found = find(call.name, call.where)
    wrong = found.signature(call) if found.signature else None
    if wrong:
        raise UnsupportedOp(f"custom_call @{call.name}", wrong, where=call.where, hint="see docs/custom_calls.md")
    return found


def _load_families() -> None:
    """Import what is registered from the start: most programs have no custom call, and SciPy takes its time."""
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True  # first: the families register themselves
    for family in FAMILIES:
        importlib.import_module(f"stablehlo_py.custom_calls.{family}")


def _address(function: object) -> int:
    if isinstance(function, int):
        return function
    if isinstance(function, ctypes._SimpleCData | ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]
    return 0


_FOR_CPU = "export the program for the CPU: jax.export.export(f, platforms=['cpu'])"
_GPU = ("cu", "hip", "roc", "mosaic_gpu", "__triton", "__gpu", "__cudnn", "__cublas", "oneapi", "xla_python_gpu")
_TPU = ("tpu_", "Qr", "Eigh", "Lu", "PartialReduce", "ProductOfElementary", "X64", "CompactWy")


def _why_unknown(name: str) -> tuple[str, str]:
    if "python" in name and "callback" in name:
        return (
            "it calls a Python function of the process that made the program",
            "take out jax.pure_callback, io_callback and jax.debug.print, or register_custom_call your own function",
        )
    if name.startswith(_GPU):
        return "it is a function of a GPU's libraries", _FOR_CPU
    if name.startswith(_TPU):
        return "it is a function of TPUs", _FOR_CPU
    return (
        "no function is registered under this name",
        f"stablehlo_py.register_custom_call({name!r}, function) makes one known",
    )


def as_results(returned: object, wanted: Sequence[ArrayType]) -> tuple[np.ndarray, ...]:
    """What a Python function returned, as arrays of exactly the wanted types; ValueError says what is not."""
    if returned is None:
        given: tuple[object, ...] = ()
    else:
        given = tuple(returned) if isinstance(returned, tuple | list) else (returned,)
    if len(given) != len(wanted):
        raise ValueError(f"returned {len(given)} arrays, {len(wanted)} are wanted")
    arrays = tuple(np.asarray(value) for value in given)
    for number, (array, ty) in enumerate(zip(arrays, wanted, strict=True)):
        if array.shape != ty.shape or array.dtype != ty.numpy:
            found = f"{array.dtype}[{','.join(map(str, array.shape))}]"
            raise ValueError(f"returned {found} as result {number}, {ty} is wanted")
    return arrays
