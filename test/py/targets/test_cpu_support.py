"""What LLVM calls by name is there and right: f64 to f16 rounded once, also halfway between two numbers and beside."""

from __future__ import annotations

import ctypes

import numpy as np

import stablehlo_py
from stablehlo_py.runtime.executor import KERNEL
from stablehlo_py.targets import machine_code
from stablehlo_py.targets.cpu.code import codegen, support

LOOP = """
declare double @llvm.fabs.f64(double)
define void @kernel_entry(ptr %buffers, i64 %begin, i64 %end) {
entry:
  %from = load ptr, ptr %buffers
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %to = load ptr, ptr %slot
  br label %loop
loop:
  %i = phi i64 [%begin, %entry], [%next, %loop]
  %source = getelementptr double, ptr %from, i64 %i
  %x = load double, ptr %source
  %half = call half @__truncdfhf2(double %x)
  %target = getelementptr half, ptr %to, i64 %i
  store half %half, ptr %target
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def test_f64_to_f16():
    text = LOOP + support.support_for(LOOP)
    code = machine_code.Code([codegen.make_object(text, machine_code.CodegenOptions())])
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    exact = halves[np.isfinite(halves)].astype(np.float64)
    near = np.concatenate([exact, (exact[:-1] + exact[1:]) / 2, [np.nan, 1e300, 5e-324, 65520.0]])
    with np.errstate(over="ignore", invalid="ignore"):
        x = np.concatenate([near, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)])
        wanted = x.astype(np.float16)
    found = np.zeros(len(x), np.float16)
    buffers = (ctypes.c_void_p * 2)(x.ctypes.data, found.ctypes.data)
    KERNEL(code.addresses[0])(ctypes.addressof(buffers), 0, len(x))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


def test_a_program_in_which_llvm_joins_two_conversions():
    program = """
func.func @main(%x: tensor<1xf16>) -> tensor<1xf16> {
  %0 = stablehlo.atan2 %x, %x : tensor<1xf16>
  %1 = stablehlo.exponential_minus_one %0 : tensor<1xf16>
  return %1 : tensor<1xf16>
}"""
    executable = stablehlo_py.compile(program, cache=False)
    x = np.array([0.3], np.float16)
    angle = np.arctan2(x.astype(np.float64), x.astype(np.float64)).astype(np.float16)
    np.testing.assert_array_equal(executable(x)[0], np.expm1(angle.astype(np.float64)).astype(np.float16))
