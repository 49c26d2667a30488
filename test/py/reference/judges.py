"""Two judges of the reference interpreter: JAX on the same function, and a right answer written beside the program."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import numpy as np

from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reading import read_module
from stablehlo_py.reference import interpret


def run(text: str, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The results of a program given as text."""
    return interpret(read_module(text, _context()), *arrays)


@functools.cache
def _context() -> ir.Context:
    return new_context()


def one(body: str, signature: str, *arrays: np.ndarray) -> np.ndarray:
    """The result of one op: `body` defines %r from %a, %b ...; `signature` is `tensor<..>, .. -> tensor<..>`."""
    operands, result = signature.split(" -> ")
    names = zip("abcdefgh", operands.split(", ") if operands else [], strict=False)
    arguments = ", ".join(f"%{name}: {ty}" for name, ty in names)
    return run(f"func.func @main({arguments}) -> {result} {{\n {body}\n return %r : {result}\n}}", *arrays)[0]


def agrees_with_jax(function: Callable, *arrays: np.ndarray, rtol: float = 0.0) -> None:
    """Interpreting what JAX lowers gives what JAX gives: exactly, or within rtol of the largest finite element."""
    with jax.enable_x64(True):
        lowered = jax.jit(function, keep_unused=True).lower(*arrays)
        wanted = [np.asarray(w) for w in jax.tree.leaves(lowered.compile()(*arrays))]
    same(run(lowered.as_text(), *arrays), wanted, rtol)


def same(got: tuple[np.ndarray, ...], wanted: list[np.ndarray], rtol: float = 0.0) -> None:
    """Equal shapes, dtypes and elements; NaN equals NaN."""
    assert len(got) == len(wanted)
    for ours, theirs in zip(got, wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64 if ours.dtype.kind in "fV" else ours.dtype
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        if not rtol:
            np.testing.assert_array_equal(ours, theirs)
            continue
        largest = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0)
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * largest)


def numbers(shape: tuple[int, ...], dtype: object = np.float32, seed: int = 0) -> np.ndarray:
    """Random elements: standard normal floats, integers over the whole range of their type."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    if "int" in dtype.name:
        return rng.integers(0, 4, shape).astype(np.int8).astype(dtype)
    return rng.standard_normal(shape).astype(np.float32).astype(dtype)
