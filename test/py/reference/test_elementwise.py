"""Elementwise rules: special values, wrapping, rounding once, and JAX's results on every dtype."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from reference.judges import agrees_with_jax, numbers, one

BF16 = ml_dtypes.bfloat16
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64")
SHAPES = ((), (0,), (1,), (7,), (2, 0, 3), (1, 2, 1, 3, 1, 2))


@pytest.mark.parametrize("shape", SHAPES)
def test_any_shape(shape):
    a, b = numbers(shape), numbers(shape, seed=1)
    agrees_with_jax(lambda a, b: (a + b, a * b, jnp.maximum(a, b)), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_arithmetic_wraps(dtype):
    a, b = numbers((64,), dtype), numbers((64,), dtype, seed=1)
    agrees_with_jax(
        lambda a, b: (a + b, a - b, a * b, -a, lax.sign(a), a & b, a | b, a ^ b, ~a, jnp.minimum(a, b)), a, b
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_division_by_everything(dtype):
    info = np.iinfo(dtype)
    corners = np.array([info.min, info.max, 0, 1, 2, 7, info.max - 1, info.min + 1], dtype)
    if info.min < 0:
        corners = np.concatenate([corners, np.array([-1, -2, -7], dtype)])
    a, b = (x.ravel() for x in np.meshgrid(corners, corners))
    agrees_with_jax(lambda a, b: (lax.div(a, b), lax.rem(a, b)), a, b)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    a = np.concatenate([numbers((32,), dtype), np.array([0, 1, np.iinfo(dtype).max], dtype)])
    amount = np.arange(35).astype(dtype) * 2
    agrees_with_jax(
        lambda a, n: (
            lax.shift_left(a, n),
            lax.shift_right_logical(a, n),
            lax.shift_right_arithmetic(a, n),
            lax.population_count(a),
            lax.clz(a),
        ),
        a,
        amount,
    )


def test_four_bits_wrap():
    a = np.arange(-8, 8).astype(np.int8).astype(ml_dtypes.int4)
    text = "%r = stablehlo.add %a, %a : tensor<16xi4>"
    got = one(text, "tensor<16xi4> -> tensor<16xi4>", a)
    assert got.astype(int).tolist() == [((2 * x + 8) % 16) - 8 for x in range(-8, 8)]
    shifted = one(
        "%r = stablehlo.shift_right_logical %a, %b : tensor<16xi4>",
        "tensor<16xi4>, tensor<16xi4> -> tensor<16xi4>",
        a,
        np.ones(16, ml_dtypes.int4),
    )
    assert shifted.astype(int).tolist() == [(x % 16) >> 1 for x in range(-8, 8)]


def special(dtype: object) -> np.ndarray:
    with np.errstate(over="ignore"):
        return SPECIAL.astype(dtype)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e38, 0.49999997])


@pytest.mark.parametrize("dtype", ("float16", BF16, "float32", "float64"))
def test_special_values(dtype):
    x = special(dtype)
    agrees_with_jax(
        lambda x: (
            jnp.abs(x),
            jnp.ceil(x),
            jnp.floor(x),
            lax.round(x),
            lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        ),
        x,
    )
    agrees_with_jax(lambda x: (lax.sign(x), lax.is_finite(x), -x), x)


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_extrema_order_nan_and_signed_zeros(dtype):
    a, b = (x.ravel() for x in np.meshgrid(special(dtype), special(dtype)))
    n = len(a)
    ty = {"float16": "f16", "float32": "f32", "float64": "f64"}[dtype]
    high = one(
        f"%r = stablehlo.maximum %a, %b : tensor<{n}x{ty}>",
        f"tensor<{n}x{ty}>, tensor<{n}x{ty}> -> tensor<{n}x{ty}>",
        a,
        b,
    )
    either = np.isnan(a) | np.isnan(b)
    assert np.isnan(high[either]).all()
    assert (high[~either] >= a[~either]).all() and (high[~either] >= b[~either]).all()
    zeros = ~either & (a == 0) & (b == 0)
    assert (np.signbit(high[zeros]) == (np.signbit(a[zeros]) & np.signbit(b[zeros]))).all()


UNARY = (
    "exp",
    "exp2",
    "log",
    "log1p",
    "expm1",
    "tanh",
    "sin",
    "cos",
    "tan",
    "sqrt",
    "cbrt",
    "arcsin",
    "arccos",
    "arctan",
    "sinh",
    "cosh",
    "arcsinh",
    "arccosh",
    "arctanh",
)


@pytest.mark.parametrize("name", UNARY)
def test_functions_are_those_of_jax(name):
    x = np.linspace(0.05, 0.95, 37).astype(np.float32)
    function = getattr(jnp, name)
    agrees_with_jax(function, x + 1 if name == "arccosh" else x, rtol=2e-6)
    agrees_with_jax(function, (x + 1 if name == "arccosh" else x).astype(np.float64), rtol=1e-13)


@pytest.mark.parametrize("name", ("exp", "log", "sqrt", "tanh", "sin", "cos", "log1p", "expm1"))
def test_complex_functions(name):
    x = numbers((50,), np.complex128)
    agrees_with_jax(getattr(jnp, name), x, rtol=1e-13)


def test_complex_arithmetic():
    a, b = numbers((50,), np.complex128), numbers((50,), np.complex128, seed=1)
    agrees_with_jax(lambda a, b: (a + b, a * b, a / b, jnp.abs(a), jnp.conj(a), a**b, lax.sign(a)), a, b, rtol=1e-13)


@given(st.integers(0, 2**16 - 1), st.integers(0, 2**16 - 1))
def test_bfloat16_is_rounded_once(left, right):
    a, b = (np.array(x, np.uint16).view(BF16) for x in (left, right))
    got = one("%r = stablehlo.multiply %a, %b : tensor<bf16>", "tensor<bf16>, tensor<bf16> -> tensor<bf16>", a, b)
    with np.errstate(all="ignore"):
        exact = np.float64(a) * np.float64(b)  # 16 bits: f32 holds it but for the range
        rounded = np.float64(np.float32(exact).astype(BF16))
    np.testing.assert_array_equal(np.float64(got), rounded)


def test_power_of_integers():
    base = np.array([0, 1, -1, 2, -3, 7, 0, 1, -1, -1, 2], np.int32)
    exponent = np.array([0, 5, 3, 31, 3, 40, 3, -2, -2, -3, -1], np.int32)
    got = one(
        "%r = stablehlo.power %a, %b : tensor<11xi32>",
        "tensor<11xi32>, tensor<11xi32> -> tensor<11xi32>",
        base,
        exponent,
    )
    assert got.tolist() == [1, 1, -1, -(2**31), -27, (7**40 + 2**31) % 2**32 - 2**31, 0, 1, 1, -1, 0]


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
@pytest.mark.parametrize("bits", ((5, 10), (8, 7), (4, 3), (2, 1), (5, 2)))
def test_reduce_precision(dtype, bits):
    x = np.concatenate([special(dtype), np.array([*np.linspace(-5, 5, 41), 65504, 7e-5, 1e-7, 448, 1e-3], dtype)])
    agrees_with_jax(lambda x: lax.reduce_precision(x, *bits), x)


def test_clamp_and_select():
    x = numbers((5, 3))
    agrees_with_jax(lambda x: (lax.clamp(np.float32(-0.5), x, np.float32(0.5)), jnp.where(x > 0, x, -x)), x)
