"""dot_general: every arrangement of dimensions, every kind of element."""

from __future__ import annotations

import random

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference

Dims = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def arrangement(rng: random.Random) -> tuple[tuple[int, ...], tuple[int, ...], Dims]:
    """Shapes and dimension numbers: up to two batch, two contracting and two free dimensions a side, in any order."""
    batch = [rng.choice([1, 2, 3]) for _ in range(rng.randint(0, 2))]
    contracted = [rng.choice([1, 2, 5]) for _ in range(rng.randint(0, 2))]
    sides, places = [], []
    for _ in range(2):
        free = [rng.choice([1, 3, 4]) for _ in range(rng.randint(0, 2))]
        sizes = batch + contracted + free
        order = rng.sample(range(len(sizes)), len(sizes))
        sides.append(tuple(sizes[d] for d in order))
        places.append([order.index(d) for d in range(len(sizes))])
    count, last = len(batch), len(batch) + len(contracted)
    (left, right) = places
    dims = (
        (tuple(left[count:last]), tuple(right[count:last])),
        (tuple(left[:count]), tuple(right[:count])),
    )
    return *sides, dims


@pytest.mark.parametrize("seed", range(4))
def test_any_arrangement(seed: int) -> None:
    rng = random.Random(seed)
    cases = [arrangement(rng) for _ in range(8)]

    def dots(*operands: jnp.ndarray) -> list[jnp.ndarray]:
        pairs = zip(operands[::2], operands[1::2], cases, strict=True)
        return [lax.dot_general(x, y, dims) for x, y, (_, _, dims) in pairs]

    operands = [numbers(shape, seed=n) for case in cases for n, shape in enumerate(case[:2])]
    with_jax(dots, *operands, rtol=1e-5)


def test_sizes_of_zero() -> None:
    def dots(x: jnp.ndarray, y: jnp.ndarray, z: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return x @ y, y @ x, lax.dot_general(z, x, (((2,), (1,)), ((), ())))

    with_jax(dots, numbers((3, 0)), numbers((0, 3)), numbers((2, 5, 0)))


MIXED = [
    ("i8", "i8", "i32"),
    ("ui8", "ui8", "ui32"),
    ("i32", "i32", "i32"),
    ("bf16", "bf16", "f32"),
    ("bf16", "bf16", "bf16"),
    ("f16", "f16", "f16"),
    ("f64", "f64", "f64"),
    ("f8E4M3FN", "f8E5M2", "f32"),
    ("complex<f32>", "complex<f32>", "complex<f32>"),
    ("i1", "i1", "i1"),
    ("i4", "i4", "i8"),
]


@pytest.mark.parametrize(("lhs", "rhs", "result"), MIXED)
def test_kinds_of_elements(lhs: str, rhs: str, result: str) -> None:
    from stablehlo_py.core.types import element_type

    text = f"""
    func.func @main(%x: tensor<2x3x5x{lhs}>, %y: tensor<2x4x5x{rhs}>) -> tensor<2x3x4x{result}> {{
      %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [2]
        : (tensor<2x3x5x{lhs}>, tensor<2x4x5x{rhs}>) -> tensor<2x3x4x{result}>
      return %0 : tensor<2x3x4x{result}>
    }}"""
    kind = element_type(result)
    rtol = 0.0 if kind.is_integer or kind.is_bool else {"bf16": 2e-2, "f16": 2e-3}.get(result, 1e-6)
    operands = numbers((2, 3, 5), element_type(lhs).dtype), numbers((2, 4, 5), element_type(rhs).dtype, seed=1)
    with_reference(text, *operands, rtol=rtol)


def test_small_floats_are_summed_in_f32() -> None:
    """1 + 300 * 2**-9: in bf16 each term alone is rounded away."""
    x = np.full((1, 301), 2.0**-9, np.float32)
    x[0, 0] = 1
    text = """
    func.func @main(%x: tensor<1x301xbf16>, %y: tensor<301x1xbf16>) -> tensor<1x1xbf16> {
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
        : (tensor<1x301xbf16>, tensor<301x1xbf16>) -> tensor<1x1xbf16>
      return %0 : tensor<1x1xbf16>
    }"""
    import stablehlo_py

    bf16 = ml_dtypes.bfloat16
    (got,) = stablehlo_py.compile(text)(x.astype(bf16), np.ones((301, 1), bf16))
    assert got[0, 0] == np.float32(1 + 300 * 2.0**-9).astype(bf16)
