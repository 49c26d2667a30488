"""gather and dynamic slices: indices outside, of every integer type, any arrangement of dimensions."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, with_jax, with_reference


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_starts_are_clamped(dtype: object) -> None:
    info = np.iinfo(dtype)
    starts = np.array([info.min, 0, 1, 3, info.max], dtype)
    text = """
    func.func @main(%x: tensor<5x4xf32>, %u: tensor<2x3xf32>, %i: tensor<T>, %j: tensor<T>)
        -> (tensor<2x3xf32>, tensor<5x4xf32>) {
      %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 3] : (tensor<5x4xf32>, tensor<T>, tensor<T>) -> tensor<2x3xf32>
      %1 = stablehlo.dynamic_update_slice %x, %u, %i, %j
        : (tensor<5x4xf32>, tensor<2x3xf32>, tensor<T>, tensor<T>) -> tensor<5x4xf32>
      return %0, %1 : tensor<2x3xf32>, tensor<5x4xf32>
    }""".replace("<T>", f"<{'u' if info.min == 0 else ''}i{info.bits}>")
    import stablehlo_py

    x, u = numbers((5, 4)), numbers((2, 3), seed=1)
    compiled = stablehlo_py.compile(text)
    for i in starts:
        for j in starts[::-1]:
            at = min(max(int(i), 0), 3), min(max(int(j), 0), 1)
            window = slice(at[0], at[0] + 2), slice(at[1], at[1] + 3)
            updated = x.copy()
            updated[window] = u
            got = compiled(x, u, np.array(i), np.array(j))
            np.testing.assert_array_equal(got[0], x[window])
            np.testing.assert_array_equal(got[1], updated)


def test_the_operand_of_an_update_stays_as_it_was() -> None:
    def update(x: jnp.ndarray, u: jnp.ndarray, i: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        y = x * 2
        return y, lax.dynamic_update_slice(y, u, (i, i)), lax.dynamic_update_slice(x, x + 1, (i, i))

    with_jax(update, numbers((5, 4)), numbers((2, 4)), np.int32(2))


def gather(result: str, sizes: str, dims: str, operand: str = "5x4x3xf32", indices: str = "6x2xi32") -> str:
    return f"""
    func.func @main(%x: tensor<{operand}>, %i: tensor<{indices}>) -> tensor<{result}> {{
      %0 = "stablehlo.gather"(%x, %i) {{
        slice_sizes = array<i64: {sizes}>, dimension_numbers = #stablehlo.gather<{dims}>
      }} : (tensor<{operand}>, tensor<{indices}>) -> tensor<{result}>
      return %0 : tensor<{result}>
    }}"""


PLACES = "index_vector_dim = 1, start_index_map"
ARRANGEMENTS = {
    "elements": ("6xf32", "1, 1, 1", f"collapsed_slice_dims = [0, 1, 2], {PLACES} = [1, 0]"),
    "rows": ("6x3xf32", "1, 1, 3", f"offset_dims = [1], collapsed_slice_dims = [0, 1], {PLACES} = [0, 1]"),
    "offsets first": ("2x6x4x3xf32", "2, 4, 3", f"offset_dims = [0, 2, 3], {PLACES} = [0, 2]"),
    "windows": ("6x2x2x3xf32", "2, 2, 3", f"offset_dims = [1, 2, 3], {PLACES} = [0, 1]"),
}


@pytest.mark.parametrize("case", ARRANGEMENTS)
def test_gather(case: str) -> None:
    indices = np.array([[0, 0], [1, 2], [-1, 3], [4, 9], [2, -7], [100, 1]], np.int32)
    with_reference(gather(*ARRANGEMENTS[case]), numbers((5, 4, 3)), indices)


def test_gather_with_index_vectors_in_front() -> None:
    dims = "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 0"
    indices = np.array([[0, 1, 4], [3, 9, -1]], np.int64)
    with_reference(gather("3x3xf32", "1, 1, 3", dims, indices="2x3xi64"), numbers((5, 4, 3)), indices)


def test_gather_of_scalar_indices() -> None:
    dims = "offset_dims = [1, 2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    indices = np.array([4, 0, 2**63 + 1], np.uint64)
    with_reference(gather("3x4x3xf32", "1, 4, 3", dims, indices="3xui64"), numbers((5, 4, 3)), indices)


def test_gather_with_batching_dimensions() -> None:
    dims = (
        "offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [1], "
        "start_index_map = [1], index_vector_dim = 2"
    )
    indices = np.random.default_rng(0).integers(-1, 5, (2, 5, 1)).astype(np.int32)
    with_reference(gather("2x5x3xf32", "1, 1, 3", dims, indices="2x5x1xi32"), numbers((5, 4, 3)), indices)


def test_indexing_of_jax() -> None:
    def read(x: jnp.ndarray, i: jnp.ndarray) -> tuple[jnp.ndarray, ...]:
        return x[i], x[:, i[:2]], x[i, 1], jnp.take_along_axis(x, i[:, None] % 4, 1), x[i[:0]]

    with_jax(read, numbers((5, 4)), np.array([0, 4, -1, 2, 3], np.int32))
