"""The guarded executor: right programs run as ever, and a kernel that leaves its buffers is caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.runtime.program import ArrayType, Buffer, Launch, Program
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.machine_code import Code, CodegenOptions
from stablehlo_py.testing.guard import GuardedExecutor, OutOfBounds, guarded_call

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's libc")

KERNEL = """
define void @kernel_entry(ptr %buffers, i64 %begin, i64 %end) {{
  %slot = getelementptr ptr, ptr %buffers, i64 1
  %result = load ptr, ptr %slot
  %place = getelementptr float, ptr %result, i64 {place}
  store float 1.0, ptr %place
  ret void
}}
"""


def stray(elements: int, place: int) -> np.ndarray:
    """Run a kernel that writes one float `place` elements into a result of `elements`."""
    code = Code([codegen.make_object(KERNEL.format(place=place), CodegenOptions())])
    kernel = stablehlo_py.compile(PROGRAM.format(n=elements), cache=False).program.kernels[0]
    ty = ArrayType((elements,), "float32")
    buffers = (Buffer(0, 4 * elements, "argument", 0), Buffer(1, 4 * elements, "result", 0))
    program = Program(buffers, (Launch(0, (0, 1), 0, 1),), (kernel,), arguments=(ty,), results=(ty,))
    result = np.zeros(elements, np.float32)
    GuardedExecutor(program, code.addresses, owner=code).run([np.zeros(elements, np.float32)], [result])
    return result


PROGRAM = (
    "func.func @main(%x: tensor<{n}xf32>) -> tensor<{n}xf32> {{ "
    "%0 = stablehlo.sine %x : tensor<{n}xf32> return %0 : tensor<{n}xf32> }}"
)


@pytest.mark.parametrize("elements", [1, 15, 16, 1000, 1024, 5000])
def test_right_programs_run_as_ever(elements):
    executable = stablehlo_py.compile(PROGRAM.format(n=elements), cache=False)
    x = np.linspace(-3, 3, elements, dtype=np.float32)
    np.testing.assert_array_equal(guarded_call(executable, [x])[0], executable(x)[0])


def test_a_write_between_the_buffer_and_its_page_is_seen():
    assert stray(5, 4)[4] == 1.0
    for place in (5, 7, -1):
        with pytest.raises(OutOfBounds, match="buffer 1"):
            stray(5, place)


@pytest.mark.parametrize("place", [1024, -1025])
def test_a_write_beyond_the_page_is_a_signal(place):
    here = str(Path(__file__).parent)
    code = f"import sys; sys.path.insert(0, {here!r}); import test_guard; test_guard.stray(1024, {place})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert ran.returncode < 0
