"""Two judges of a compiled program: JAX on the same function, and the reference interpreter on the same text."""

from __future__ import annotations

from collections.abc import Callable

import jax
import ml_dtypes
import numpy as np

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference.interpreter import interpret


def with_jax(function: Callable, *arrays: np.ndarray, rtol: float = 0.0) -> None:
    """The function compiled here gives what JAX gives; exactly, or within rtol of the largest element."""
    with jax.enable_x64(True):
        lowered = jax.jit(function, keep_unused=True).lower(*arrays)
        wanted = jax.tree.leaves(jax.jit(function)(*arrays))
    same(stablehlo_py.compile(lowered.as_text())(*arrays), [np.asarray(w) for w in wanted], rtol)


def with_reference(text: str, *arrays: np.ndarray, rtol: float = 0.0) -> tuple[np.ndarray, ...]:
    """The program compiled gives what the reference interpreter gives; returns the results."""
    with new_context(), ir.Location.unknown():
        wanted = interpret(ir.Module.parse(text), *arrays)
    got = stablehlo_py.compile(text)(*arrays)
    same(got, wanted, rtol)
    return got


def same(got: tuple[np.ndarray, ...], wanted: list[np.ndarray] | tuple[np.ndarray, ...], rtol: float) -> None:
    """Equal shapes, dtypes and elements; NaN equals NaN."""
    assert len(got) == len(wanted)
    for number, (ours, theirs) in enumerate(zip(got, wanted, strict=True)):
        assert ours.shape == theirs.shape, f"result {number}"
        assert ours.dtype == theirs.dtype, f"result {number}"
        wide = np.complex128 if ours.dtype.kind == "c" else np.float64 if ours.dtype.kind in "fV" else ours.dtype
        ours, theirs = ours.astype(wide), theirs.astype(wide)
        largest = np.max(np.abs(theirs[np.isfinite(theirs)]), initial=0.0) if rtol else 0.0
        if rtol:
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * largest, err_msg=f"result {number}")
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=f"result {number}")


def numbers(shape: tuple[int, ...], dtype: object = np.float32, seed: int = 0) -> np.ndarray:
    """Random elements of any dtype; small integers, so that sums are exact where they can be."""
    rng, dtype = np.random.default_rng(seed), np.dtype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind == "c":
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "f" or dtype == ml_dtypes.bfloat16:
        return rng.standard_normal(shape).astype(np.float32).astype(dtype)
    low = 0 if dtype.kind == "u" or "uint" in dtype.name else -4
    return rng.integers(low, 4, shape).astype(np.int8).astype(dtype)
