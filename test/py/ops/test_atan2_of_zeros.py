"""atan2 of two zeros, known when the program is compiled or not: MLIR's own folding gives NaN."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py import compile

ZEROS = [(y, x) for y in (0.0, -0.0) for x in (0.0, -0.0)]


@pytest.mark.parametrize(("y", "x"), ZEROS)
@pytest.mark.parametrize("element", ["f32", "f64", "f16"])
def test_of_constants(element, y, x):
    dtype = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[element]
    text = f"""
    func.func @main(%a: tensor<{element}>, %b: tensor<{element}>) -> (tensor<{element}>, tensor<{element}>) {{
      %y = stablehlo.constant dense<{y}> : tensor<{element}>
      %x = stablehlo.constant dense<{x}> : tensor<{element}>
      %0 = stablehlo.atan2 %y, %x : tensor<{element}>
      %1 = stablehlo.atan2 %a, %b : tensor<{element}>
      return %0, %1 : tensor<{element}>, tensor<{element}>
    }}"""
    wanted = np.arctan2(dtype(y), dtype(x))
    for result in compile(text, cache=False)(np.asarray(y, dtype), np.asarray(x, dtype)):
        assert result == wanted
        assert np.signbit(result) == np.signbit(wanted)
