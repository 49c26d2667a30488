"""Cholesky, triangular solves, Fourier transforms and batch normalisation."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from reference.judges import agrees_with_jax, numbers, one, run


def positive(n: int, dtype: object) -> np.ndarray:
    a = numbers((2, n, n), dtype)
    return a @ np.conj(np.swapaxes(a, -1, -2)) + n * np.eye(n)


@pytest.mark.parametrize("dtype,name", ((np.float64, "f64"), (np.complex128, "complex<f64>")))
@pytest.mark.parametrize("n", (0, 1, 5))
@pytest.mark.parametrize("lower", (True, False))
def test_cholesky(dtype, name, n, lower):
    a = positive(n, dtype)
    ty = f"tensor<2x{n}x{n}x{name}>"
    triangle = np.tril(a) if lower else np.triu(a)  # the other half must not be read
    got = one(f"%r = stablehlo.cholesky %a, lower = {str(lower).lower()} : {ty}", f"{ty} -> {ty}", triangle)
    adjoint = np.conj(np.swapaxes(got, -1, -2))
    np.testing.assert_allclose(got @ adjoint if lower else adjoint @ got, a, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(got, np.tril(got) if lower else np.triu(got))


def test_cholesky_of_what_has_none_is_nan():
    a = np.array([[1.0, 2.0], [2.0, 1.0]])
    got = one("%r = stablehlo.cholesky %a, lower = true : tensor<2x2xf64>", "tensor<2x2xf64> -> tensor<2x2xf64>", a)
    assert np.isnan(got[np.tril_indices(2)]).all()


@pytest.mark.parametrize("left", (True, False))
@pytest.mark.parametrize("lower", (True, False))
@pytest.mark.parametrize("transpose", ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
@pytest.mark.parametrize("unit", (True, False))
def test_triangular_solve(left, lower, transpose, unit):
    a, b = numbers((3, 4, 4), np.complex128) + 3 * np.eye(4), numbers((3, 4, 2) if left else (3, 2, 4), np.complex128)
    shape = "x".join(map(str, b.shape))
    ta, tb = "tensor<3x4x4xcomplex<f64>>", f"tensor<{shape}xcomplex<f64>>"
    text = (
        f'%r = "stablehlo.triangular_solve"(%a, %b) {{left_side = {str(left).lower()}, lower = {str(lower).lower()}, '
        f"unit_diagonal = {str(unit).lower()}, transpose_a = #stablehlo<transpose {transpose}>}} : ({ta}, {tb}) -> {tb}"
    )
    got = one(text, f"{ta}, {tb} -> {tb}", a, b)
    used = np.tril(a) if lower else np.triu(a)
    if unit:
        used[:, range(4), range(4)] = 1
    used = {"NO_TRANSPOSE": used, "TRANSPOSE": np.swapaxes(used, 1, 2), "ADJOINT": np.conj(np.swapaxes(used, 1, 2))}[
        transpose
    ]
    np.testing.assert_allclose(used @ got if left else got @ used, b, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("shape", ((8,), (2, 7), (3, 4, 5)))
def test_fft(shape):
    x, z = numbers(shape, np.float64), numbers(shape, np.complex128)
    agrees_with_jax(lambda z: (jnp.fft.fftn(z), jnp.fft.ifftn(z)), z, rtol=1e-12)
    agrees_with_jax(lambda x: jnp.fft.rfftn(x), x, rtol=1e-12)
    agrees_with_jax(lambda z: jnp.fft.irfft(z, 6), z, rtol=1e-12)


def test_batch_norm():
    x, grad = numbers((5, 3, 2), np.float64), numbers((5, 3, 2), np.float64, seed=1)
    scale, offset = np.array([1.0, 2.0, 0.5]), np.array([0.0, -1.0, 3.0])
    mean, variance = x.mean((0, 2)), x.var((0, 2))
    ta, tf = "tensor<5x3x2xf64>", "tensor<3xf64>"
    options = "{epsilon = 0.125 : f32, feature_index = 1 : i64}"
    shaped = [v[None, :, None] for v in (scale, offset, mean, variance)]
    wanted = shaped[0] * (x - shaped[2]) / np.sqrt(shaped[3] + 0.125) + shaped[1]
    got = one(
        f'%r = "stablehlo.batch_norm_inference"(%a, %b, %c, %d, %e) {options} : ({ta}, {tf}, {tf}, {tf}, {tf}) -> {ta}',
        f"{ta}, {tf}, {tf}, {tf}, {tf} -> {ta}",
        x,
        scale,
        offset,
        mean,
        variance,
    )
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    trained = run(
        f"func.func @main(%a: {ta}, %b: {tf}, %c: {tf}) -> ({ta}, {tf}, {tf}) {{\n"
        f'%r:3 = "stablehlo.batch_norm_training"(%a, %b, %c) {options} : ({ta}, {tf}, {tf}) -> ({ta}, {tf}, {tf})\n'
        f"return %r#0, %r#1, %r#2 : {ta}, {tf}, {tf} }}",
        x,
        scale,
        offset,
    )
    for ours, theirs in zip(trained, (wanted, mean, variance), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    grads = run(
        f"func.func @main(%a: {ta}, %b: {tf}, %c: {tf}, %d: {tf}, %e: {ta}) -> ({ta}, {tf}, {tf}) {{\n"
        f'%r:3 = "stablehlo.batch_norm_grad"(%a, %b, %c, %d, %e) {options} '
        f": ({ta}, {tf}, {tf}, {tf}, {ta}) -> ({ta}, {tf}, {tf})\n"
        f"return %r#0, %r#1, %r#2 : {ta}, {tf}, {tf} }}",
        x,
        scale,
        mean,
        variance,
        grad,
    )
    for ours, theirs in zip(grads, _gradients(x, scale, offset, grad), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def _gradients(x: np.ndarray, scale: np.ndarray, offset: np.ndarray, grad: np.ndarray) -> list[np.ndarray]:
    import jax

    def normalised(x, scale, offset):
        mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
        return scale[None, :, None] * (x - mean) / jnp.sqrt(variance + 0.125) + offset[None, :, None]

    with jax.enable_x64(True):
        return [np.asarray(g) for g in jax.vjp(normalised, x, scale, offset)[1](grad)]
