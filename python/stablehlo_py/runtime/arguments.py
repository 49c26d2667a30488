"""Arguments of a call as arrays, and what is wrong with those that are none."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablehlo_py.runtime.program import ArrayType

_NO_NUMBERS = "OSUmM"  # objects, texts and times


def array_of(argument: Any, number: int, wanted: ArrayType) -> np.ndarray:  # Any: whatever numpy makes an array of
    """An array of numpy's own class, on the argument's own memory where that is possible; TypeError where there is none."""
    try:
        if hasattr(argument, "__array__") or not hasattr(argument, "__dlpack__"):
            array = np.asarray(argument)
        else:
            array = np.from_dlpack(argument)
    except MemoryError:
        raise
    except Exception as error:  # whatever the argument's own code raises
        said = str(error).partition(". ")[0].rstrip(".")
        raise TypeError(f"argument {number} is no array: {said}; wanted is {wanted}") from error
    return array


def type_problem(argument: Any, array: np.ndarray, number: int, wanted: ArrayType) -> str:  # Any: as above
    """What to say of an array that is not of the wanted dtype; in its shape -1 stands for any size."""
    if array.dtype.kind in _NO_NUMBERS:
        what = f"an array of {array.dtype.name}" if isinstance(argument, np.ndarray) else f"a {type(argument).__name__}"
        return f"argument {number} is {what}, not an array of numbers; wanted is {wanted}"
    given = ArrayType(array.shape, array.dtype.name)
    text = f"argument {number} is {given}, wanted is {wanted}"
    if array.dtype == wanted.numpy:
        return text
    order = " in this machine's order of bytes" if array.dtype.name == wanted.numpy.name else ""
    return f"{text}{order}; convert it: array.astype({wanted.numpy.name!r})"
