"""Objects made by several threads are those that one thread makes, byte for byte."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap

import pytest

from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.cpu.code.objects import Objects

OPTIONS = codegen.CodegenOptions()


def kernel(number: int) -> str:
    """A kernel that adds a number to each float of a buffer: something for the vectoriser."""
    return textwrap.dedent(f"""\
        define void @kernel_entry(ptr %buffers, i64 %begin, i64 %end) {{
          %buffer = load ptr, ptr %buffers
          br label %loop
        loop:
          %i = phi i64 [ %begin, %0 ], [ %next, %loop ]
          %place = getelementptr float, ptr %buffer, i64 %i
          %old = load float, ptr %place
          %new = fadd float %old, {float(number)!r}
          store float %new, ptr %place
          %next = add i64 %i, 1
          %more = icmp slt i64 %next, %end
          br i1 %more, label %loop, label %done
        done:
          ret void
        }}
        """)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_objects_come_in_order(threads):
    numbers = [1, 2, 1, 3, 2, 4]
    with Objects(OPTIONS, len(numbers), threads) as objects:
        for number in numbers:
            objects.add(kernel(number))
        made = objects.all()
    assert made == [codegen.make_object(kernel(number), OPTIONS) for number in numbers]


def test_what_is_there_is_taken():
    kept: list[bytes] = []
    with Objects(OPTIONS, 3, 2) as objects:
        objects.add_made("one", b"1")
        objects.add(kernel(1), kept.append)
        objects.add_made("one", b"1")
        made = objects.all()
    assert made[0] == made[2] == b"1"
    assert kept == [made[1]]


def test_each_who_wants_an_object_is_given_it():
    """Kernels that differ may have one text, and each is kept under a key of its own."""
    kept: list[tuple[str, bytes]] = []
    with Objects(OPTIONS, 2, 2) as objects:
        for name in ("a", "b"):
            objects.add(kernel(1), lambda data, name=name: kept.append((name, data)))
        made = objects.all()
    assert kept == [("a", made[0]), ("b", made[1])]


def test_text_that_llvm_cannot_read_is_an_error_where_the_object_is_asked_for():
    with Objects(OPTIONS, 2, 2) as objects:
        objects.add(kernel(1))
        objects.add("define void @kernel_entry( {")
        with pytest.raises(RuntimeError, match="cannot read a kernel"):
            objects.all()


def test_errors_come_where_the_objects_are_asked_for(monkeypatch):
    def fail(*_: object) -> None:
        raise RuntimeError("no code")

    monkeypatch.setattr(codegen.Making, "object", fail)
    with Objects(OPTIONS, 2, 2) as objects:
        objects.add(kernel(1))
        objects.add(kernel(2))
        with pytest.raises(RuntimeError, match="no code"):
            objects.all()
    gc.collect()  # the error holds what it came from


def test_an_error_outside_leaves_no_thread_behind():
    with pytest.raises(ZeroDivisionError), Objects(OPTIONS, 9, 2) as objects:
        for number in range(9):
            objects.add(kernel(number))
        _ = 1 / 0
    assert not objects._threads


STRESS = """
import gc
import sys
import threading

import stablehlo_py
from test_cpu_objects import OPTIONS, kernel
from stablehlo_py.targets.cpu.code import codegen
from stablehlo_py.targets.cpu.code.objects import Objects

PROGRAM = '''func.func @main(%a: tensor<64xf32>, %b: tensor<8x8xf32>) -> (tensor<64xf32>, tensor<8x8xf32>, tensor<f32>) {
  %0 = stablehlo.exponential %a : tensor<64xf32>
  %1 = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<64xf32>, tensor<8x8xf32>, tensor<f32>
}'''
expected = [codegen.make_object(kernel(n), OPTIONS) for n in range(40)]
wrong = []

def objects() -> None:
    for _ in range(3):
        with Objects(OPTIONS, 40, 4) as several:
            for n in range(40):
                several.add(kernel(n))
            if several.all() != expected:
                wrong.append("objects")

def programs() -> None:
    for _ in range(5):
        stablehlo_py.compile(PROGRAM, cache=False, options=stablehlo_py.Options(threads=3))

threads = [threading.Thread(target=work) for work in (objects, programs, objects, programs)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    gc.collect()  # frees what the others have dropped, while they are inside LLVM
for thread in threads:
    thread.join()
sys.exit(bool(wrong))
"""


def test_threads_that_compile_at_once(pytestconfig):
    """In a process of its own: a mistake here would not be an exception."""
    folder = pytestconfig.rootpath / "test/py/targets"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r})\n{STRESS}"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
