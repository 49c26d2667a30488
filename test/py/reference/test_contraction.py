"""dot_general and convolution against JAX and against sums written out."""

from __future__ import annotations

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers, one


@pytest.mark.parametrize("dtype", ("float32", "float64", "complex64", "int32", "uint8", "bool"))
def test_products_of_every_kind(dtype):
    a, b = numbers((3, 5, 7), dtype), numbers((3, 7, 2), dtype, seed=1)
    exact = np.dtype(dtype).kind in "iub"
    agrees_with_jax(lambda a, b: jnp.matmul(a, b), a, b, rtol=0.0 if exact else 1e-6)


@pytest.mark.parametrize(
    "lhs,rhs,dims",
    [
        ((5,), (5,), (((0,), (0,)), ((), ()))),
        ((2, 3, 4), (4, 3, 5), (((1, 2), (1, 0)), ((), ()))),
        ((2, 3, 4), (3, 4, 2), (((2,), (1,)), ((1, 0), (0, 2)))),
        ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
        ((0, 4), (4, 3), (((1,), (0,)), ((), ()))),
        ((2, 3), (4,), (((), ()), ((), ()))),
        ((1, 2, 1, 3, 1, 2), (2, 3, 1, 1, 2, 1), (((1, 3), (0, 1)), ((5,), (4,)))),
    ],
)
def test_dimension_numbers(lhs, rhs, dims):
    agrees_with_jax(
        lambda a, b: lax.dot_general(a, b, dims), numbers(lhs, np.float64), numbers(rhs, np.float64), rtol=1e-14
    )


def test_small_floats_are_summed_before_they_are_rounded():
    a = np.full((1, 4096), 1.0, ml_dtypes.bfloat16)
    got = one(
        "%r = stablehlo.dot %a, %b : (tensor<1x4096xbf16>, tensor<4096x1xbf16>) -> tensor<1x1xbf16>",
        "tensor<1x4096xbf16>, tensor<4096x1xbf16> -> tensor<1x1xbf16>",
        a,
        a.reshape(4096, 1),
    )
    assert float(got[0, 0]) == 4096.0


CONVOLUTIONS = {
    "plain": {"lhs": (2, 3, 7, 8), "rhs": (4, 3, 3, 2), "padding": ((0, 0), (0, 0))},
    "strides and padding": {
        "lhs": (1, 2, 9, 7),
        "rhs": (3, 2, 3, 3),
        "padding": ((1, 2), (0, 3)),
        "window_strides": (2, 3),
    },
    "lhs dilation": {"lhs": (1, 2, 5, 4), "rhs": (3, 2, 3, 3), "padding": ((2, 2), (1, 1)), "lhs_dilation": (2, 3)},
    "rhs dilation": {"lhs": (1, 2, 9, 9), "rhs": (3, 2, 3, 2), "padding": ((0, 0), (1, 1)), "rhs_dilation": (2, 3)},
    "negative padding": {
        "lhs": (1, 2, 9, 9),
        "rhs": (3, 2, 2, 2),
        "padding": ((-1, -2), (-1, 1)),
        "lhs_dilation": (1, 2),
    },
    "feature groups": {"lhs": (2, 6, 5, 5), "rhs": (4, 3, 2, 2), "padding": ((0, 0), (0, 0)), "feature_group_count": 2},
    "depthwise": {"lhs": (2, 4, 5, 5), "rhs": (8, 1, 3, 3), "padding": ((1, 1), (1, 1)), "feature_group_count": 4},
    "batch groups": {"lhs": (4, 3, 5, 5), "rhs": (6, 3, 2, 2), "padding": ((0, 0), (0, 0)), "batch_group_count": 2},
    "window larger than input": {"lhs": (1, 1, 2, 2), "rhs": (1, 1, 3, 3), "padding": ((0, 0), (0, 0))},
    "no batch": {"lhs": (0, 1, 4, 4), "rhs": (1, 1, 3, 3), "padding": ((0, 0), (0, 0))},
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    options = {"window_strides": (1, 1)} | CONVOLUTIONS[name]
    lhs, rhs = numbers(options.pop("lhs"), np.float64), numbers(options.pop("rhs"), np.float64, seed=1)
    agrees_with_jax(lambda a, b: lax.conv_general_dilated(a, b, **options), lhs, rhs, rtol=1e-13)


@pytest.mark.parametrize("layout", (("NHWC", "HWIO", "NHWC"), ("CHWN", "IHWO", "HWNC"), ("HNCW", "OWIH", "WCNH")))
def test_convolution_layouts(layout):
    order = {"N": 2, "C": 3, "H": 7, "W": 6}
    window = {"O": 4, "I": 3, "H": 3, "W": 2}
    lhs = numbers(tuple(order[c] for c in layout[0]), np.float64)
    rhs = numbers(tuple(window[c] for c in layout[1]), np.float64, seed=1)
    agrees_with_jax(
        lambda a, b: lax.conv_general_dilated(a, b, (1, 2), "SAME", dimension_numbers=layout), lhs, rhs, rtol=1e-13
    )


def test_window_reversal():
    text = (
        "%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {reverse = [true]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} "
        ": (tensor<1x1x4xi32>, tensor<1x1x2xi32>) -> tensor<1x1x3xi32>"
    )
    got = one(
        text,
        "tensor<1x1x4xi32>, tensor<1x1x2xi32> -> tensor<1x1x3xi32>",
        np.array([[[1, 2, 3, 4]]], np.int32),
        np.array([[[10, 1]]], np.int32),
    )
    assert got.ravel().tolist() == [21, 32, 43]
