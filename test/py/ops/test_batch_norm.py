"""batch_norm_inference, _training and _grad against formulas in f64, the gradient against JAX's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.core.types import TensorType, element_type_of

EPSILON = 1e-3
CASES = [((4, 3, 5), 1), ((3, 7), 0), ((6, 2), 1), ((2, 3, 2, 5), 3)]


def operands(shape: tuple[int, ...], feature: int, dtype: object = np.float32) -> tuple[np.ndarray, ...]:
    """x, gradient (shape); scale, offset, mean, variance (features)."""
    rng = np.random.default_rng(0)
    wide = [rng.standard_normal(shape) for _ in range(2)]
    narrow = [rng.standard_normal(shape[feature]) for _ in range(3)]
    return tuple(a.astype(dtype) for a in (*wide, *narrow, rng.uniform(0.5, 2, shape[feature])))


def run(
    op: str, feature: int, inputs: tuple[np.ndarray, ...], results: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """The op on inputs; results give the types."""
    ins = [TensorType(a.shape, element_type_of(a.dtype)) for a in inputs]
    outs = ", ".join(str(TensorType(a.shape, element_type_of(a.dtype))) for a in results)
    names = ", ".join(f"%0#{i}" for i in range(len(results))) if len(results) > 1 else "%0"
    text = f"""func.func @main({", ".join(f"%a{i}: {t}" for i, t in enumerate(ins))}) -> ({outs}) {{
      %0{f":{len(results)}" if len(results) > 1 else ""} = "stablehlo.{op}"({", ".join(f"%a{i}" for i in range(len(ins)))})
        {{epsilon = {EPSILON} : f32, feature_index = {feature} : i64}} : ({", ".join(map(str, ins))}) -> ({outs})
      return {names} : {outs}
    }}"""
    return stablehlo_py.compile(text)(*inputs)


def along(values: np.ndarray, rank: int, feature: int) -> np.ndarray:
    """A vector of features against the operand's dimensions."""
    return values.astype(np.float64).reshape([-1 if d == feature else 1 for d in range(rank)])


@pytest.mark.parametrize(("shape", "feature"), CASES)
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e-6), (ml_dtypes.bfloat16, 1e-2)])
def test_inference(shape: tuple[int, ...], feature: int, dtype: object, most: float) -> None:
    x, _, scale, offset, mean, variance = operands(shape, feature, dtype)
    (got,) = run("batch_norm_inference", feature, (x, scale, offset, mean, variance), (x,))
    s, o, m, v = (along(a, len(shape), feature) for a in (scale, offset, mean, variance))
    wanted = (x.astype(np.float64) - m) / np.sqrt(v + EPSILON) * s + o
    np.testing.assert_allclose(got.astype(np.float64), wanted, rtol=most, atol=most)


@pytest.mark.parametrize(("shape", "feature"), CASES)
def test_training(shape: tuple[int, ...], feature: int) -> None:
    x, _, scale, offset, mean, variance = operands(shape, feature)
    got = run("batch_norm_training", feature, (x, scale, offset), (x, mean, variance))
    axes = tuple(d for d in range(len(shape)) if d != feature)
    m, v = x.mean(axes, np.float64), x.astype(np.float64).var(axes)
    s, o, mm, vv = (along(a, len(shape), feature) for a in (scale, offset, m, v))
    for ours, wanted in zip(got, ((x - mm) / np.sqrt(vv + EPSILON) * s + o, m, v), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("shape", "feature"), CASES)
def test_grad(shape: tuple[int, ...], feature: int) -> None:
    x, g, scale, offset, _, _ = operands(shape, feature)
    axes = tuple(d for d in range(len(shape)) if d != feature)
    m, v = x.mean(axes, np.float64).astype(np.float32), x.astype(np.float64).var(axes).astype(np.float32)
    got = run("batch_norm_grad", feature, (x, scale, m, v, g), (x, scale, offset))

    def normalized(x: jax.Array, scale: jax.Array, offset: jax.Array) -> jax.Array:
        mean = x.mean(axes, keepdims=True)
        variance = ((x - mean) ** 2).mean(axes, keepdims=True)
        place = [-1 if d == feature else 1 for d in range(len(shape))]
        return (x - mean) / jnp.sqrt(variance + EPSILON) * scale.reshape(place) + offset.reshape(place)

    with jax.enable_x64(True):
        _, pull = jax.vjp(normalized, *(jnp.asarray(a, np.float64) for a in (x, scale, offset)))
        wanted = pull(jnp.asarray(g, np.float64))
    for ours, theirs in zip(got, wanted, strict=True):
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=1e-5, atol=1e-5)
