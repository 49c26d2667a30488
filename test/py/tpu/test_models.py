"""Models from JAX on the target: the products in bf16 on the simulated chip, all else on the host, against JAX on the CPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.tpu.compile import TpuOptions, TpuProgram, compile_tpu

jax = pytest.importorskip("jax")
jnp = jax.numpy


def compiled(function, *arguments, **options) -> TpuProgram:
    text = jax.jit(function).lower(*arguments).as_text()
    with new_context(), ir.Location.unknown():
        return compile_tpu(ir.Module.parse(text), TpuOptions(**options))


def products(program: TpuProgram) -> int:
    return sum(kernel.label.startswith("matmul") for kernel in program.kernels)


def assert_close(ours, theirs, tolerance):
    """Each output to `tolerance` of its largest element: what bf16 operands leave."""
    theirs = [np.asarray(x) for x in jax.tree_util.tree_leaves(theirs)]
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs, strict=True):
        assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


def mlp(parameters, x):
    for w, b in parameters[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = parameters[-1]
    return x @ w + b


def mlp_arguments():
    rng = np.random.default_rng(11)
    sizes = (20, 130, 70, 10)
    parameters = [
        (rng.standard_normal((a, b)).astype(np.float32) / a**0.5, rng.standard_normal(b).astype(np.float32))
        for a, b in itertools.pairwise(sizes)
    ]
    return parameters, rng.standard_normal((33, 20)).astype(np.float32)


def leaves(*arguments):
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(arguments)]


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e", "v6e"])
def test_mlp_forward_and_backward(chip):
    arguments = mlp_arguments()

    def loss(parameters, x):
        return (mlp(parameters, x) ** 2).mean()

    step = jax.value_and_grad(loss)
    program = compiled(step, *arguments, chip=chip)
    assert products(program) == 8  # three forward, five backward: no gradient of x
    assert_close(program(*leaves(*arguments)), jax.jit(step)(*arguments), 0.03)


def test_mlp_with_full_precision_agrees_to_f32():
    arguments = mlp_arguments()
    program = compiled(mlp, *arguments, precision="highest")
    assert_close(program(*leaves(*arguments)), jax.jit(mlp)(*arguments), 1e-5)


def transformer_block(parameters, x):
    heads = 4
    tokens, width = x.shape

    def normed(y, scale):
        y = y - y.mean(-1, keepdims=True)
        return y * jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5) * scale

    h = normed(x, parameters["norm1"])
    q, k, v = (
        (h @ parameters[name]).reshape(tokens, heads, width // heads).transpose(1, 0, 2) for name in ("q", "k", "v")
    )
    scores = jnp.einsum("htd,hsd->hts", q, k) / (width // heads) ** 0.5
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
    mixed = jnp.einsum("hts,hsd->htd", jax.nn.softmax(scores, -1), v)
    x = x + mixed.transpose(1, 0, 2).reshape(tokens, width) @ parameters["out"]
    h = normed(x, parameters["norm2"])
    return x + jax.nn.gelu(h @ parameters["up"]) @ parameters["down"]


def transformer_arguments(width=96, tokens=50):
    rng = np.random.default_rng(12)
    shapes = dict.fromkeys(("q", "k", "v", "out"), (width, width)) | {
        "up": (width, 4 * width),
        "down": (4 * width, width),
    }
    parameters = {name: rng.standard_normal(s).astype(np.float32) / s[0] ** 0.5 for name, s in shapes.items()}
    parameters |= {name: np.ones(width, np.float32) for name in ("norm1", "norm2")}
    return parameters, rng.standard_normal((tokens, width)).astype(np.float32)


@pytest.mark.parametrize("chip", ["v4-megacore", "v5e"])
def test_transformer_block(chip):
    arguments = transformer_arguments()
    program = compiled(transformer_block, *arguments, chip=chip)
    assert products(program) == 8
    # Norms, softmax, gelu and residuals are on the chip: what the host keeps moves elements or makes the mask.
    moves = {"broadcast_in_dim", "constant", "convert", "iota", "reshape", "transpose"}
    assert {name.removeprefix("stablehlo.") for name in program.report().host} <= moves | {"add", "compare"}
    assert_close(program(*leaves(*arguments)), jax.jit(transformer_block)(*arguments), 0.03)


def conv_net(parameters, x):
    dims = ("NHWC", "HWIO", "NHWC")
    x = jax.nn.relu(jax.lax.conv_general_dilated(x, parameters[0], (1, 1), "SAME", dimension_numbers=dims))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(jax.lax.conv_general_dilated(x, parameters[1], (2, 2), "SAME", dimension_numbers=dims))
    return x.mean((1, 2)) @ parameters[2]


def test_conv_net():
    rng = np.random.default_rng(13)
    shapes = ((3, 3, 3, 16), (3, 3, 16, 24), (24, 10))
    parameters = [rng.standard_normal(s).astype(np.float32) / float(np.prod(s[:-1])) ** 0.5 for s in shapes]
    x = rng.standard_normal((2, 12, 12, 3)).astype(np.float32)
    program = compiled(conv_net, parameters, x)
    assert products(program) == 3
    assert_close(program(*leaves(parameters, x)), jax.jit(conv_net)(parameters, x), 0.03)


def test_products_inside_a_loop():
    rng = np.random.default_rng(14)
    w, x = rng.standard_normal((2, 40, 40)).astype(np.float32) / 6

    def power(w, x):
        return jax.lax.fori_loop(0, 5, lambda i, y: jnp.tanh(y @ w), x)

    program = compiled(power, w, x)
    assert products(program) == 1
    assert_close(program(w, x), jax.jit(power)(w, x), 0.05)
