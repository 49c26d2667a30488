"""chlo: special functions against SciPy and JAX, neighbours, predicates and the forms that broadcast."""

from __future__ import annotations

import jax.numpy as jnp
import jax.scipy.special as jsp
import ml_dtypes
import numpy as np
import pytest
from reference.judges import agrees_with_jax, numbers, one


@pytest.mark.parametrize("name", ("erf", "erfc", "gammaln", "digamma", "i1e"))
def test_special_functions(name):
    x = np.linspace(0.1, 4, 40)
    agrees_with_jax(getattr(jsp, name), x, rtol=1e-7)


def test_erf_inv_and_zeta():
    agrees_with_jax(jsp.erfinv, np.linspace(-0.95, 0.95, 21), rtol=1e-6)
    x, q = np.linspace(1.5, 5, 15), np.linspace(0.5, 7, 15)
    agrees_with_jax(jsp.zeta, x, q, rtol=1e-9)
    agrees_with_jax(lambda n, x: jsp.polygamma(n, x), np.arange(5), np.linspace(0.5, 3, 5), rtol=1e-9)


def test_poles():
    x = np.array([0.0, -1.0, -2.0, 0.5])
    got = one("%r = chlo.digamma %a : tensor<4xf64> -> tensor<4xf64>", "tensor<4xf64> -> tensor<4xf64>", x)
    assert np.isnan(got[:3]).all() and np.isclose(got[3], -1.9635100260214235)


@pytest.mark.parametrize("name", ["erf_inv", "erf", "bessel_i1e", "asinh", "atanh", "sinh", "tan"])
def test_odd_functions_keep_the_sign_of_zero(name):
    x = np.array([0.0, -0.0])
    got = one(f"%r = chlo.{name} %a : tensor<2xf64> -> tensor<2xf64>", "tensor<2xf64> -> tensor<2xf64>", x)
    assert np.signbit(got).tolist() == [False, True]


@pytest.mark.parametrize(
    "dtype,name", ((np.float16, "f16"), (np.float32, "f32"), (np.float64, "f64"), (ml_dtypes.bfloat16, "bf16"))
)
def test_next_after(dtype, name):
    line = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0]).astype(dtype)
    a, b = (x.ravel() for x in np.meshgrid(line, line))
    ty = f"tensor<64x{name}>"
    got = one(f"%r = chlo.next_after %a, %b : {ty}, {ty} -> {ty}", f"{ty}, {ty} -> {ty}", a, b)
    np.testing.assert_array_equal(got.astype(np.float64), np.nextafter(a, b).astype(np.float64))


def test_predicates():
    x = np.array([np.inf, -np.inf, np.nan, 0, 1], np.float32)
    agrees_with_jax(lambda x: (jnp.isposinf(x), jnp.isneginf(x), jnp.isinf(x)), x)
    ty = "tensor<5xf32> -> tensor<5xi1>"
    assert one(f"%r = chlo.is_inf %a : {ty}", ty, x).tolist() == [True, True, False, False, False]
    assert one(f"%r = chlo.is_neg_inf %a : {ty}", ty, x).tolist() == [False, True, False, False, False]


def test_broadcasting_forms():
    a, b = np.arange(3, dtype=np.int32), np.array([[10], [20]], np.int32)
    signature = "tensor<3xi32>, tensor<2x1xi32> -> tensor<2x3xi32>"
    got = one("%r = chlo.broadcast_add %a, %b : (tensor<3xi32>, tensor<2x1xi32>) -> tensor<2x3xi32>", signature, a, b)
    np.testing.assert_array_equal(got, a + b)
    compared = (
        "%r = chlo.broadcast_compare %a, %b {comparison_direction = #chlo<comparison_direction LT>} "
        ": (tensor<3xi32>, tensor<2x1xi32>) -> tensor<2x3xi1>"
    )
    np.testing.assert_array_equal(one(compared, signature.replace("2x3xi32", "2x3xi1"), a, b), a < b)
    first = (
        "%r = chlo.broadcast_multiply %a, %b {broadcast_dimensions = array<i64: 0>} "
        ": (tensor<2xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>"
    )
    x, y = np.array([2, 3], np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)
    np.testing.assert_array_equal(one(first, "tensor<2xi32>, tensor<2x3xi32> -> tensor<2x3xi32>", x, y), x[:, None] * y)


@pytest.mark.parametrize("dtype,name", ((np.int32, "i32"), (np.uint64, "ui64"), (np.int64, "i64"), (np.int8, "i8")))
def test_upper_half_of_a_product(dtype, name):
    a, b = numbers((9,), dtype), numbers((9,), dtype, seed=1)
    ty = f"tensor<9x{name}>"
    got = one(f"%r = chlo.mulhi %a, %b : {ty}, {ty} -> {ty}", f"{ty}, {ty} -> {ty}", a, b)
    bits = 8 * a.itemsize
    assert got.tolist() == [int(x) * int(y) >> bits for x, y in zip(a, b, strict=True)]
