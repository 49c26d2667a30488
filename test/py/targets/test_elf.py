"""Objects loaded by ourselves: constants, calls of what the process has, tables, and what is left to LLVM's own linker."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest

from stablehlo_py.errors import CompileError
from stablehlo_py.runtime.executor import KERNEL
from stablehlo_py.targets import elf, machine_code
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.machine_code import ENTRY, Code, CodegenOptions

pytestmark = pytest.mark.skipif(
    not (sys.platform == "linux" and elf.is_understood(codegen.make_object("", CodegenOptions()))),
    reason="objects of another machine are LLVM's linker's",
)

HEAD = f"define void @{ENTRY}(ptr %buffers, i64 %begin, i64 %end) {{\n  %to = load ptr, ptr %buffers\n"
TAIL = "  ret void\n}\n"

CONSTANTS = f"""{HEAD}
  %v = load <4 x double>, ptr %to, align 8
  %w = fmul <4 x double> %v, <double 1.5, double -2.5, double 3.5, double 0.125>
  store <4 x double> %w, ptr %to, align 8
{TAIL}"""

CALL = f"""declare double @sin(double)
{HEAD}
  %x = load double, ptr %to
  %y = call double @sin(double %x)
  store double %y, ptr %to
{TAIL}"""

# the address comes from a table of addresses, as code calls what is told to be bound at once
THROUGH_A_TABLE = CALL.replace("@sin(double)\n", "@sin(double) nonlazybind\n", 1)

COPY = f"""declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
{HEAD}
  %next = getelementptr double, ptr %to, i64 2
  %many = mul i64 %end, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %next, ptr %to, i64 %many, i1 false)
{TAIL}"""

ADDRESS = f"""@first = internal constant [2 x double] [double 7.0, double 9.0]
@places = internal constant [2 x ptr] [ptr @first, ptr getelementptr (double, ptr @first, i64 1)]
{HEAD}
  %slot = getelementptr ptr, ptr @places, i64 %end
  %place = load ptr, ptr %slot
  %x = load double, ptr %place
  store double %x, ptr %to
{TAIL}"""

STATE = f"""@count = internal global i64 0
{HEAD}
  %old = load i64, ptr @count
  %new = add i64 %old, 1
  store i64 %new, ptr @count
  %x = sitofp i64 %new to double
  store double %x, ptr %to
{TAIL}"""


def run(code: Code, values: np.ndarray, end: int = 1, number: int = 0) -> np.ndarray:
    values = values.copy()
    KERNEL(code.addresses[number])(ctypes.addressof(ctypes.c_void_p(values.ctypes.data)), 0, end)
    return values


def made(*texts: str) -> list[bytes]:
    return [codegen.make_object(text, CodegenOptions()) for text in texts]


@pytest.fixture
def no_linker(monkeypatch):
    monkeypatch.setitem(sys.modules, "stablehlo_py.targets.llvm_linker", None)


def test_each_of_several_objects_has_its_own_constants(no_linker):
    x = np.array([1.0, 2.0, 4.0, 8.0])
    other = CONSTANTS.replace("1.5", "0.5")
    code = Code(made(CONSTANTS, other, CONSTANTS))
    for number, first in enumerate((1.5, 0.5, 1.5)):
        np.testing.assert_array_equal(run(code, x, number=number), x * [first, -2.5, 3.5, 0.125])
    assert all(address % 16 == 0 for address in code.addresses)


@pytest.mark.parametrize("text", [CALL, THROUGH_A_TABLE])
def test_a_function_of_libm(no_linker, text):
    assert run(Code(made(text)), np.array([0.5])) == np.sin(0.5)


def test_a_function_of_libc(no_linker):
    x = np.arange(40.0)
    np.testing.assert_array_equal(run(Code(made(COPY)), x, 30)[2:32], x[:30])


def test_a_function_that_nobody_has_is_named():
    with pytest.raises(CompileError, match="calls frobnicate, which no library"):
        Code(made(CALL.replace("@sin", "@frobnicate")))


@pytest.mark.parametrize("end", [0, 1])
def test_addresses_in_constants_are_left_to_the_linker(end):
    """They are written when the object is loaded, so LLVM puts them where memory can be written."""
    data = made(ADDRESS)
    with pytest.raises(elf.NotUnderstoodError):
        elf.Image(data, ENTRY, machine_code._function)
    assert run(Code(data), np.array([0.0]), end) == (7.0, 9.0)[end]


def test_memory_of_its_own_is_left_to_the_linker():
    data = made(STATE)
    with pytest.raises(elf.NotUnderstoodError, match="memory of its own"):
        elf.Image(data, ENTRY, machine_code._function)
    code = Code(data)
    assert [run(code, np.array([0.0]))[0] for _ in range(3)] == [1.0, 2.0, 3.0]


def test_no_objects_and_none_that_are_left():
    assert Code([]).addresses == []
    before = memory()
    for _ in range(300):
        Code(made(CONSTANTS) * 100)
    gc.collect()
    assert memory() < before + 20_000


def memory() -> int:
    """KiB of this process in memory."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_code_cannot_be_written():
    code = Code(made(CONSTANTS))
    with open("/proc/self/maps") as maps:
        places = [line.split()[:2] for line in maps]
    (rights,) = {
        rights
        for place, rights in places
        if int(place.split("-")[0], 16) <= code.addresses[0] < int(place.split("-")[1], 16)
    }
    assert rights == "r-xp"
