"""Slices that kernels read where they lie in memory: values of every kind of reader, and which kernels there are."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import stablehlo_py


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


WIDE, CUBE = numbers(32, 1024), numbers(8, 4, 128)
WEIGHTS = numbers(512, 256, seed=1) / 16

# name: (function, arguments, whether a kernel of its own makes a slice)
CASES: dict[str, tuple[Callable, tuple[np.ndarray, ...], bool]] = {
    "columns": (lambda x: jnp.tanh(x[:, :256]) * x[:, 300:556] + x[:, 768:], (WIDE,), False),
    "of what a kernel makes": (lambda x: (lambda z: z[:500] * z[12:512])(jnp.sin(x)), (WIDE[0],), False),
    "of the same shape by a broadcast": (lambda x: (lambda z: z + z[3:4])(jnp.exp(x)), (WIDE,), False),
    "one of a middle dimension": (lambda x: x[:, 1] * x[:, 3], (CUBE,), False),
    "some of all dimensions": (lambda x: x[2:5, 1:3, 5:100] * 2, (CUBE,), False),
    "neighbours": (lambda x: x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1] - x[1:-1, 2:], (WIDE,), False),
    "rows that are reduced": (lambda x: (x[:, :512] * x[:, 512:]).sum(-1), (WIDE,), False),
    "a softmax": (lambda x: jax.nn.softmax(x[:, 100:400] * 2, -1), (WIDE,), False),
    "after a product": (lambda x, w: jnp.maximum(x[:, :512] @ w + x[:, 256:512] * 3, 0), (WIDE, WEIGHTS), True),
    "a row after a product": (lambda x, w, b: x @ w + b[5:261], (WIDE[:, :512], WEIGHTS, WIDE[1]), False),
    "in a loop": (
        lambda x: lax.fori_loop(0, 5, lambda _, c: c.at[:, :256].set(jnp.tanh(c[:, 256:512] + c[:, :256])), x),
        (WIDE,),
        False,
    ),
    "with gaps": (lambda x: x[:, :512:2] * x[:, 1:512:2], (WIDE,), True),
    "short": (lambda x: x[:, :8] * x[:, 8:16], (WIDE,), True),
    "of numbers that are made where they are read": (lambda x: x + jnp.arange(1024.0)[100:356], (WIDE[:, :256],), True),
    "integers": (lambda x: x[:, :512] + x[:, 512:], ((WIDE * 100).astype(np.int32),), False),
    "complex": (lambda x: x[:, :512] * x[:, 512:], ((WIDE + 1j * WIDE[::-1]).astype(np.complex64),), False),
}


@pytest.mark.parametrize("name", CASES)
def test_values(name: str) -> None:
    function, arguments, apart = CASES[name]
    compiled = stablehlo_py.compile(jax.jit(function).lower(*arguments))
    (found,) = compiled(*arguments)
    wanted = np.asarray(jax.jit(function)(*arguments))
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-4)
    assert ("= slice_" in compiled.as_text("program")) == apart
