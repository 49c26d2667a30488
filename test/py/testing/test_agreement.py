"""Agreement: integers exactly, floats as far as rounding carries, NaN with NaN, and nothing that a wrong rule gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference.interpreter import interpret
from stablehlo_py.testing.agreement import differences

EXP_OF_SUM = """
func.func @main(%x: tensor<64xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<64xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}"""
ADD = """
func.func @main(%x: tensor<4xELEMENT>) -> tensor<4xELEMENT> {
  %0 = stablehlo.add %x, %x : tensor<4xELEMENT>
  return %0 : tensor<4xELEMENT>
}"""


def judged(text: str, x: np.ndarray, change) -> list[str]:
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        want = [np.asarray(r) for r in interpret(module, x)]
        return differences(module, [x], [np.asarray(change(w)).astype(w.dtype) for w in want], want)


@pytest.mark.parametrize(("factor", "good"), [(1 + 1e-7, True), (1 + 1e-3, False), (np.nan, False)])
def test_sum_of_exponentials(factor, good):
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    assert (judged(EXP_OF_SUM, x, lambda w: w * np.float32(factor)) == []) == good


@pytest.mark.parametrize(
    "call", ["chlo.sinh %x : tensor<4xf32>", "stablehlo.custom_call @mhlo.sinh(%x) : (tensor<4xf32>)"]
)
def test_functions_in_disguise_are_inexact_too(call):
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{ %0 = {call} -> tensor<4xf32> return %0 : tensor<4xf32> }}"
    x = np.array([1, 2, -3, 4], np.float32)
    assert judged(text, x, lambda w: np.nextafter(w, np.float32(99))) == []
    assert judged(text, x, lambda w: w * np.float32(1.0001))


def test_exact_ops_are_exact():
    x = np.array([1, 2, -0.0, np.nan], np.float32)
    text = ADD.replace("ELEMENT", "f32")
    assert judged(text, x, lambda w: w) == []
    assert judged(text, x, lambda w: np.nextafter(w, np.float32(9)))
    assert judged(text, x, lambda w: w + np.float32(0))  # the sign of a zero counts
    assert judged(text, x, lambda w: np.nan_to_num(w))


def test_integers_are_exact():
    x = np.array([1, 2, 3, 2**31 - 1], np.int32)
    assert judged(ADD.replace("ELEMENT", "i32"), x, lambda w: w) == []
    said = judged(ADD.replace("ELEMENT", "i32"), x, lambda w: w + np.array([0, 1, 0, 0], np.int32))
    assert "first at [1]: 5 instead of 4" in said[0]


PRODUCT = """
func.func @main(%x: tensor<6xf32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = stablehlo.reduce(%x init: %one) applies stablehlo.multiply across dimensions = [0]
    : (tensor<6xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}"""


def test_products_may_leave_the_range_in_one_order_only():
    """1e-30 * 1e-30 is zero in f32, whatever follows; the same numbers in another order are not."""
    x = np.array([1e-30, 1e-30, 1e30, 1e30, 2, 3], np.float32)
    assert judged(PRODUCT, x, lambda w: w * 0) == []
    calm = np.array([0.5, 2, 3, 5, 7, 0.1], np.float32)
    assert judged(PRODUCT, calm, lambda w: w * np.float32(1 + 1e-7)) == []
    assert judged(PRODUCT, calm, lambda w: w * 0)
    assert judged(PRODUCT, calm, lambda w: w * np.float32(1.001))


SCATTER = """
func.func @main(%x: tensor<2xELEMENT>) -> tensor<2xELEMENT> {
  %i = stablehlo.constant dense<0> : tensor<3x1xi32>
  %u = stablehlo.constant dense<[8.0, 0.25, 0.25]> : tensor<3xELEMENT>
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
  ^bb0(%a: tensor<ELEMENT>, %b: tensor<ELEMENT>):
    %p = stablehlo.multiply %a, %b : tensor<ELEMENT>
    stablehlo.return %p : tensor<ELEMENT>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0],
      index_vector_dim = 1>} : (tensor<2xELEMENT>, tensor<3x1xi32>, tensor<3xELEMENT>) -> tensor<2xELEMENT>
  return %0 : tensor<2xELEMENT>
}"""


def test_scatter_rounds_each_update():
    """4 * 8 is beyond the largest f8E3M4: infinite, whatever else is scattered there."""
    x = np.array([4, 1], ml_dtypes.float8_e3m4)
    text = SCATTER.replace("ELEMENT", "f8E3M4")
    with new_context(), ir.Location.unknown():
        (want,) = interpret(ir.Module.parse(text), x)
    assert np.isposinf(want.astype(np.float32)[0])
    (got,) = stablehlo_py.compile(text, cache=False)(x)
    np.testing.assert_array_equal(np.asarray(got).view(np.uint8), want.view(np.uint8))


QUANTIZED = """
func.func @main(%x: tensor<200x!quant.uniform<i8:f32, 0.015625>>) -> tensor<200x!quant.uniform<i8:f32, 0.0078125>> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<200x!quant.uniform<i8:f32, 0.015625>>) -> tensor<200xf32>
  %1 = stablehlo.uniform_quantize %0 : (tensor<200xf32>) -> tensor<200x!quant.uniform<i8:f32, 0.0078125>>
  %2 = stablehlo.OP %1 : tensor<200x!quant.uniform<i8:f32, 0.0078125>>
  return %2 : tensor<200x!quant.uniform<i8:f32, 0.0078125>>
}"""


@pytest.mark.parametrize("op", ["tanh", "abs"])
def test_stored_integers_are_exact_but_at_a_half(op):
    """What a function gives is rounded to an integer: another one where the function is off by an ULP, at most."""
    x = np.arange(-100, 100, dtype=np.int8)
    text = QUANTIZED.replace("OP", op)
    assert judged(text, x, lambda w: w) == []
    assert judged(text, x, lambda w: w + np.int8(1))
