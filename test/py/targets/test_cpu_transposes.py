"""Transpositions large enough to be tiled: every permutation, elements of every width."""

from __future__ import annotations

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from ops.agree import numbers, with_jax

from stablehlo_py import Options, compile


def test_every_permutation_of_four_dimensions() -> None:
    orders = list(itertools.permutations(range(4)))
    with_jax(lambda x: [jnp.transpose(x, order) for order in orders], numbers((5, 18, 7, 35)))


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.complex64])
def test_blocks_with_and_without_remainders(order: tuple[int, ...], dtype: object) -> None:
    for shape in ((3, 64, 96), (4, 5, 257), (100, 7, 70), (64, 3, 130)):
        with_jax(lambda x: jnp.transpose(x, order), numbers(shape, dtype))


@pytest.mark.parametrize("offset", [0, 16])
def test_results_past_the_caches(offset: int) -> None:
    """Aligned results are written past the caches, others are not."""
    program = """func.func @main(%x: tensor<2048x2064xf32>) -> tensor<2064x2048xf32> {
      %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2048x2064xf32>) -> tensor<2064x2048xf32>
      return %0 : tensor<2064x2048xf32> }"""
    executable = compile(program, options=Options(threads=2))
    x = np.arange(2048 * 2064, dtype=np.float32).reshape(2048, 2064)
    memory = np.zeros(x.nbytes + 128, np.uint8)
    start = -memory.ctypes.data % 64 + offset
    result = memory[start : start + x.nbytes].view(np.float32).reshape(2064, 2048)
    executable.executor.run([x], [result])
    np.testing.assert_array_equal(result, x.T)
    assert not memory[:start].any()
    assert not memory[start + x.nbytes :].any()


@pytest.mark.parametrize("dtype", [np.int8, ml_dtypes.bfloat16, np.float64, np.complex128, np.bool_])
def test_elements_of_every_width(dtype: object) -> None:
    with_jax(lambda x: (x.T, jnp.transpose(x.reshape(7, 11, 67), (2, 1, 0))), numbers((77, 67), dtype))
