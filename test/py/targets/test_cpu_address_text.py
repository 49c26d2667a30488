"""What is done to the text of addresses: the loops run as they did, and code generation finds no counter that steps."""

import ctypes

import numpy as np
import pytest

from stablehlo_py.targets.cpu.code.address_text import plain_addresses
from stablehlo_py.targets.cpu.code.codegen import make_object
from stablehlo_py.targets.machine_code import Code, CodegenOptions

# Adds up the rows %i + SHIFT of a matrix of two columns, backwards: buffers are the matrix and the sum.
LOOP = """
define void @kernel_entry(ptr %buffers, i64 %begin, i64 %end) {
start:
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %0 = load ptr, ptr %buffers
  %1 = load ptr, ptr %slot
  br label %2

2:
  %3 = phi i64 [ %10, %6 ], [ 0, %start ]
  %4 = phi float [ %12, %6 ], [ 0.0, %start ]
  %5 = icmp slt i64 %3, 3
  br i1 %5, label %6, label %13

6:
  %7 = add i64 %3, SHIFT
  %8 = mul i64 %7, -2
  %9 = getelementptr float, ptr %0, i64 %8
  %10 = add nuw nsw i64 %3, 1
  %11 = load float, ptr %9
  %12 = fadd float %4, %11
  br label %2

13:
  store float %4, ptr %1
  ret void
}
"""


@pytest.mark.parametrize("shift", [0, 2, -1])
def test_the_loop_computes_the_same(shift: int) -> None:
    matrix = np.arange(24, dtype=np.float32)
    result = np.zeros(1, np.float32)
    code = Code([make_object(plain_addresses(LOOP.replace("SHIFT", str(shift))), CodegenOptions())])
    buffers = (ctypes.c_void_p * 2)(matrix[12:].ctypes.data, result.ctypes.data)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code.addresses[0])(buffers, 0, 0)
    assert result[0] == sum(matrix[12 - 2 * (i + shift)] for i in range(3))


def test_a_constant_is_added_behind_the_product() -> None:
    text = plain_addresses(LOOP.replace("SHIFT", "5"))
    assert "%product8 = mul i64 %3, -2\n  %8 = add i64 %product8, -10\n" in text


def test_a_constant_beyond_64_bits_wraps() -> None:
    text = plain_addresses(LOOP.replace("SHIFT", str(1 << 62)))
    assert f"%8 = add i64 %product8, {-(1 << 63)}\n" in text


def test_a_counter_is_hidden_and_nothing_else() -> None:
    text = plain_addresses(LOOP.replace("SHIFT", "5"))
    assert "%next10 = add i64 %3, 1\n  %10 = call i64 @llvm.expect.i64(i64 %next10, i64 0)\n" in text
    assert text.count("call i64 @llvm.expect.i64") == 1
