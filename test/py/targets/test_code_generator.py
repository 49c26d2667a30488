"""The code generator of the bindings' library against llvmlite's: the same values, each where the other is not."""

from __future__ import annotations

import re
import subprocess
import sys

import llvmlite.binding as llvmlite
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.targets import code_generator
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.cpus import host
from stablehlo_py.targets.llvm_passes import Optimizer
from stablehlo_py.targets.machine_code import CodegenOptions

pytestmark = pytest.mark.skipif(not code_generator.is_here(), reason="not the release or machine that it knows")

ADD = """define void @kernel_entry(ptr %buffers, i64 %begin, i64 %end) {
  %p = load ptr, ptr %buffers
  %x = load <16 x float>, ptr %p, align 4
  %y = fadd <16 x float> %x, splat (float 1.5)
  store <16 x float> %y, ptr %p, align 4
  ret void
}
"""


def generator(cpu: str = "", features: str = "", level: int = 1) -> code_generator.Generator:
    options = CodegenOptions(cpu, features).resolved()
    made = code_generator.Generator(options.cpu, options.features, level)
    made.begin(ADD)
    return made


def test_the_target_is_that_of_llvmlite():
    optimizer = Optimizer(*host(), 1, None)
    mine, theirs = generator()._target, optimizer._target
    assert mine.splitlines()[0] == theirs.splitlines()[0]
    assert [line.split("-")[0] for line in mine.splitlines()] == [line.split("-")[0] for line in theirs.splitlines()]


def test_the_host_is_that_of_llvmlite():
    cpu, features = code_generator.host()
    assert cpu == llvmlite.get_host_cpu_name()
    theirs = set(llvmlite.get_host_cpu_features().flatten().split(","))
    assert {name for name in theirs if name[0] == "+"} <= set(features.split(","))


@pytest.mark.parametrize(
    ("cpu", "features", "register"),
    [("x86-64", "", "xmm"), ("x86-64-v3", "", "ymm"), ("znver4", "", "zmm"), ("x86-64-v3", "-avx,-avx2", "xmm")],
)
def test_the_code_is_for_the_cpu_and_its_features(cpu, features, register):
    assembly = generator(cpu, features).assembly()
    assert set(re.findall(r"%([xyz]mm)\d", assembly)) == {register}


@pytest.mark.parametrize(("level", "spills"), [(0, True), (1, False), (2, False)])
def test_levels_are_heeded(level, spills):
    """Without optimisation, values go from block to block through the stack."""
    made = generator(level=level)
    made.begin(ADD.replace("  store", "  br label %more\nmore:\n  store"))
    assert ("%rsp" in made.assembly()) == spills


@pytest.mark.parametrize("quick", [False, True])
def test_quick_selection_takes_instructions_one_by_one(quick):
    made = generator()
    sums = "  %a = add i64 %begin, 1\n  %b = add i64 %a, %end\n  %c = add i64 %b, 2\n  store i64 %c, ptr %buffers\n"
    made.begin(ADD.replace("  ret", f"{sums}  ret"), quick=quick)
    assert ("addq\t$2, %" in made.assembly()) == quick  # else both constants are one


def test_one_generator_makes_one_object_after_the_other():
    made = generator()
    objects = []
    for text in (ADD, ADD.replace("1.5", "2.5"), ADD):
        made.begin(text)
        made.run()
        objects.append(made.object())
        made.end()
    assert objects[0] == objects[2] != objects[1]
    assert objects[0][:4] == b"\x7fELF"


def test_text_that_cannot_be_read_is_an_error_and_no_end():
    made = generator()
    made.begin(ADD.replace("fadd", "fodd"))
    with pytest.raises(RuntimeError, match=r"cannot read a kernel: .*expected instruction opcode"):
        made.run()
    made.begin(ADD)
    made.run()
    assert made.object()


PROGRAM = """
func.func @main(%x: tensor<7x33xf32>, %y: tensor<33x9xf32>) -> (tensor<7x9xf32>, tensor<7xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<7x33xf32>, tensor<33x9xf32>) -> tensor<7x9xf32>
  %1 = stablehlo.tanh %0 : tensor<7x9xf32>
  %2 = stablehlo.constant dense<0.0> : tensor<f32>
  %3 = stablehlo.reduce(%x init: %2) applies stablehlo.add across dimensions = [1]
    : (tensor<7x33xf32>, tensor<f32>) -> tensor<7xf32>
  return %1, %3 : tensor<7x9xf32>, tensor<7xf32>
}
"""


def test_llvmlite_makes_the_same_where_the_library_is_unknown(monkeypatch):
    rng = np.random.default_rng(3)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((7, 33), (33, 9)))
    with_it = stablehlo_py.compile(PROGRAM, cache=False)(x, y)
    monkeypatch.setattr(code_generator, "is_here", lambda: False)
    monkeypatch.setattr(codegen, "_free", {})
    without = stablehlo_py.compile(PROGRAM, cache=False, options=Options(threads=1))(x, y)
    for one, other in zip(with_it, without, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(with_it[0], np.tanh(x @ y), rtol=1e-5, atol=1e-6)


def test_another_release_is_not_taken_for_this_one(monkeypatch):
    monkeypatch.setattr(code_generator, "installed", lambda name: f"{name}-20261002.dist-info")
    code_generator.is_here.cache_clear()
    try:
        assert not code_generator.is_here()
    finally:
        monkeypatch.undo()
        code_generator.is_here.cache_clear()
    assert code_generator.is_here()


def test_memory_goes_with_the_kernels():
    """In a process of its own, whose memory nobody else changes."""
    code = f"""
from stablehlo_py.targets.code_generator import Generator, host
made = Generator(*host(), 1)
def memory():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
def many(count):
    for _ in range(count):
        made.begin({ADD!r})
        made.run()
        made.assembly()
        made.end()
    return memory()
first = many(100)
print(many(500) - first)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert int(ran.stdout) < 4_000, ran.stderr  # KiB


def test_the_library_is_loaded_by_a_thread_and_once():
    """In a process of its own, which has not loaded it; a library that is not there is whoever's problem who needs it."""
    code = """
import threading
from stablehlo_py.targets import code_generator
before = threading.active_count()
code_generator.begin_loading()
code_generator.begin_loading()
begun = threading.active_count() - before
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
with open("/proc/self/maps") as maps:
    print(begun <= 1, "libTorchMLIRAggregateCAPI" in maps.read(), code_generator.host() == code_generator.host())
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout == "True True True\n", ran.stderr
