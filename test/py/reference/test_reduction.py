"""Reductions and windows: known bodies, bodies of several operands, order, and the edges of windows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers, one, run


@pytest.mark.parametrize(
    "shape,axes", [((7,), (0,)), ((3, 5, 2), (0, 2)), ((0, 3), (0,)), ((2, 0), (0,)), ((1, 2, 1, 3, 1, 2), (1, 3, 5))]
)
def test_known_bodies(shape, axes):
    x = numbers(shape, np.float64)
    agrees_with_jax(lambda x: (jnp.sum(x, axes), jnp.prod(x, axes)), x, rtol=1e-13)
    if all(shape[a] for a in axes):
        agrees_with_jax(lambda x: (jnp.max(x, axes), jnp.min(x, axes)), x)


@pytest.mark.parametrize("dtype", ("int8", "uint32", "bool"))
def test_integers_and_booleans(dtype):
    x = numbers((5, 7), dtype)
    agrees_with_jax(lambda x: (jnp.max(x, 0), jnp.min(x, 1), jnp.any(x, 0), jnp.all(x, 1)), x)
    if dtype != "bool":
        zero = np.dtype(dtype).type(0)
        agrees_with_jax(lambda x: lax.reduce(x, zero, lax.add, (0,)), x)
        agrees_with_jax(lambda x: lax.reduce(x, zero, lax.bitwise_xor, (1,)), x)


@pytest.mark.parametrize("length", (1, 5, 1500))
def test_several_operands(length):
    x = numbers((3, length))
    x[1, length // 2] = np.nan
    agrees_with_jax(lambda x: (jnp.argmax(x, 1), jnp.argmin(x, 0)), x)


def test_the_order_is_that_of_the_elements():
    text = """
      func.func @main(%a: tensor<4xi32>, %b: tensor<i32>) -> tensor<i32> {
        %r = stablehlo.reduce(%a init: %b) across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
          reducer(%x: tensor<i32>, %y: tensor<i32>) {
            %ten = stablehlo.constant dense<10> : tensor<i32>
            %m = stablehlo.multiply %x, %ten : tensor<i32>
            %s = stablehlo.add %m, %y : tensor<i32>
            stablehlo.return %s : tensor<i32>
          }
        return %r : tensor<i32>
      }"""
    assert int(run(text, np.array([1, 2, 3, 4], np.int32), np.int32(0))[0]) == 1234


def test_a_body_that_is_no_elementwise_one():
    text = """
      func.func @main(%a: tensor<2x3xf32>, %b: tensor<f32>) -> tensor<2xf32> {
        %r = stablehlo.reduce(%a init: %b) across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
          reducer(%x: tensor<f32>, %y: tensor<f32>) {
            %p = stablehlo.compare GT, %y, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>
            %s = "stablehlo.if"(%p) ({
              stablehlo.return %y : tensor<f32>
            }, {
              stablehlo.return %x : tensor<f32>
            }) : (tensor<i1>) -> tensor<f32>
            stablehlo.return %s : tensor<f32>
          }
        return %r : tensor<2xf32>
      }"""
    x = np.array([[1, 5, 2], [-3, -4, -9]], np.float32)
    assert run(text, x, np.float32(-100))[0].tolist() == [5, -3]


def test_sums_of_small_floats_are_rounded_once():
    x = np.full(4096, 1.0, ml_dtypes.bfloat16)
    agrees_with_jax(lambda x: jnp.sum(x), x)


@pytest.mark.parametrize(
    "window,strides,padding,base,dilation",
    [
        ((1, 3), (1, 2), ((0, 0), (1, 2)), (1, 1), (1, 1)),
        ((2, 2), (2, 1), ((0, 1), (3, 0)), (2, 1), (1, 3)),
        ((3, 1), (1, 1), ((-1, 2), (-1, -1)), (1, 2), (2, 1)),
        ((9, 9), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    ],
)
def test_reduce_window(window, strides, padding, base, dilation):
    x = numbers((5, 7), np.float64)
    options = (window, strides, padding, base, dilation)
    agrees_with_jax(lambda x: lax.reduce_window(x, 0.0, lax.add, *options), x, rtol=1e-13)
    agrees_with_jax(lambda x: lax.reduce_window(x, -np.inf, lax.max, *options), x)


def test_cumulative():
    x = numbers((3, 11), np.float64)
    agrees_with_jax(
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1), lax.cumlogsumexp(x, 1)), x, rtol=1e-12
    )


@pytest.mark.parametrize("padding", ("SAME", "VALID"))
def test_gradient_of_max_pool_is_select_and_scatter(padding):
    def pooled(x):
        return jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 2), padding) ** 2)

    agrees_with_jax(jax.grad(pooled), numbers((2, 7, 6), np.float64), rtol=1e-13)


def test_select_and_scatter_overlaps_add_up():
    text = """
      %r = "stablehlo.select_and_scatter"(%a, %b, %c) ({
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %p = stablehlo.compare GE, %x, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1>
      }, {
        ^bb0(%x: tensor<i32>, %y: tensor<i32>):
          %s = stablehlo.add %x, %y : tensor<i32>
          stablehlo.return %s : tensor<i32>
      }) {window_dimensions = array<i64: 3>, window_strides = array<i64: 1>,
          padding = dense<[[1, 1]]> : tensor<1x2xi64>}
        : (tensor<5xi32>, tensor<5xi32>, tensor<i32>) -> tensor<5xi32>"""
    signature = "tensor<5xi32>, tensor<5xi32>, tensor<i32> -> tensor<5xi32>"
    operand = np.array([1, 9, 2, -3, -3], np.int32)
    got = one(text, signature, operand, np.array([1, 10, 100, 1000, 10000], np.int32), np.int32(7))
    assert got.tolist() == [7, 118, 1007, 10007, 7]


def test_map():
    text = """
      %r = "stablehlo.map"(%a, %b) ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.subtract %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>"""
    a, b = numbers((3, 2)), numbers((3, 2), seed=1)
    np.testing.assert_array_equal(one(text, "tensor<3x2xf32>, tensor<3x2xf32> -> tensor<3x2xf32>", a, b), a - b)
