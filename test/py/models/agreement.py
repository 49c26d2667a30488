"""A function of JAX, compiled for the CPU, against JAX: floats to 1e-5 of the largest element, integers exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stablehlo_py

jax = pytest.importorskip("jax")
export = pytest.importorskip("jax.export")
RTOL = 1e-5


def check(function: Callable[..., Any], *arguments: Any, source: str = "lowered") -> None:  # Any: trees of arrays
    """The function compiled here gives what JAX gives."""
    jitted = jax.jit(function, keep_unused=True)
    with jax.default_matmul_precision("highest"):
        wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(jitted(*arguments))]
    program: Any = jitted.lower(*arguments)
    if source != "lowered":
        program = export.export(jitted)(*arguments)
    if source == "bytes":
        pytest.importorskip("flatbuffers")
        program = bytes(program.serialize())
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]
    agree(stablehlo_py.compile(program)(*leaves), wanted)


def agree(results: tuple[np.ndarray, ...], wanted: list[np.ndarray]) -> None:
    assert [(r.shape, r.dtype) for r in results] == [(w.shape, w.dtype) for w in wanted]
    for result, want in zip(results, wanted, strict=True):
        if want.dtype.kind in "iub":
            np.testing.assert_array_equal(result, want)
        else:
            largest = np.abs(want[np.isfinite(want)]).max(initial=0.0)
            np.testing.assert_allclose(result, want, rtol=RTOL, atol=RTOL * largest)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)
