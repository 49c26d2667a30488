"""What is measured: functions on jnp arrays, their inputs, and what each of them cannot do without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

Make = Callable[[np.random.Generator], np.ndarray]
F = TypeVar("F", bound="Callable[..., jax.Array]")


@dataclass(frozen=True)
class Workload:
    """One row of the table.

    flops: of the algorithm as it is usually written, two for a multiply-add. bytes: that any implementation must move;
    None is the arguments and the results once each. tolerance: of the difference, relative to the largest result; it
    covers sums in another order, and zero means the same bits.
    """

    function: Callable[..., jax.Array]
    arguments: tuple[Make, ...]
    flops: float = 0.0
    bytes: int | None = None
    tolerance: float = 1e-5

    def make_arguments(self) -> list[np.ndarray]:
        """The same numbers in every run."""
        random = np.random.default_rng(0)
        return [make(random) for make in self.arguments]


def f32(*shape: int, scale: float = 1.0) -> Make:
    return lambda random: np.asarray(random.standard_normal(shape, np.float32) * np.float32(scale))


def c64(*shape: int) -> Make:
    return lambda random: random.standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]


def bf16(*shape: int) -> Make:
    return lambda random: random.standard_normal(shape, np.float32).astype(ml_dtypes.bfloat16)


def s8(*shape: int) -> Make:
    return lambda random: random.integers(-128, 128, shape, np.int8)


def indices(end: int, *shape: int) -> Make:
    return lambda random: random.integers(0, end, shape, np.int32)


def key() -> Make:
    return lambda random: random.integers(0, 1 << 32, 2, np.uint32)


WORKLOADS: dict[str, Workload] = {}


def workload(
    name: str, *arguments: Make, flops: float = 0.0, bytes: int | None = None, tolerance: float = 1e-5
) -> Callable[[F], F]:
    """A row of the table with the function below; of several rows of one function, the lowest comes first."""

    def keep(function: F) -> F:
        WORKLOADS[name] = Workload(function, arguments, flops, bytes, tolerance)
        return function

    return keep


@workload("add4x4", f32(4, 4), f32(4, 4), flops=16)
@workload("scalar_add", f32(), f32(), flops=1)
def add(x: jax.Array, y: jax.Array) -> jax.Array:
    return x + y


@workload("matmul1024_bf16", bf16(1024, 1024), bf16(1024, 1024), flops=2 * 1024**3, tolerance=1e-2)
@workload("batched64", f32(256, 64, 64), f32(256, 64, 64), flops=2 * 256 * 64**3)
@workload("skinny8x4096", f32(8, 4096), f32(4096, 2048), flops=2 * 8 * 4096 * 2048)
@workload("gemv4096", f32(4096, 4096), f32(4096), flops=2 * 4096**2)
@workload("matmul257x509x383", f32(257, 509), f32(509, 383), flops=2 * 257 * 509 * 383)
@workload("matmul1024", f32(1024, 1024), f32(1024, 1024), flops=2 * 1024**3)
@workload("matmul512", f32(512, 512), f32(512, 512), flops=2 * 512**3)
@workload("matmul128", f32(128, 128), f32(128, 128), flops=2 * 128**3)
def matmul(x: jax.Array, y: jax.Array) -> jax.Array:
    return x @ y


@workload("matmul1024_int8", s8(1024, 1024), s8(1024, 1024), flops=2 * 1024**3, tolerance=0)
def matmul_int8(x: jax.Array, y: jax.Array) -> jax.Array:
    return lax.dot(x, y, preferred_element_type=jnp.int32)


@workload("dense256", f32(256, 512), f32(512, 512), f32(512), flops=2 * 256 * 512 * 512)
def dense(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ w + b)


@workload("elementwise16M", f32(1 << 24), f32(1 << 24), flops=4 << 24)
def elementwise(x: jax.Array, y: jax.Array) -> jax.Array:
    return (x * 1.5 + y) * x - y


@workload("gelu1M", f32(1024, 1024), flops=10 << 20)
def gelu(x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x)


@workload("softmax", f32(1024, 1024), flops=5 << 20)
def softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=-1)


@workload("layernorm", f32(1024, 1024), f32(1024), f32(1024), flops=8 << 20)
def layernorm(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale + shift


@workload("sum_rows", f32(4096, 4096), flops=4096**2)
def sum_rows(x: jax.Array) -> jax.Array:
    return x.sum(axis=1)


@workload("sum_cols", f32(4096, 4096), flops=4096**2)
def sum_cols(x: jax.Array) -> jax.Array:
    return x.sum(axis=0)


@workload("sum_middle", f32(64, 512, 256), flops=64 * 512 * 256)
def sum_middle(x: jax.Array) -> jax.Array:
    return x.sum(axis=1)


@workload("transpose4096", f32(4096, 4096), tolerance=0)
def transpose(x: jax.Array) -> jax.Array:
    return x.T


NHWC = ("NHWC", "HWIO", "NHWC")


@workload("conv28x128", f32(1, 28, 28, 128), f32(3, 3, 128, 128), flops=2 * 28**2 * 9 * 128**2)
@workload("conv56x64", f32(1, 56, 56, 64), f32(3, 3, 64, 64), flops=2 * 56**2 * 9 * 64**2)
def convolution(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC)


@workload("conv_features_first", f32(4, 64, 28, 28), f32(128, 64, 3, 3), flops=2 * 4 * 28**2 * 9 * 64 * 128)
def convolution_features_first(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))


@workload("conv_depthwise", f32(4, 28, 28, 96), f32(3, 3, 1, 96), flops=2 * 4 * 28**2 * 9 * 96)
def convolution_depthwise(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC, feature_group_count=96)


@workload("conv_transposed", f32(2, 28, 28, 128), f32(3, 3, 128, 64), flops=2 * 2 * 28**2 * 9 * 64 * 128)
def convolution_transposed(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


@workload("conv_input_gradient", f32(4, 28, 28, 64), f32(3, 3, 64, 64), flops=4 * 4 * 14**2 * 9 * 64**2)
def convolution_input_gradient(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.grad(_strided_loss)(x, w)


@workload(
    "conv_kernel_gradient", f32(4, 28, 28, 64), f32(3, 3, 64, 64), flops=4 * 4 * 14**2 * 9 * 64**2, tolerance=1e-4
)
def convolution_kernel_gradient(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.grad(_strided_loss, 1)(x, w)


def _strided_loss(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.sum(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC) ** 2)


@workload("conv_int8", s8(1, 28, 28, 64), s8(3, 3, 64, 64), flops=2 * 28**2 * 9 * 64**2, tolerance=0)
def convolution_int8(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=NHWC, preferred_element_type=jnp.int32)


@workload("conv_in_loop", f32(1, 512, 16), f32(5, 16, 16, scale=0.05), flops=20 * 2 * 512 * 5 * 16**2, tolerance=1e-4)
def convolution_in_loop(x: jax.Array, w: jax.Array) -> jax.Array:
    def step(_: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.tanh(lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=("NWC", "WIO", "NWC")))

    return lax.fori_loop(0, 20, step, x)


# The flops are those of the sum; what multiplies spectra instead needs fewer.
@workload("convolve100", f32(1, 200, 200, 1), f32(100, 100, 1, 1), flops=2 * 101**2 * 100**2, tolerance=1e-4)
def convolve(x: jax.Array, w: jax.Array) -> jax.Array:
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=NHWC)


# Of the table only the rows that are asked for: in, out, and the indices.
@workload("gather", f32(65536, 64), indices(65536, 32768), bytes=32768 * (2 * 64 + 1) * 4, tolerance=0)
def gather(table: jax.Array, rows: jax.Array) -> jax.Array:
    return table[rows]


@workload("scatter_add", f32(65536, 64), indices(65536, 32768), f32(32768, 64), flops=32768 * 64)
def scatter_add(table: jax.Array, rows: jax.Array, updates: jax.Array) -> jax.Array:
    return table.at[rows].add(updates)


@workload("sort1M", f32(1 << 20), tolerance=0)
def sort(x: jax.Array) -> jax.Array:
    return jnp.sort(x)


@workload("argsort256k", f32(1 << 18), tolerance=0)
def argsort(x: jax.Array) -> jax.Array:
    return jnp.argsort(x)


@workload("top_k", f32(64, 8192), tolerance=0)
def top_k(x: jax.Array) -> jax.Array:
    return lax.top_k(x, 16)[0]


@workload("cumsum", f32(256, 4096), flops=256 * 4096)
def cumsum(x: jax.Array) -> jax.Array:
    return jnp.cumsum(x, axis=1)


# 5 n log2 n of a complex transform; half the last dimension is kept.
@workload("fft_rows", c64(2048, 360), flops=5 * 2048 * 360 * 8.5)
def fft_rows(x: jax.Array) -> jax.Array:
    return jnp.fft.fft(x)


@workload("fft2", f32(16, 256, 256), flops=2.5 * 16 * 256**2 * 16)
def fft2(x: jax.Array) -> jax.Array:
    return jnp.fft.rfft2(x)


# For a number: half of the 20 rounds of five operations and the keys, and about 30 for the inverse error function.
@workload("random_normal1M", key(), flops=90 << 20)
def random_normal(key: jax.Array) -> jax.Array:
    return jax.random.normal(jax.random.wrap_key_data(key, impl="threefry2x32"), (1 << 20,))


@workload(
    "lstm",
    f32(64, 8, 128),
    f32(128, 512, scale=0.08),
    f32(128, 512, scale=0.08),
    f32(512, scale=0.08),
    flops=64 * 2 * 8 * 256 * 512,
    tolerance=1e-4,
)
def lstm(sequence: jax.Array, w: jax.Array, u: jax.Array, b: jax.Array) -> jax.Array:
    def step(state: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[tuple[jax.Array, jax.Array], None]:
        hidden, cell = state
        i, f, g, o = jnp.split(x @ w + hidden @ u + b, 4, axis=-1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell), None

    zeros = jnp.zeros_like(sequence[0])
    return lax.scan(step, (zeros, zeros), sequence)[0][0]


TOKENS, WIDTH, HEADS = 128, 256, 8


@workload(
    "transformer_block",
    f32(TOKENS, WIDTH),
    f32(WIDTH, 3 * WIDTH, scale=0.06),
    f32(WIDTH, WIDTH, scale=0.06),
    f32(WIDTH, 4 * WIDTH, scale=0.06),
    f32(4 * WIDTH, WIDTH, scale=0.03),
    flops=2 * TOKENS * 12 * WIDTH**2 + 2 * 2 * TOKENS**2 * WIDTH,
    tolerance=1e-4,
)
def transformer_block(x: jax.Array, qkv: jax.Array, out: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    def normalized(x: jax.Array) -> jax.Array:
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    q, k, v = jnp.split((normalized(x) @ qkv).reshape(TOKENS, 3 * HEADS, WIDTH // HEADS), 3, axis=1)
    scores = jnp.einsum("qhd,khd->hqk", q, k) / (WIDTH // HEADS) ** 0.5
    mixed = jnp.einsum("hqk,khd->qhd", jax.nn.softmax(scores, axis=-1), v)
    x = x + mixed.reshape(TOKENS, WIDTH) @ out
    return x + jax.nn.gelu(normalized(x) @ up) @ down


# Two contractions forward, and three back: the gradient of x is not asked for.
@workload(
    "mlp_grad",
    f32(128, 256),
    f32(256, 512, scale=0.06),
    f32(512, 256, scale=0.04),
    flops=5 * 2 * 128 * 256 * 512,
    tolerance=1e-4,
)
def mlp_grad(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
    def loss(up: jax.Array, down: jax.Array) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ up) @ down - x) ** 2)

    ups, downs = jax.grad(loss, argnums=(0, 1))(up, down)
    return jnp.concatenate([ups, downs.T], axis=1)
