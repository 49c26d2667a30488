"""constant and iota, on every kind of element."""

from __future__ import annotations

import numpy as np
import pytest
from ops.agree import with_reference

NUMBERS = ["f32", "f64", "f16", "bf16", "i8", "ui8", "i32", "ui64", "i4", "ui4", "complex<f32>", "complex<f64>"]


@pytest.mark.parametrize("element", NUMBERS)
def test_iota(element: str) -> None:
    text = """
    func.func @main() -> (tensor<3x4xELEMENT>, tensor<3x4xELEMENT>, tensor<0x2xELEMENT>) {
      %0 = stablehlo.iota dim = 0 : tensor<3x4xELEMENT>
      %1 = stablehlo.iota dim = 1 : tensor<3x4xELEMENT>
      %2 = stablehlo.iota dim = 1 : tensor<0x2xELEMENT>
      return %0, %1, %2 : tensor<3x4xELEMENT>, tensor<3x4xELEMENT>, tensor<0x2xELEMENT>
    }""".replace("ELEMENT", element)
    rows, columns, _ = with_reference(text)
    assert rows[2, 3].astype(np.complex128) == 2
    assert columns[2, 3].astype(np.complex128) == 3


def test_iota_wraps_and_rounds() -> None:
    text = """
    func.func @main() -> (tensor<300xi8>, tensor<300xbf16>) {
      %0 = stablehlo.iota dim = 0 : tensor<300xi8>
      %1 = stablehlo.iota dim = 0 : tensor<300xbf16>
      return %0, %1 : tensor<300xi8>, tensor<300xbf16>
    }"""
    wrapped, rounded = with_reference(text)
    assert wrapped[299] == 299 - 256
    assert rounded[299] == 300  # bf16 has 8 bits of mantissa


def test_constants_keep_their_bits() -> None:
    text = """
    func.func @main() -> (tensor<4xf32>, tensor<3xbf16>, tensor<3xi1>, tensor<2xcomplex<f32>>, tensor<2xui64>,
                          tensor<3xf8E4M3FN>, tensor<4xi4>, tensor<2x3xf32>, tensor<f64>, tensor<0xf32>) {
      %0 = stablehlo.constant dense<[-0.0, 0x7F800000, 0x7FC00001, 1.0e-45]> : tensor<4xf32>
      %1 = stablehlo.constant dense<[1.0, -0.0, 0x7F80]> : tensor<3xbf16>
      %2 = stablehlo.constant dense<[true, false, true]> : tensor<3xi1>
      %3 = stablehlo.constant dense<[(1.0, 2.0), (-0.0, 3.0)]> : tensor<2xcomplex<f32>>
      %4 = stablehlo.constant dense<[18446744073709551615, 1]> : tensor<2xui64>
      %5 = stablehlo.constant dense<[1.0, -2.0, 448.0]> : tensor<3xf8E4M3FN>
      %6 = stablehlo.constant dense<[-8, 7, -1, 0]> : tensor<4xi4>
      %7 = stablehlo.constant dense<0x7FC00001> : tensor<2x3xf32>
      %8 = stablehlo.constant dense<-0.0> : tensor<f64>
      %9 = stablehlo.constant dense<> : tensor<0xf32>
      return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<4xf32>, tensor<3xbf16>, tensor<3xi1>,
        tensor<2xcomplex<f32>>, tensor<2xui64>, tensor<3xf8E4M3FN>, tensor<4xi4>, tensor<2x3xf32>, tensor<f64>,
        tensor<0xf32>
    }"""
    got = with_reference(text)
    assert list(got[0].view(np.uint32)) == [0x80000000, 0x7F800000, 0x7FC00001, 1]
    assert got[7].view(np.uint32).tolist() == [[0x7FC00001] * 3] * 2
    assert np.signbit(got[3].real[1])
