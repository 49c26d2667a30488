"""A program on the command line and its inputs: `@x.npy`, `2x3xf32=1`, `f32=@x.npy`, or random ones from a seed."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stablehlo_py.core.types import element_type, element_type_of
from stablehlo_py.errors import BadInput
from stablehlo_py.runtime.program import ArrayType

_TYPED = re.compile(r"(?P<dims>(?:\d+x)*)(?P<element>[A-Za-z][\w<>]*)=(?P<value>.*)", re.DOTALL)


def source_of(arguments: argparse.Namespace) -> Path | bytes:
    """The program that the command line names, as `compile` takes it."""
    return sys.stdin.buffer.read() if arguments.program == "-" else Path(arguments.program)


def read_inputs(given: Sequence[str], wanted: Sequence[ArrayType], seed: int) -> list[np.ndarray]:
    """Arrays for a program's arguments: the given ones in order, random ones when none is given."""
    if not given and any(-1 in ty.shape for ty in wanted):
        raise BadInput(
            f"the program has symbolic dimensions: it takes {', '.join(map(str, wanted))}",
            hint="give its inputs, such as --input 2x3xf32=1: their shapes decide",
        )
    if not given:
        generator = np.random.default_rng(seed)
        return [random_input(ty, generator) for ty in wanted]
    arrays = [array for text in given for array in read_input(text)]
    if len(arrays) != len(wanted):
        types = ", ".join(map(str, wanted))
        raise BadInput(f"{len(arrays)} inputs given, the program takes {len(wanted)}", hint=f"it takes {types}")
    return [_fitted(array, ty, number) for number, (array, ty) in enumerate(zip(arrays, wanted, strict=True))]


def read_input(text: str) -> list[np.ndarray]:
    """The array of one `--input`; a .npz file gives all of its arrays, or those named in0, in1, ... if it has such."""
    if text.startswith("@"):
        return _from_file(text[1:])
    typed = _TYPED.fullmatch(text)
    if typed is None:
        raise BadInput(f"input {text!r} is not understood", hint="write @file.npy or 2x3xf32=1 or 4xi32=1,2,3,4")
    shape = tuple(int(d) for d in typed["dims"].split("x") if d)
    dtype = element_type(typed["element"]).dtype
    if typed["value"].startswith("@"):
        return [array.astype(dtype) for array in _from_file(typed["value"][1:])]
    try:
        values = [complex(v) if dtype.kind == "c" else _number(v) for v in re.split(r"[,\s]+", typed["value"].strip())]
        flat = np.array(values, dtype=object if dtype.kind in "iu" else None).astype(dtype)
    except (ValueError, OverflowError) as error:
        raise BadInput(f"input {text!r}: {error}", hint="numbers, separated by commas") from None
    if flat.size not in (1, int(np.prod(shape))):
        raise BadInput(f"input {text!r} has {flat.size} numbers, its shape wants {int(np.prod(shape))} or 1")
    return [np.array(np.broadcast_to(flat.reshape(shape if flat.size > 1 else ()), shape))]


def _number(text: str) -> float | int:
    if text.lower() in ("true", "false"):
        return int(text.lower() == "true")
    try:
        return int(text, 0)
    except ValueError:
        return float(text)


def _from_file(name: str) -> list[np.ndarray]:
    path = Path(name)
    try:
        loaded = np.load(path, allow_pickle=False)
    except OSError as error:
        raise BadInput(
            f"cannot be read: {error.strerror or error}", where=name, hint="give @file.npy or @file.npz"
        ) from None
    except (ValueError, EOFError):
        raise BadInput(
            "is no .npy or .npz file of numbers", where=name, hint="write it with numpy.save or numpy.savez"
        ) from None
    if isinstance(loaded, np.ndarray):
        return [loaded]
    names = sorted(loaded.files, key=lambda n: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", n)])
    inputs = [n for n in names if re.fullmatch(r"in\d+", n)]  # a file may keep the expected results too
    return [loaded[n] for n in inputs or names]


def _fitted(array: np.ndarray, ty: ArrayType, number: int) -> np.ndarray:
    """The array itself, or its bytes as the wanted dtype: files keep bf16 and f8 as integers of the same width."""
    wanted = ty.numpy
    if array.dtype != wanted and array.dtype.itemsize == wanted.itemsize and array.dtype.kind in "uV":
        array = array.view(wanted)
    same_shape = array.ndim == len(ty.shape) and all(d in (-1, n) for d, n in zip(ty.shape, array.shape, strict=True))
    if array.dtype != wanted or not same_shape:
        given = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
        raise BadInput(f"input {number} is {given}, the program takes {ty}")
    return array


def random_input(ty: ArrayType, generator: np.random.Generator) -> np.ndarray:
    """Standard normal floats, integers from 0 to 9, both truths."""
    element = element_type_of(ty.numpy)
    if element.is_bool:
        return generator.random(ty.shape) < 0.5
    if element.is_integer:
        return generator.integers(0, min(10, 2 ** (element.bits - 1)), ty.shape).astype(ty.numpy)
    if element.is_complex:
        return (generator.standard_normal(ty.shape) + 1j * generator.standard_normal(ty.shape)).astype(ty.numpy)
    return np.asarray(generator.standard_normal(ty.shape)).astype(ty.numpy)
