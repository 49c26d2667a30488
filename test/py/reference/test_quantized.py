"""Quantized tensors: rounding, ranges, axes, and ops on what the integers stand for."""

from __future__ import annotations

import numpy as np
import pytest
from reference.judges import one, run

from stablehlo_py.core.quantization import quantization
from stablehlo_py.core.types import element_type
from stablehlo_py.errors import BadInput


def round_trip(element: str, x: np.ndarray) -> list[float]:
    shape = "x".join(map(str, x.shape))
    real, small = f"tensor<{shape}xf32>", f"tensor<{shape}x{element}>"
    text = (
        f"%q = stablehlo.uniform_quantize %a : ({real}) -> {small}\n"
        f"%r = stablehlo.uniform_dequantize %q : ({small}) -> {real}"
    )
    return one(text, f"{real} -> {real}", x).tolist()


def test_rounds_to_even_and_clamps():
    x = np.array([0.25, 0.75, 1.25, -0.25, 1000.0, -1000.0, 3.0], np.float32)
    assert round_trip("!quant.uniform<i8:f32, 0.5>", x) == [0, 1, 1, 0, 63.5, -64, 3]
    assert round_trip("!quant.uniform<u8:f32, 0.5:10>", x) == [0, 1, 1, 0, 122.5, -5, 3]
    assert round_trip("!quant.uniform<i8<-3:3>:f32, 1.0>", x) == [0, 1, 1, 0, 3, -3, 3]


def test_one_scale_for_each_slice():
    x = np.array([[1.3, 1.3], [-2.6, -2.6]], np.float32)
    assert round_trip("!quant.uniform<i8:f32:1, {1.0, 0.5:3}>", x) == [[1, 1.5], [-3, -2.5]]


def test_products_and_moves():
    text = """
      func.func @main(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> {
        %x = stablehlo.uniform_quantize %a : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.5:-2>>
        %y = stablehlo.uniform_quantize %b : (tensor<3x2xf32>) -> tensor<3x2x!quant.uniform<i8:f32, 0.25>>
        %z = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
          : (tensor<2x3x!quant.uniform<i8:f32, 0.5:-2>>, tensor<3x2x!quant.uniform<i8:f32, 0.25>>)
          -> tensor<2x2x!quant.uniform<i32:f32, 0.125>>
        %t = stablehlo.transpose %z, dims = [1, 0]
          : (tensor<2x2x!quant.uniform<i32:f32, 0.125>>) -> tensor<2x2x!quant.uniform<i32:f32, 0.125>>
        %r = stablehlo.uniform_dequantize %t : (tensor<2x2x!quant.uniform<i32:f32, 0.125>>) -> tensor<2x2xf32>
        return %r : tensor<2x2xf32>
      }"""
    a = np.array([[0.5, 1, -1.5], [2, 0, 3]], np.float32)
    b = np.array([[0.25, 1], [-0.5, 2], [0.75, -0.25]], np.float32)
    np.testing.assert_array_equal(run(text, a, b)[0], (a @ b).T)


def test_types():
    parsed = quantization("!quant.uniform<u8<1:200>:f32:2, {0.1:3,0.2:4}>")
    assert (parsed.storage, parsed.axis, parsed.low, parsed.high) == (element_type("ui8"), 2, 1, 200)
    assert parsed.zero_points == (3, 4) and parsed.scales[0] == float(np.float32(0.1))
    with pytest.raises(BadInput, match="not supported"):
        quantization("!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1}, {0.2}}>")
