"""Sparse products and perturbed tridiagonal systems."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py import UnsupportedOp
from stablehlo_py.custom_calls import CustomCall
from stablehlo_py.custom_calls.host import run_on_arrays
from stablehlo_py.runtime.program import ArrayType

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def call(name: str, inputs: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    types = tuple(ArrayType(x.shape, x.dtype.name) for x in inputs)
    (result,) = run_on_arrays(CustomCall(name, {}, types, (ArrayType(shape, inputs[-1].dtype.name),)), inputs)
    return result


def numbers(dtype: type, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def dense_matrix(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray) -> np.ndarray:
    return np.diag(diagonal) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_tridiagonal_systems_that_need_pivoting(dtype, n):
    lower, diagonal, upper = (numbers(dtype, 2, 3, n, seed=seed) for seed in range(3))
    diagonal[..., ::2] *= 0.1
    b = numbers(dtype, 2, 3, n, 2, seed=3)
    x = call("tridiagonal_solve_perturbed_ffi", [lower, diagonal, upper, b], b.shape)
    for place in np.ndindex(2, 3):
        matrix = dense_matrix(lower[place], diagonal[place], upper[place])
        scale = np.linalg.cond(matrix) * np.abs(b[place]).max()
        np.testing.assert_allclose(matrix @ x[place], b[place], atol=8 * np.finfo(dtype).eps * scale)


@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_systems_stay_finite_and_point_along_the_null_space(dtype):
    lower, diagonal, upper = (np.array(row, dtype) for row in ([0, 1, 0], [1, 1, 3], [1, 0, 0]))
    x = call("tridiagonal_solve_perturbed_ffi", [lower, diagonal, upper, np.array([[1], [2], [3]], dtype)], (3, 1))
    assert np.isfinite(x).all()
    direction = x[:, 0] / np.linalg.norm(x)
    np.testing.assert_allclose(np.abs(direction), np.array([1, 1, 0]) / np.sqrt(2), atol=1e-5)


def test_a_system_of_zeros_stays_finite():
    zeros = np.zeros(4)
    assert np.isfinite(call("tridiagonal_solve_perturbed_ffi", [zeros, zeros, zeros, np.ones((4, 1))], (4, 1))).all()


def test_tridiagonal_shapes_are_checked():
    with pytest.raises(UnsupportedOp, match="three diagonals"):
        call("tridiagonal_solve_perturbed_ffi", [np.ones(3), np.ones(3), np.ones(2), np.ones((3, 1))], (3, 1))


@pytest.mark.parametrize("dtype", [*DTYPES, np.int32, np.int64])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_sparse_matrix_times_a_dense_one(dtype, columns):
    data = np.arange(1, 6).astype(dtype)
    pointers, places = np.int32([0, 2, 2, 5]), np.int32([1, 3, 0, 0, 2])  # a place twice: its values add up
    matrix = np.zeros((3, 4), dtype)
    np.add.at(matrix, (np.int32([0, 0, 2, 2, 2]), places), data)
    dense = np.arange(np.prod((4, *columns))).reshape(4, *columns).astype(dtype)
    result = call("cpu_csr_sparse_dense_ffi", [data, pointers, places, dense], (3, *columns))
    np.testing.assert_array_equal(result, matrix @ dense)


@pytest.mark.parametrize(
    ("pointers", "places"), [([0, 1, 3], [0, 9]), ([0, 5, 2], [0, 1]), ([0, 1, 2], [0, -1]), ([-1, 0, 2], [0, 1])]
)
def test_indices_outside_are_an_error(pointers, places):
    inputs = [np.ones(2), np.int32(pointers), np.int32(places), np.ones(3)]
    with pytest.raises(ValueError, match="not sound"):
        call("cpu_csr_sparse_dense_ffi", inputs, (2,))
