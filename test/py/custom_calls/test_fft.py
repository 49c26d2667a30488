"""The Fourier transforms of exports of 2023: descriptors as JAX wrote them, and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.custom_calls import CustomCall
from stablehlo_py.custom_calls.host import run_on_arrays
from stablehlo_py.runtime.program import ArrayType

# shape [3, 4] and its strides, axis 1, forward, scale 1; complex to complex
STATIC = bytes.fromhex(
    "18000000140024000000000008000C001000140007001800140000000000000154000000380000001C00000010000000"
    "000000000000F03F0000000001000000010000000200000004000000000000000100000000000000000000000200000004"
    "000000000000000100000000000000000000000200000003000000000000000400000000000000"
)
# rank 2, axis 1, forward
DYNAMIC = bytes([20, 0, 0, 0, 0, 0, 14, 0, 16, 0, 8, 0, 0, 0, 0, 0, 12, 0, 7, 0, 14, 0, 0, 0, 0, 0, 0, 1])
DYNAMIC += bytes([2, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def backward(descriptor: bytes, at: int) -> bytes:
    return descriptor[:at] + b"\0" + descriptor[at + 1 :]


def call(name: str, inputs: list[np.ndarray], shape: tuple[int, ...], dtype: str) -> np.ndarray:
    types = tuple(ArrayType(x.shape, x.dtype.name) for x in inputs)
    (result,) = run_on_arrays(CustomCall(name, {}, types, (ArrayType(shape, dtype),)), inputs)
    return result


def dynamic(operand: np.ndarray, shape: tuple[int, ...], dtype: str, descriptor: bytes, scale: float) -> np.ndarray:
    ignored = np.int32([0, 0])
    inputs = [np.frombuffer(descriptor, np.uint8), operand, ignored, ignored, ignored, np.array([scale]), ignored]
    return call("dynamic_ducc_fft", inputs, shape, dtype)


def operand(dtype: str) -> np.ndarray:
    return np.arange(12).reshape(3, 4).astype(dtype)


def test_the_static_form():
    result = call("ducc_fft", [np.frombuffer(STATIC, np.uint8), operand("complex64")], (3, 4), "complex64")
    np.testing.assert_allclose(result, np.fft.fft(operand("complex64")), rtol=1e-6)


def test_the_form_with_sizes_as_operands():
    result = dynamic(operand("complex64"), (3, 4), "complex64", DYNAMIC, 1.0)
    np.testing.assert_allclose(result, np.fft.fft(operand("complex64")), rtol=1e-6)


def test_backwards_with_a_scale():
    result = dynamic(operand("complex128"), (3, 4), "complex128", backward(DYNAMIC, 27), 0.25)
    np.testing.assert_allclose(result, np.fft.ifft(operand("complex128")), rtol=1e-14)


def test_real_numbers_on_one_side():
    spectrum = dynamic(operand("float64"), (3, 3), "complex128", DYNAMIC, 1.0)
    np.testing.assert_allclose(spectrum, np.fft.rfft(operand("float64")), rtol=1e-14)
    back = dynamic(spectrum, (3, 4), "float64", backward(DYNAMIC, 27), 0.25)
    np.testing.assert_allclose(back, operand("float64"), atol=1e-14)


@pytest.mark.parametrize("length", [0, 3, 20, 40])
def test_damaged_descriptors(length):
    with pytest.raises(ValueError, match="damaged"):
        call("ducc_fft", [np.frombuffer(STATIC[:length], np.uint8), operand("complex64")], (3, 4), "complex64")
