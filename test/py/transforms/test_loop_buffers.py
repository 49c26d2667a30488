"""Where the values of a loop live: what is carried, updated in place, and read and written where it lies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax

import stablehlo_py

STEPS = 24  # more than are unrolled


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def compiled(function: Callable, *arguments: np.ndarray) -> stablehlo_py.Executable:
    module = export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module_serialized
    return stablehlo_py.compile(module, cache=False)


def check(function: Callable, *arguments: np.ndarray) -> str:
    """Compare with XLA, on one thread and on three; the listing of the Program."""
    module = export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module_serialized
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    listing = ""
    for threads in (1, 3):
        executable = stablehlo_py.compile(module, cache=False, options=stablehlo_py.Options(threads=threads))
        for _ in range(2):  # the second call finds what the first one left in the arena
            found = executable(*arguments)
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        listing = executable.as_text("program")
    return listing


def body_of(listing: str) -> list[str]:
    """The commands of the first loop's body."""
    lines = listing[listing.index("      do\n") :].splitlines()[1:]
    return lines[: next(i for i, line in enumerate(lines) if line.strip().endswith(" end"))]


def test_what_was_updated_in_place_is_read_before_the_next_step() -> None:
    """The updated value stands in the carried buffer when the next one is made of it."""

    def step(i: Any, c: Any) -> Any:  # tracers
        return jnp.flip(c.at[i % 4].set(i.astype(c.dtype)), 0)

    check(lambda x: lax.fori_loop(0, STEPS, step, x), numbers(4, 4))
