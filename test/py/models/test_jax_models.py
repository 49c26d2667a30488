"""Models exported from JAX, compiled for the CPU, against JAX: floats to 1e-5 of the largest element, integers exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from models.agreement import check, normal

import stablehlo_py

jax = pytest.importorskip("jax")
jnp = jax.numpy


def layers(*sizes: int) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(normal(a, b, seed=a, scale=a**-0.5), normal(b, seed=b)) for a, b in itertools.pairwise(sizes)]


# --- networks


def mlp_loss(p, x, labels):
    for weight, bias in p[:-1]:
        x = jax.nn.silu(x @ weight + bias)
    weight, bias = p[-1]
    log_p = jax.nn.log_softmax(x @ weight + bias)
    return -jnp.take_along_axis(log_p, labels[:, None], 1).mean()


@pytest.mark.parametrize("source", ["lowered", "exported", "bytes"])
def test_mlp_value_and_grad(source):
    labels = np.arange(7, dtype=np.int32) % 3
    check(jax.value_and_grad(mlp_loss), layers(5, 17, 8, 3), normal(7, 5), labels, source=source)


def transformer_block(x, p):
    def norm(x):
        return jax.nn.standardize(x, epsilon=1e-5)

    q, k, v = jnp.moveaxis((norm(x) @ p["qkv"]).reshape(*x.shape[:2], 3, 4, -1), 2, 0)
    attended = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
    x = x + attended @ p["project"]
    return x + jax.nn.gelu(norm(x) @ p["up"]) @ p["down"]


def block_parameters(width):
    return {
        "qkv": normal(width, 3 * width, seed=1, scale=width**-0.5),
        "project": normal(width, width, seed=2, scale=width**-0.5),
        "up": normal(width, 4 * width, seed=3, scale=width**-0.5),
        "down": normal(4 * width, width, seed=4, scale=(4 * width) ** -0.5),
    }


@pytest.mark.parametrize("source", ["lowered", "exported"])
def test_transformer_block(source):
    check(transformer_block, normal(2, 13, 32), block_parameters(32), source=source)


def test_transformer_block_gradient():
    def loss(p, x):
        return (transformer_block(x, p) ** 2).mean()

    check(jax.grad(loss), block_parameters(16), normal(1, 6, 16))


def lstm(xs, p):
    def step(carry, x):
        h, c = carry
        i, f, g, o = jnp.split(x @ p["x"] + h @ p["h"] + p["b"], 4)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros(p["h"].shape[0])
    return jax.lax.scan(step, (zero, zero), xs)


def lstm_parameters():
    return {"x": normal(6, 32, scale=0.4), "h": normal(8, 32, seed=1, scale=0.3), "b": normal(32, seed=2)}


def test_lstm_by_scan():
    check(lstm, normal(11, 6), lstm_parameters())


def test_lstm_gradient():
    check(jax.grad(lambda p, xs: (lstm(xs, p)[1] ** 2).sum()), lstm_parameters(), normal(5, 6))


def conv_net(p, x):
    dims = ("NHWC", "HWIO", "NHWC")
    x = jax.lax.conv_general_dilated(x, p["kernel1"], (1, 1), "SAME", dimension_numbers=dims)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    x = jax.nn.relu((x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")
    x = jax.lax.conv_general_dilated(x, p["kernel2"], (2, 2), "VALID", dimension_numbers=dims, feature_group_count=2)
    x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
    return x.reshape(x.shape[0], -1) @ p["dense"]


def conv_parameters():
    return {
        "kernel1": normal(3, 3, 3, 4, scale=0.3),
        "kernel2": normal(3, 3, 2, 6, seed=1, scale=0.3),
        "scale": normal(4, seed=2),
        "shift": normal(4, seed=3),
        "dense": normal(2 * 2 * 6, 5, seed=4),
    }


@pytest.mark.parametrize("source", ["lowered", "exported"])
def test_conv_net(source):
    check(conv_net, conv_parameters(), normal(2, 13, 13, 3), source=source)


def test_conv_net_gradient():
    check(jax.grad(lambda p, x: (conv_net(p, x) ** 2).mean()), conv_parameters(), normal(2, 13, 13, 3))


def test_adam_step():
    optax = pytest.importorskip("optax")
    optimiser = optax.adam(1e-3)

    def step(p, state, x, labels):
        loss, gradient = jax.value_and_grad(mlp_loss)(p, x, labels)
        updates, state = optimiser.update(gradient, state, p)
        return loss, optax.apply_updates(p, updates), state

    p = layers(5, 9, 3)
    check(step, p, optimiser.init(p), normal(7, 5), np.arange(7, dtype=np.int32) % 3)


def test_embedding_gradient_adds_equal_tokens():
    def loss(table, tokens):
        return jnp.sin(table[tokens]).sum()

    tokens = np.array([[1, 3, 3], [0, 9, 1], [9, 9, 9]], np.int32)
    check(jax.value_and_grad(loss), normal(10, 4), tokens)


# --- random numbers


@pytest.mark.parametrize("shape", [(), (7,), (2, 3, 129)])
def test_random_numbers(shape):
    def draw(key):
        keys = jax.random.split(key, 4)
        return (
            jax.random.uniform(keys[0], shape),
            jax.random.normal(keys[1], shape),
            jax.random.bits(keys[2], shape),
            jax.random.randint(keys[3], shape, -5, 1000),
        )

    check(draw, jax.random.PRNGKey(42))


def test_permutation_and_choice():
    def draw(key):
        return jax.random.permutation(key, 37), jax.random.categorical(key, jnp.zeros((5, 3)))

    check(draw, jax.random.PRNGKey(3))


@pytest.mark.parametrize("kind", ["uint8", "uint16"])
def test_narrow_random_bits(kind):
    check(lambda key: jax.random.bits(key, (9,), kind), jax.random.PRNGKey(5))


# --- what models are made of


def test_sorts():
    def sorts(x):
        return jnp.sort(x), jnp.argsort(x, axis=0, stable=True), jax.lax.top_k(x, 3), jnp.sort(x, descending=True)

    check(sorts, np.round(normal(6, 11), 1))


def test_cumulative():
    check(lambda x: (jnp.cumsum(x, 0), jnp.cumprod(x, 1), jax.lax.cummax(x, 1, reverse=True)), normal(9, 5))
    check(lambda x: (jnp.cumsum(x), jax.lax.cummin(x)), np.arange(40, dtype=np.int32) % 7 - 3)


def test_while_and_cond():
    def collatz(n):
        def step(state):
            n, count = state
            return jax.lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

        return jax.lax.while_loop(lambda state: state[0] != 1, step, (n, 0))

    check(collatz, np.int32(27))
    check(jax.vmap(collatz), np.array([1, 7, 9, 27], np.int32))


def test_switch():
    branches = [lambda x: x + 1, lambda x: x * x, jnp.sin]
    for index in (-3, 0, 1, 2, 8):
        check(lambda i, x: jax.lax.switch(i, branches, x), np.int32(index), normal(4))


def test_update_slices_in_a_loop():
    def fill(x, table):
        def step(i, table):
            row = jax.lax.dynamic_slice(x, (i, 0), (1, 4))
            old = jax.lax.dynamic_slice(table, (2 * i, 1), (1, 4))
            return jax.lax.dynamic_update_slice(table, old + row * i, (2 * i, 1))

        return jax.lax.fori_loop(0, 5, step, table)

    check(fill, normal(5, 4), normal(9, 6, seed=1))


def test_at_updates():
    def update(x, i):
        return x.at[i].add(2.0), x.at[i, 1].set(7.0), x.at[1:3].multiply(3.0), x.at[i].max(0.5, mode="drop")

    check(update, normal(6, 3), np.array([0, 5, 0, 9], np.int32))


@pytest.mark.parametrize(
    ("formula", "shapes"),
    [
        ("ij,jk->ik", [(3, 5), (5, 7)]),
        ("bij,bkj->bik", [(2, 3, 5), (2, 7, 5)]),
        ("ij,ij->", [(4, 6), (4, 6)]),
        ("i,j->ij", [(5,), (3,)]),
        ("abc,cd,de->abe", [(2, 3, 4), (4, 5), (5, 6)]),
        ("ii->i", [(5, 5)]),
        ("ijk->kji", [(2, 3, 4)]),
        ("bhqd,bkhd->bhqk", [(2, 3, 4, 5), (2, 6, 3, 5)]),
        ("ijkl,jlm->imk", [(2, 3, 4, 5), (3, 5, 2)]),
    ],
)
def test_einsum(formula, shapes):
    check(lambda *x: jnp.einsum(formula, *x), *[normal(*s, seed=i) for i, s in enumerate(shapes)])


@pytest.mark.parametrize("length", [1, 8, 15, 60])
def test_fft(length):
    check(lambda x: (jnp.fft.fft(x), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), length)), normal(3, length))


def test_fft_of_a_picture():
    check(lambda x: (jnp.fft.fft2(x), jnp.fft.ifft2(x)), normal(6, 10))


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_half_precision_mlp(kind):
    """Within a few roundings of the type: the order of sums differs."""

    def predict(p, x):
        for weight, bias in p:
            x = jnp.tanh(x @ weight + bias)
        return x

    p, x = jax.tree.map(lambda a: a.astype(jnp.dtype(kind)), (layers(8, 16, 4), normal(5, 8)))
    wanted = np.asarray(jax.jit(predict)(p, x))
    (result,) = stablehlo_py.compile(jax.jit(predict).lower(p, x))(*jax.tree.leaves((p, x)))
    assert result.dtype == wanted.dtype
    step = float(jnp.finfo(kind).eps)
    np.testing.assert_allclose(result.astype(np.float32), wanted.astype(np.float32), rtol=0, atol=4 * step)
