"""Readers look through small transpositions: one kernel, and every element from where it was."""

from __future__ import annotations

import numpy as np

import stablehlo_py

CUBE, SQUARE = "tensor<4x4x3xf32>", "tensor<4x4xf32>"


def test_transposed_operands_and_iotas_of_a_row_program():
    text = f"""
func.func @main(%x: {CUBE}, %y: tensor<3x4x4xf32>) -> ({CUBE}, {SQUARE}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %places = stablehlo.iota dim = 1 : {CUBE}
  %turned = stablehlo.transpose %places, dims = [1, 0, 2] : ({CUBE}) -> {CUBE}
  %other = stablehlo.transpose %y, dims = [2, 1, 0] : (tensor<3x4x4xf32>) -> {CUBE}
  %sine = stablehlo.sine %x : {CUBE}
  %sum = stablehlo.add %sine, %other : {CUBE}
  %product = stablehlo.multiply %sum, %turned : {CUBE}
  %row = stablehlo.reduce(%product init: %zero) applies stablehlo.add across dimensions = [2]
    : ({CUBE}, tensor<f32>) -> {SQUARE}
  return %product, %row : {CUBE}, {SQUARE}
}}"""
    executable = stablehlo_py.compile(text, cache=False)
    assert len(executable.program.kernels) == 1
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4, 4, 3)).astype(np.float32), rng.normal(size=(3, 4, 4)).astype(np.float32)
    product, row = executable(x, y)
    expected = (np.sin(x) + y.transpose(2, 1, 0)) * np.arange(4, dtype=np.float32)[:, None, None]
    np.testing.assert_allclose(product, expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(row, expected.sum(2), rtol=1e-6, atol=1e-6)


def test_a_transposition_between_two_elementwise_groups():
    text = """
func.func @main(%x: tensor<5x7xf32>, %y: tensor<7x5xf32>) -> tensor<7x5xf32> {
  %0 = stablehlo.sine %x : tensor<5x7xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<5x7xf32>) -> tensor<7x5xf32>
  %2 = stablehlo.multiply %1, %y : tensor<7x5xf32>
  %3 = stablehlo.add %2, %1 : tensor<7x5xf32>
  return %3 : tensor<7x5xf32>
}"""
    executable = stablehlo_py.compile(text, cache=False)
    assert len(executable.program.kernels) == 2
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(5, 7)).astype(np.float32), rng.normal(size=(7, 5)).astype(np.float32)
    np.testing.assert_allclose(executable(x, y)[0], np.sin(x).T * y + np.sin(x).T, rtol=1e-6, atol=1e-6)
