"""Dense linear algebra (cholesky, triangular_solve) and batch normalisation, in f64 with one rounding."""

from __future__ import annotations

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.folding import Arrays
from stablehlo_py.ops.evaluate.numeric import narrow, wide


@evaluate("stablehlo.cholesky")
def evaluate_cholesky(op: Op, a: np.ndarray) -> np.ndarray:
    """L with L L^H = a, or its conjugate transpose where `lower` is false; NaN where a is not positive definite.

    Only the triangle named by `lower` is read; the other one of the result is 0.
    """
    lower = op.flag("lower")
    given = wide(a) if lower else np.conj(np.swapaxes(wide(a), -1, -2))
    n = a.shape[-1]
    factor = np.zeros_like(given)
    for j in range(n):
        rest = given[..., j:, j] - (factor[..., j:, :j] @ np.conj(factor[..., j, :j, None]))[..., 0]
        pivot = np.real(rest[..., :1])
        factor[..., j:, j] = rest / np.sqrt(np.where(pivot > 0, pivot, np.nan))
    broken = np.asarray(np.isnan(np.diagonal(factor, axis1=-2, axis2=-1)).any(-1))[..., None, None]
    factor = np.where(broken & np.tri(n, dtype=bool), np.nan, factor)
    return narrow(factor if lower else np.conj(np.swapaxes(factor, -1, -2)), op.type.element.dtype)


@evaluate("stablehlo.triangular_solve")
def evaluate_triangular_solve(op: Op, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """x with op(a) x = b, or x op(a) = b where left_side is false, by substitution."""
    matrix, right = wide(a), wide(b)
    lower, transpose = op.flag("lower"), op.enum("transpose_a", "NO_TRANSPOSE")
    n = a.shape[-1]
    matrix = np.where(np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T, matrix, 0)
    if op.flag("unit_diagonal"):
        matrix = np.where(np.eye(n, dtype=bool), 1, matrix)
    if transpose != "NO_TRANSPOSE":
        matrix, lower = np.swapaxes(matrix, -1, -2), not lower
    if transpose == "ADJOINT":
        matrix = np.conj(matrix)
    if not op.flag("left_side"):  # x A = b is A^T x^T = b^T
        matrix, right, lower = np.swapaxes(matrix, -1, -2), np.swapaxes(right, -1, -2), not lower
    x = np.zeros_like(right)
    for i in range(n) if lower else reversed(range(n)):
        known = (matrix[..., i : i + 1, :] @ x)[..., 0, :]
        x[..., i, :] = (right[..., i, :] - known) / matrix[..., i, i, None]
    return narrow(x if op.flag("left_side") else np.swapaxes(x, -1, -2), op.type.element.dtype)


def _per_feature(x: np.ndarray, like: np.ndarray, axis: int) -> np.ndarray:
    """[features] -> the shape that broadcasts over the other dimensions of `like`."""
    return wide(x).reshape([-1 if d == axis else 1 for d in range(like.ndim)])


@evaluate("stablehlo.batch_norm_inference")
def evaluate_batch_norm_inference(
    op: Op, operand: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, variance: np.ndarray
) -> np.ndarray:
    """scale * (operand - mean) / sqrt(variance + epsilon) + offset."""
    axis, epsilon = op.integer("feature_index"), op.number("epsilon")
    scale, offset, mean, variance = (_per_feature(x, operand, axis) for x in (scale, offset, mean, variance))
    result = scale * (wide(operand) - mean) / np.sqrt(variance + epsilon) + offset
    return narrow(result, op.type.element.dtype)


@evaluate("stablehlo.batch_norm_training")
def evaluate_batch_norm_training(op: Op, operand: np.ndarray, scale: np.ndarray, offset: np.ndarray) -> Arrays:
    """(normalised operand, mean, variance) with the statistics of the operand itself."""
    axis, epsilon = op.integer("feature_index"), op.number("epsilon")
    others = tuple(d for d in range(operand.ndim) if d != axis)
    x = wide(operand)
    mean, variance = x.mean(others, keepdims=True), x.var(others, keepdims=True)
    result = _per_feature(scale, x, axis) * (x - mean) / np.sqrt(variance + epsilon) + _per_feature(offset, x, axis)
    return tuple(
        narrow(r, t.element.dtype) for r, t in zip((result, mean.ravel(), variance.ravel()), op.types, strict=True)
    )


@evaluate("stablehlo.batch_norm_grad")
def evaluate_batch_norm_grad(
    op: Op, operand: np.ndarray, scale: np.ndarray, mean: np.ndarray, variance: np.ndarray, grad_output: np.ndarray
) -> Arrays:
    """(gradient of operand, of scale, of offset) of batch_norm_training."""
    axis, epsilon = op.integer("feature_index"), op.number("epsilon")
    others = tuple(d for d in range(operand.ndim) if d != axis)
    x, grad = wide(operand), wide(grad_output)
    centered = x - _per_feature(mean, x, axis)
    deviation = np.sqrt(_per_feature(variance, x, axis) + epsilon)
    grad_offset = grad.sum(others, keepdims=True)
    weighted = (grad * centered).sum(others, keepdims=True)
    count = x.size / max(x.shape[axis], 1)
    inner = grad * count - grad_offset - centered * weighted / deviation**2
    grad_operand = _per_feature(scale, x, axis) * inner / (count * deviation)
    grad_scale = weighted / deviation
    results = grad_operand, grad_scale.ravel(), grad_offset.ravel()
    return tuple(narrow(r, t.element.dtype) for r, t in zip(results, op.types, strict=True))
