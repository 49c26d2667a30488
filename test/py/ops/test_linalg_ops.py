"""cholesky and triangular_solve: what they promise, checked by multiplying back."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.core.types import TensorType, element_type_of

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(shape: tuple[int, ...], dtype: type, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def tolerance(dtype: type) -> float:
    return 2e-6 if dtype in (np.float32, np.complex64) else 1e-14


def kind(array: np.ndarray) -> TensorType:
    return TensorType(array.shape, element_type_of(array.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(dtype: type, lower: bool) -> None:
    """Only the triangle that is named is read; the other one of the result is zero."""
    half = random((2, 5, 5), dtype)
    a = half @ half.conj().swapaxes(-1, -2) + 5 * np.eye(5, dtype=dtype)
    triangle = np.tril(np.ones((5, 5), bool)) if lower else np.triu(np.ones((5, 5), bool))
    given = np.where(triangle, a, 7).astype(dtype)
    text = f"""func.func @main(%a: {kind(a)}) -> {kind(a)} {{
      %0 = stablehlo.cholesky %a, lower = {str(lower).lower()} : {kind(a)}
      return %0 : {kind(a)}
    }}"""
    (factor,) = stablehlo_py.compile(text)(given)
    assert (factor[:, ~triangle] == 0).all()
    adjoint = factor.conj().swapaxes(-1, -2)
    back = factor @ adjoint if lower else adjoint @ factor
    np.testing.assert_allclose(back, a, rtol=0, atol=tolerance(dtype) * np.abs(a).max())


def test_cholesky_of_what_has_none() -> None:
    a = np.array([[1, 0], [0, -1]], np.float32)
    text = f"""func.func @main(%a: {kind(a)}) -> {kind(a)} {{
      %0 = stablehlo.cholesky %a, lower = true : {kind(a)}
      return %0 : {kind(a)}
    }}"""
    assert np.isnan(stablehlo_py.compile(text)(a)[0]).any()


@pytest.mark.parametrize("transpose", ["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
def test_triangular_solve(transpose: str) -> None:
    """All flags in one program: sides, triangles, unit diagonals."""
    a = random((2, 4, 4), np.complex64) + 3 * np.eye(4, dtype=np.complex64)
    left, right = random((2, 4, 3), np.complex64, 1), random((2, 3, 4), np.complex64, 2)
    flags = list(itertools.product((True, False), repeat=3))  # left_side, lower, unit_diagonal
    lines, results = [], []
    for i, (left_side, lower, unit) in enumerate(flags):
        ty = kind(left if left_side else right)
        operand = "%l" if left_side else "%r"
        attributes = f"left_side = {left_side}, lower = {lower}, unit_diagonal = {unit}".lower()
        lines.append(
            f'%{i} = "stablehlo.triangular_solve"(%a, {operand}) {{{attributes},'
            f" transpose_a = #stablehlo<transpose {transpose}>}} : ({kind(a)}, {ty}) -> {ty}\n"
        )
        results.append(str(ty))
    text = f"""func.func @main(%a: {kind(a)}, %l: {kind(left)}, %r: {kind(right)}) -> ({", ".join(results)}) {{
      {"".join(lines)}
      return {", ".join(f"%{i}" for i in range(len(flags)))} : {", ".join(results)}
    }}"""
    for (left_side, lower, unit), x in zip(flags, stablehlo_py.compile(text)(a, left, right), strict=True):
        t = (np.tril(a) if lower else np.triu(a)).astype(np.complex128)
        if unit:
            t[:, range(4), range(4)] = 1
        t = {"NO_TRANSPOSE": t, "TRANSPOSE": t.swapaxes(-1, -2), "ADJOINT": t.conj().swapaxes(-1, -2)}[transpose]
        back, b = (t @ x, left) if left_side else (x @ t, right)
        np.testing.assert_allclose(back, b, rtol=0, atol=4e-6 * np.abs(x).max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_triangular_solve_dtypes(dtype: type) -> None:
    a, b = random((6, 6), dtype) + 3 * np.eye(6, dtype=dtype), random((6, 1), dtype, 1)
    text = f"""func.func @main(%a: {kind(a)}, %b: {kind(b)}) -> {kind(b)} {{
      %0 = "stablehlo.triangular_solve"(%a, %b) {{left_side = true, lower = true, unit_diagonal = false,
        transpose_a = #stablehlo<transpose NO_TRANSPOSE>}} : ({kind(a)}, {kind(b)}) -> {kind(b)}
      return %0 : {kind(b)}
    }}"""
    (x,) = stablehlo_py.compile(text)(a, b)
    np.testing.assert_allclose(np.tril(a) @ x, b, rtol=0, atol=tolerance(dtype) * np.abs(x).max())
