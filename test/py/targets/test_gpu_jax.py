"""Models from JAX through the GPU target on the PTX simulator, against JAX on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reading import read_module
from stablehlo_py.targets.gpu import GpuProgram, compile_ptx
from stablehlo_py.targets.gpu.simulate import simulate

jax = pytest.importorskip("jax")
jnp = jax.numpy


def check(function: Callable, *arguments: Any, tolerance: float = 2e-6) -> GpuProgram:  # Any: trees of arrays
    """Compile and run `function`; every result within `tolerance` of JAX's largest element."""
    lowered = jax.jit(function).lower(*arguments)
    with new_context() as context, ir.Location.unknown():
        program = compile_ptx(read_module(lowered, context))
    found = simulate(program, [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)])
    expected = jax.tree.leaves(jax.jit(function)(*arguments))
    for ours, theirs in zip(found, expected, strict=True):
        wide = np.asarray(theirs, np.float64)
        assert np.abs(ours.astype(np.float64) - wide).max() <= tolerance * max(np.abs(wide).max(), 1e-30)
    return program


@pytest.fixture
def random() -> Callable[..., np.ndarray]:
    rng = np.random.default_rng(3)
    return lambda *shape: (0.1 * rng.standard_normal(shape)).astype(np.float32)


def test_attention_block(random: Callable[..., np.ndarray]) -> None:
    """Layernorm, projections, causal attention over two heads, a residual."""
    batch, time, width, heads = 1, 20, 32, 2

    def block(x: Any, gain: Any, qkv: Any, out: Any) -> Any:  # Any: tracers
        h = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5) * gain
        q, k, v = jnp.split((h @ qkv).reshape(batch, time, 3 * heads, -1), 3, axis=2)
        scores = jnp.einsum("bthd,bshd->bhts", q, k) * 0.25
        scores = jnp.where(jnp.tril(jnp.ones((time, time), bool)), scores, -1e9)
        mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores, axis=-1), v)
        return x + jax.nn.gelu(mixed.reshape(batch, time, width) @ out)

    program = check(
        block, 10 * random(batch, time, width), 1 + random(width), random(width, 3 * width), random(width, width)
    )
    assert any("contraction" in launch.kernel for launch in program.launches)


def test_gradient_of_a_classifier(random: Callable[..., np.ndarray]) -> None:
    def loss(parameters: Any, x: Any, y: Any) -> Any:  # Any: tracers
        hidden = jax.nn.relu(x @ parameters[0] + parameters[1])
        logits = jax.nn.log_softmax(hidden @ parameters[2] + parameters[3])
        return -(logits * y).sum(-1).mean()

    labels = np.eye(10, dtype=np.float32)[np.arange(32) % 10]
    parameters = [random(20, 64), random(64), random(64, 10), random(10)]
    check(jax.value_and_grad(loss), parameters, random(32, 20), labels)


def test_a_scan_with_an_embedding(random: Callable[..., np.ndarray]) -> None:
    """A loop of the Program around launches, and a gather."""

    def model(table: Any, tokens: Any, weights: Any) -> Any:  # Any: tracers
        def step(state: Any, token: Any) -> tuple[Any, Any]:
            state = jnp.tanh(table[token] + state @ weights)
            return state, state.sum()

        return jax.lax.scan(step, jnp.zeros(8), tokens)

    check(model, random(30, 8), np.array([3, 1, 29, 7], np.int32), random(8, 8))
