"""Agreement: integers exactly, floats as far as rounding carries, NaN with NaN, and nothing that a wrong rule gives."""

from __future__ import annotations

import numpy as np
import pytest

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
