"""Write the example models, their inputs and JAX's answers: needs JAX; same bytes each time.

python examples/export_models.py        writes NAME.mlir and NAME.npz (in0, in1, ..., out0, ...) beside this file
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

HERE = Path(__file__).parent
LENGTH, WIDTH, HEADS = 32, 64, 4


def layer_norm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * scale + shift


def transformer(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One pre-norm block, [length, width] -> [length, width]: causal attention, then an MLP with gelu."""
    normed = layer_norm(x, p["scale1"], p["shift1"])
    q, k, v = jnp.moveaxis((normed @ p["qkv"]).reshape(LENGTH, 3, HEADS, WIDTH // HEADS), 1, 0)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / np.sqrt(WIDTH // HEADS).astype(np.float32)
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    attended = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores), v).reshape(LENGTH, WIDTH)
    x = x + attended @ p["project"]
    normed = layer_norm(x, p["scale2"], p["shift2"])
    return x + jax.nn.gelu(normed @ p["up"] + p["up_bias"], approximate=False) @ p["down"] + p["down_bias"]


def mlp_grad(
    x: jax.Array, labels: jax.Array, p: list[tuple[jax.Array, jax.Array]]
) -> tuple[jax.Array, list[tuple[jax.Array, jax.Array]]]:
    """Cross entropy of a classifier and its gradient by every weight; labels are class numbers."""

    def loss(p: list[tuple[jax.Array, jax.Array]]) -> jax.Array:
        h = x
        for weight, bias in p[:-1]:
            h = jnp.tanh(h @ weight + bias)
        weight, bias = p[-1]
        log_p = jax.nn.log_softmax(h @ weight + bias)
        return -jnp.take_along_axis(log_p, labels[:, None], axis=1).mean()

    return jax.value_and_grad(loss)(p)


def conv_net(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """[batch, 16, 16, 3] -> [batch, 10]: two times convolution, batch norm (of the batch), relu, max pooling; a dense layer."""
    for i in ("1", "2"):
        x = jax.lax.conv_general_dilated(x, p["kernel" + i], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        centred = x - x.mean((0, 1, 2))
        x = centred * jax.lax.rsqrt((centred**2).mean((0, 1, 2)) + 1e-5) * p["scale" + i] + p["shift" + i]
        x = jax.lax.reduce_window(jax.nn.relu(x), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ p["dense"] + p["bias"]


def mlp(x: jax.Array, weight1: jax.Array, bias1: jax.Array, weight2: jax.Array, bias2: jax.Array) -> jax.Array:
    """Matmul, bias, relu, matmul, bias, softmax: what the thin targets take too."""
    return jax.nn.softmax(jax.nn.relu(x @ weight1 + bias1) @ weight2 + bias2)


def dense(x: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
    """relu(x @ weight + bias), of sizes that fill no tile."""
    return jax.nn.relu(x @ weight + bias)


def models() -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Name -> the function and its arguments."""
    random = np.random.default_rng(0)

    def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    def weight(*shape: int) -> np.ndarray:
        return normal(*shape, scale=float(np.prod(shape[:-1])) ** -0.5)

    block = {
        "qkv": weight(WIDTH, 3 * WIDTH),
        "project": weight(WIDTH, WIDTH),
        "up": weight(WIDTH, 4 * WIDTH),
        "up_bias": normal(4 * WIDTH, scale=0.1),
        "down": weight(4 * WIDTH, WIDTH),
        "down_bias": normal(WIDTH, scale=0.1),
        **{f"scale{i}": 1 + normal(WIDTH, scale=0.1) for i in (1, 2)},
        **{f"shift{i}": normal(WIDTH, scale=0.1) for i in (1, 2)},
    }
    layers = [(weight(20, 32), normal(32, scale=0.1)), (weight(32, 32), normal(32)), (weight(32, 5), normal(5))]
    net = {
        "kernel1": weight(3, 3, 3, 8),
        "kernel2": weight(3, 3, 8, 16),
        "dense": weight(4 * 4 * 16, 10),
        "bias": normal(10),
        **{f"scale{i}": 1 + normal(c, scale=0.1) for i, c in (("1", 8), ("2", 16))},
        **{f"shift{i}": normal(c, scale=0.1) for i, c in (("1", 8), ("2", 16))},
    }
    labels = random.integers(0, 5, 24).astype(np.int32)
    return {
        "transformer": (transformer, (normal(LENGTH, WIDTH), block)),
        "mlp_grad": (mlp_grad, (normal(24, 20), labels, layers)),
        "conv_net": (conv_net, (normal(4, 16, 16, 3), net)),
        "mlp": (mlp, (normal(16, 48), weight(48, 64), normal(64), weight(64, 10), normal(10))),
        "dense": (dense, (normal(150, 200), weight(200, 140), normal(140))),
    }


def main() -> None:
    # Locations name this file as seen from the top of the checkout, wherever that lies.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/(?=examples/)")
    for name, (function, arguments) in models().items():
        exported = jax.export.export(jax.jit(function), platforms=["cpu"])(*arguments)
        (HERE / f"{name}.mlir").write_text(exported.mlir_module())
        with jax.default_matmul_precision("highest"):
            results = jax.jit(function)(*arguments)
        stored = {f"in{i}": leaf for i, leaf in enumerate(jax.tree.leaves(arguments))}
        stored |= {f"out{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(results))}
        np.savez_compressed(HERE / f"{name}.npz", **stored)


if __name__ == "__main__":
    main()
