"""No kernel touches memory beside its buffers: loops and products of every remainder, between inaccessible pages."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import numpy as np
import stablehlo_py
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.other_cpu import as_cpu

LOOP = '''
func.func @main(%x: tensor<{n}x{t}>, %y: tensor<3x{n}x{t}>) -> (tensor<{n}x{t}>, tensor<{n}x{t}>, tensor<3x{t}>) {{
  %c = stablehlo.constant dense<1> : tensor<{t}>
  %0 = stablehlo.add %x, %x : tensor<{n}x{t}>
  %1 = stablehlo.reduce(%y init: %c) applies stablehlo.maximum across dimensions = [0]
    : (tensor<3x{n}x{t}>, tensor<{t}>) -> tensor<{n}x{t}>
  %2 = stablehlo.reduce(%y init: %c) applies stablehlo.minimum across dimensions = [1]
    : (tensor<3x{n}x{t}>, tensor<{t}>) -> tensor<3x{t}>
  return %0, %1, %2 : tensor<{n}x{t}>, tensor<{n}x{t}>, tensor<3x{t}>
}}'''
PRODUCT = '''
func.func @main(%x: tensor<21x9x{t}>, %y: tensor<9x{n}x{t}>) -> tensor<21x{n}x{t}> {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<21x9x{t}>, tensor<9x{n}x{t}>) -> tensor<21x{n}x{t}>
  return %0 : tensor<21x{n}x{t}>
}}'''
rng = np.random.default_rng(0)
for cpu in ("x86-64-v3", "znver4"):
    for text, lengths in ((LOOP, (1, 2, 15, 16, 17, 31, 33, 49, 65, 129)), (PRODUCT, (1, 16, 17, 33, 49))):
        for t in ("TYPE",):
            for n in lengths:
                source = text.format(n=n, t=t)
                if "f" in t:
                    source = source.replace("dense<1>", "dense<1.0>")
                with as_cpu(cpu):
                    executable = stablehlo_py.compile(source, cache=False)
                arguments = [rng.integers(0, 2, ty.shape).astype(ty.numpy) for ty in executable.program.arguments]
                for a, b in zip(guarded_call(executable, arguments), executable(*arguments), strict=True):
                    assert a.tobytes() == b.tobytes(), (cpu, t, n)
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's libc")
@pytest.mark.parametrize("element", ["f8E4M3FN", "f4E2M1FN", "bf16", "f16", "i8", "i16", "i1", "f32", "f64", "i64"])
def test_every_remainder(element: str) -> None:
    code = CODE.replace("TYPE", element)
    if element == "i1":
        code = code.replace("stablehlo.add %x, %x", "stablehlo.xor %x, %x")
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]


PRODUCTS = """
import numpy as np
import stablehlo_py
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.other_cpu import as_cpu

PRODUCT = '''
func.func @main(%x: tensor<{a}x{t}>, %y: tensor<{b}x{t}>) -> tensor<{m}x{n}x{out}> {{
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [{left}] x [{right}]
    : (tensor<{a}x{t}>, tensor<{b}x{t}>) -> tensor<{m}x{n}x{out}>
  return %0 : tensor<{m}x{n}x{out}>
}}'''
rng = np.random.default_rng(0)
for cpu in ("x86-64-v3", "znver4"):
    for m, n, k in ((16, 64, 64), (40, 48, 300), (33, 47, 150), (24, 33, 1100)):
        for left in (0, 1):
            for right in (0, 1):
                a, b = (f"{m}x{k}" if left else f"{k}x{m}"), (f"{n}x{k}" if right else f"{k}x{n}")
                source = PRODUCT.format(a=a, b=b, m=m, n=n, t="TYPE", out="OUT", left=left, right=right)
                with as_cpu(cpu):
                    executable = stablehlo_py.compile(source, cache=False)
                arguments = [rng.integers(0, 2, ty.shape).astype(ty.numpy) for ty in executable.program.arguments]
                for a, b in zip(guarded_call(executable, arguments), executable(*arguments), strict=True):
                    assert a.tobytes() == b.tobytes(), source
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's libc")
@pytest.mark.parametrize(
    ("element", "out"), [("bf16", "bf16"), ("f16", "f16"), ("i8", "i32"), ("f32", "f32"), ("f64", "f64")]
)
def test_every_order_of_a_product(element: str, out: str) -> None:
    """A tile of a transposed operand is read in whole vectors, which may be wider than the tile."""
    code = PRODUCTS.replace("TYPE", element).replace("OUT", out)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]
