"""Grouped convolutions of types that are packed in another form: each group has its own kernel, in every layout."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py


@pytest.mark.parametrize("outputs", [4, 8, 64])
@pytest.mark.parametrize("element", ["f32", "bf16", "f16", "i8"])
def test_groups_in_the_rows_of_a_tile(element: str, outputs: int) -> None:
    result = "i32" if element == "i8" else element
    text = f"""
func.func @main(%x: tensor<2x3x{element}>, %w: tensor<1x{outputs}x{element}>) -> tensor<{outputs}x3x{result}> {{
  %0 = "stablehlo.convolution"(%x, %w) {{
    dimension_numbers = #stablehlo.conv<[f, b]x[i, o]->[f, b]>, batch_group_count = 1 : i64, feature_group_count = 2 : i64
  }} : (tensor<2x3x{element}>, tensor<1x{outputs}x{element}>) -> tensor<{outputs}x3x{result}>
  return %0 : tensor<{outputs}x3x{result}>
}}"""
    executable = stablehlo_py.compile(text, cache=False)
    dtype = executable.program.arguments[0].numpy
    x, w = np.array([[2, 1, 0], [3, -1, 4]]).astype(dtype), (np.arange(outputs)[None] % 8).astype(dtype)
    (found,) = executable(x, w)
    groups = [np.outer(part, row) for part, row in zip(np.split(w[0].astype(int), 2), x.astype(int), strict=True)]
    np.testing.assert_array_equal(np.asarray(found).astype(int), np.concatenate(groups))
