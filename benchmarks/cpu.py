"""Compile time and run time on the CPU, beside XLA's: `make bench`, or `python benchmarks/cpu.py NAME...`.

Run times are the fastest of the calls that fit into a second, both with numpy arrays in and results ready.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import stablehlo_py

SECONDS = 1.0


def dense(x: jax.Array, w: jax.Array, b: jax.Array) -> jax.Array:
    return jax.nn.relu(x @ w + b)


def softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=-1)


def normalize(x: jax.Array) -> jax.Array:
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def gelu(x: jax.Array) -> jax.Array:
    return jax.nn.gelu(x)


def gradient(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w)


def scan(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda h, row: (jnp.tanh(row + h @ w), None), jnp.zeros_like(x[0]), x)[0]


WORKLOADS: dict[str, tuple[Callable[..., jax.Array], list[tuple[int, ...]]]] = {
    "small": (dense, [(1, 16), (16, 16), (16,)]),
    "dense": (dense, [(256, 512), (512, 512), (512,)]),
    "softmax": (softmax, [(512, 1024)]),
    "normalize": (normalize, [(512, 1024)]),
    "gelu": (gelu, [(1024, 1024)]),
    "gradient": (gradient, [(256, 256), (256, 256)]),
    "scan": (scan, [(128, 64), (64, 64)]),
}


def fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest call."""
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - begin)
    return best


def measure(name: str) -> str:
    """A row of the table."""
    function, shapes = WORKLOADS[name]
    random = np.random.default_rng(0)
    # Small numbers: with large weights the scan is chaotic, and any rounding makes another result.
    arrays = [random.standard_normal(shape).astype(np.float32) * np.float32(0.1) for shape in shapes]
    lowered = jax.jit(function).lower(*arrays)
    begin = time.perf_counter()
    ours = stablehlo_py.compile(lowered, cache=False)
    our_compile = time.perf_counter() - begin
    begin = time.perf_counter()
    theirs = lowered.compile()
    their_compile = time.perf_counter() - begin
    wanted, found = np.asarray(theirs(*arrays)), ours(*arrays)[0]
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    our_run = fastest(lambda: ours(*arrays))
    their_run = fastest(lambda: jax.block_until_ready(theirs(*arrays)))
    compiling = f"{our_compile * 1e3:9.0f} {their_compile * 1e3:9.0f}"
    running = f"{our_run * 1e6:11.1f} {their_run * 1e6:11.1f} {their_run / our_run:7.2f}"
    return f"{name:<10} {compiling} {running} {error:10.1e}"


def main(names: list[str]) -> int:
    unknown = set(names) - WORKLOADS.keys()
    if unknown:
        print(f"no workload {', '.join(sorted(unknown))}; there are {', '.join(WORKLOADS)}", file=sys.stderr)
        return 2
    print(f"{'':<10} {'compile ms':>9} {'XLA':>8} {'run us':>11} {'XLA':>11} {'ratio':>7} {'difference':>10}")
    for name in names or WORKLOADS:
        print(measure(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
