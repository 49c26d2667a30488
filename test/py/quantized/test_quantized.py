"""Quantized programs, compiled: what the integers stand for, and the reference interpreter as the judge."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ops.agree import with_reference

import stablehlo_py
from stablehlo_py import BadInput

PLAIN = "!quant.uniform<i8:f32, 0.5:-3>"
NARROW = "!quant.uniform<u8<3:200>:f32, 0.1:100>"
COLUMNS = "!quant.uniform<i8:f32:1, {0.5:1, 0.25:-2, 2.0}>"
ROWS = "!quant.uniform<i8:f32:0, {0.5:1, 0.25:-2, 2.0}>"


def quantize(element: str, x: np.ndarray) -> np.ndarray:
    shape = "x".join(map(str, x.shape))
    return with_reference(
        f"""func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}x{element}> {{
              %q = stablehlo.uniform_quantize %x : (tensor<{shape}xf32>) -> tensor<{shape}x{element}>
              return %q : tensor<{shape}x{element}>
            }}""",
        x,
    )[0]


def test_rounds_to_even_clamps_and_takes_nan_for_zero():
    x = np.array([0.25, 0.75, -0.25, 1e9, -1e9, np.inf, -np.inf, np.nan], np.float32)
    stored = quantize("!quant.uniform<i8:f32, 0.5:4>", x)
    assert stored.dtype == np.int8
    assert stored.tolist() == [4, 6, 4, 127, -128, 127, -128, 0]


def test_results_are_arrays_of_the_storage_type():
    assert quantize(NARROW, np.array([-100, 0, 100, np.nan], np.float32)).tolist() == [3, 100, 200, 3]
    assert quantize(NARROW, np.zeros(3, np.float32)).dtype == np.uint8
    assert quantize("!quant.uniform<i16:f32, 0.5>", np.ones(2, np.float32)).dtype == np.int16
    assert quantize("!quant.uniform<i4:f32, 1.0>", np.array([9, -9], np.float32)).dtype == ml_dtypes.int4


def test_one_scale_for_each_slice():
    stored = quantize(COLUMNS, np.full((2, 3), 1.0, np.float32))
    assert stored.tolist() == [[3, 2, 0], [3, 2, 0]]


def test_arguments_are_arrays_of_the_storage_type():
    text = f"""func.func @main(%a: tensor<4x3x{COLUMNS}>, %b: tensor<3x4x{ROWS}>) -> (tensor<3x4x{ROWS}>, tensor<4x3xi1>) {{
      %t = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x3x{COLUMNS}>) -> tensor<3x4x{ROWS}>
      %s = stablehlo.add %t, %b : tensor<3x4x{ROWS}>
      %u = stablehlo.uniform_quantize %a : (tensor<4x3x{COLUMNS}>) -> tensor<4x3x{NARROW}>
      %v = stablehlo.multiply %u, %u : tensor<4x3x{NARROW}>
      %c = stablehlo.compare LT, %u, %v : (tensor<4x3x{NARROW}>, tensor<4x3x{NARROW}>) -> tensor<4x3xi1>
      return %s, %c : tensor<3x4x{ROWS}>, tensor<4x3xi1>
    }}"""
    a = (np.arange(12, dtype=np.int8) * 9 - 50).reshape(4, 3)
    total, _ = with_reference(text, a, np.arange(12, dtype=np.int8).reshape(3, 4))
    assert total.dtype == np.int8
    with pytest.raises(TypeError, match="argument 0 is float32"):
        stablehlo_py.compile(text)(a.astype(np.float32), a)


def test_products_of_two_quantized_tensors_and_of_one():
    left, wide = "!quant.uniform<i8:f32, 0.5:-2>", "!quant.uniform<i32:f32, 0.125>"
    right, columns = "!quant.uniform<i8:f32, 0.25>", "!quant.uniform<i8<-127:127>:f32:1, {0.5, 0.25, 2.0}>"
    text = f"""func.func @main(%a: tensor<5x3x{left}>, %b: tensor<3x3x{right}>, %c: tensor<3x3x{columns}>)
        -> (tensor<5x3x{wide}>, tensor<5x3xf32>) {{
      %real = stablehlo.uniform_dequantize %a : (tensor<5x3x{left}>) -> tensor<5x3xf32>
      %both = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<5x3x{left}>, tensor<3x3x{right}>) -> tensor<5x3x{wide}>
      %one = stablehlo.dot_general %real, %c, contracting_dims = [1] x [0]
        : (tensor<5x3xf32>, tensor<3x3x{columns}>) -> tensor<5x3xf32>
      return %both, %one : tensor<5x3x{wide}>, tensor<5x3xf32>
    }}"""
    a, b = np.arange(-7, 8, dtype=np.int8).reshape(5, 3), np.arange(-4, 5, dtype=np.int8).reshape(3, 3)
    both, one = with_reference(text, a, b, b)
    real = (a.astype(np.float32) + 2) * 0.5
    np.testing.assert_array_equal(both * 0.125, real @ (b * 0.25))
    np.testing.assert_array_equal(one, real @ (b * np.array([0.5, 0.25, 2.0], np.float32)))


def test_loops_and_reductions_carry_what_is_stored():
    text = f"""func.func @main(%a: tensor<4x5x{PLAIN}>, %init: tensor<{PLAIN}>) -> tensor<4x{PLAIN}> {{
      %sum = stablehlo.reduce(%a init: %init) across dimensions = [1]
        : (tensor<4x5x{PLAIN}>, tensor<{PLAIN}>) -> tensor<4x{PLAIN}>
        reducer(%x: tensor<{PLAIN}>, %y: tensor<{PLAIN}>) {{
          %s = stablehlo.add %x, %y : tensor<{PLAIN}>
          stablehlo.return %s : tensor<{PLAIN}>
        }}
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %three = stablehlo.constant dense<3> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %x = %sum) : tensor<i32>, tensor<4x{PLAIN}>
        cond {{
          %c = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        }} do {{
          %j = stablehlo.add %i, %one : tensor<i32>
          %y = stablehlo.add %x, %x : tensor<4x{PLAIN}>
          stablehlo.return %j, %y : tensor<i32>, tensor<4x{PLAIN}>
        }}
      return %r#1 : tensor<4x{PLAIN}>
    }}"""
    a = np.array([[-3, -2, -4, -3, -1], [0] * 5, [-6, -3, -3, -3, -3], [100] * 5], np.int8)
    (result,) = with_reference(text, a, np.array(-3, np.int8))
    assert result.tolist() == [13, 117, -27, 127]  # -3 stands for 0, and sums saturate


def test_small_storage_and_bfloat16():
    element = "!quant.uniform<i4:bf16, 0.3:1>"
    text = f"""func.func @main(%a: tensor<7xbf16>) -> tensor<7xbf16> {{
      %q = stablehlo.uniform_quantize %a : (tensor<7xbf16>) -> tensor<7x{element}>
      %t = stablehlo.tanh %q : tensor<7x{element}>
      %r = stablehlo.uniform_dequantize %t : (tensor<7x{element}>) -> tensor<7xbf16>
      return %r : tensor<7xbf16>
    }}"""
    (result,) = with_reference(text, np.arange(-3, 4).astype(ml_dtypes.bfloat16))
    assert result[3] == 0 and np.all(np.diff(result.astype(np.float32)) >= 0)


def test_constants_of_unsigned_storage():
    text = f"""func.func @main(%a: tensor<3x{NARROW}>) -> tensor<3x{NARROW}> {{
      %c = stablehlo.constant() <{{value = dense<[-56, 7, -126]> : tensor<3xi8>}}> : () -> tensor<3x{NARROW}>
      %s = stablehlo.maximum %a, %c : tensor<3x{NARROW}>
      return %s : tensor<3x{NARROW}>
    }}"""
    (result,) = stablehlo_py.compile(text)(np.array([3, 150, 90], np.uint8))
    assert result.tolist() == [200, 150, 130]  # -56 and -126 are the bytes of 200 and 130


@pytest.mark.parametrize("expected, holds", [("[1.0, 1.5]", True), ("[1.0, 1.25]", False)])
def test_programs_that_check_themselves(expected: str, holds: bool):
    text = f"""func.func @main() -> (tensor<2xf32>, tensor<i1>) {{
      %x = stablehlo.constant dense<[0.9, 1.6]> : tensor<2xf32>
      %e = stablehlo.constant dense<{expected}> : tensor<2xf32>
      %q = stablehlo.uniform_quantize %x : (tensor<2xf32>) -> tensor<2x{PLAIN}>
      %r = stablehlo.uniform_dequantize %q : (tensor<2x{PLAIN}>) -> tensor<2xf32>
      %c = stablehlo.custom_call @check.eq(%e, %r) : (tensor<2xf32>, tensor<2xf32>) -> tensor<i1>
      return %r, %c : tensor<2xf32>, tensor<i1>
    }}"""
    result, verdict = stablehlo_py.compile(text)()
    assert result.tolist() == [1.0, 1.5]
    assert verdict.item() is holds


def test_other_quantizations_are_refused():
    element = "!quant.uniform<i8:f32:{0:1, 1:2}, {{0.1}, {0.2}}>"
    text = f"""func.func @main(%a: tensor<2x2x{element}>) -> tensor<2x2x{element}> {{
      return %a : tensor<2x2x{element}>
    }}"""
    with pytest.raises(BadInput, match="is not supported"):
        stablehlo_py.compile(text)
