"""Sums of long chains, of which a part is computed a step ahead: every remainder, within bounds, on any number of threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stablehlo_py import Options, compile
from stablehlo_py.targets.machine_code import CodegenOptions

SUMS = """
func.func @main(%x: tensor<{rows}x{n}x{ty}>, %y: tensor<{rows}x{n}x{ty}>) -> (tensor<{rows}x{ty}>, tensor<{rows}x{n}x{ty}>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<{ty}>
  %0 = stablehlo.exponential %x : tensor<{rows}x{n}x{ty}>
  %1 = stablehlo.multiply %0, %y : tensor<{rows}x{n}x{ty}>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<{rows}x{n}x{ty}>, tensor<{ty}>) -> tensor<{rows}x{ty}>
  %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<{rows}x{ty}>) -> tensor<{rows}x{n}x{ty}>
  %4 = stablehlo.divide %1, %3 : tensor<{rows}x{n}x{ty}>
  return %2, %4 : tensor<{rows}x{ty}>, tensor<{rows}x{n}x{ty}>
}}
"""
TOTAL = """
func.func @main(%x: tensor<{n}xf32>) -> tensor<f32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.tanh %x : tensor<{n}xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
    : (tensor<{n}xf32>, tensor<f32>) -> tensor<f32>
  return %1 : tensor<f32>
}}
"""
TYPES = {"f32": np.float32, "f64": np.float64}
CPUS = {"host": Options(), "avx2": Options(codegen=CodegenOptions(cpu="x86-64-v3"))}
LENGTHS = (64, 127, 128, 129, 143, 144, 256, 263, 320)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("rows", [3, 67])  # with so many, the quotients come a row later
def test_rows_of_every_length(rows: int, ty: str, cpu: str) -> None:
    rng = np.random.default_rng(rows)
    for n in LENGTHS:
        x, y = (rng.standard_normal((rows, n)).astype(TYPES[ty]) for _ in range(2))
        y = abs(y)  # sums that lose no digits
        x[-1, -1], x[1, 0] = -np.inf, np.nan
        total, parts = compile(SUMS.format(rows=rows, n=n, ty=ty), cache=False, options=CPUS[cpu])(x, y)
        product = np.exp(x.astype(np.float64)) * y
        wanted = product.sum(1)
        np.testing.assert_allclose(total, wanted, rtol=1e-6)
        np.testing.assert_allclose(parts, product / wanted[:, None], rtol=2e-6, atol=1e-37)


@pytest.mark.parametrize("n", [2048, 3_000_001])
def test_any_number_of_threads(n: int) -> None:
    x = abs(np.random.default_rng(0).standard_normal(n)).astype(np.float32)
    sums = [compile(TOTAL.format(n=n), cache=False, options=Options(threads=t))(x)[0] for t in (1, 2, 3)]
    assert sums[0] == sums[1] == sums[2]
    np.testing.assert_allclose(sums[0], np.tanh(x.astype(np.float64)).sum(), rtol=1e-5)


BOUNDS = """
import numpy as np
import stablehlo_py
from stablehlo_py.testing.guard import guarded_call
from targets.test_cpu_early_ops import CPUS, LENGTHS, SUMS, TOTAL

rng = np.random.default_rng(0)
for options in CPUS.values():
    texts = [SUMS.format(rows=rows, n=n, ty=ty) for rows in (1, 65) for n in LENGTHS for ty in ("f32", "f64")]
    for text in texts + [TOTAL.format(n=n) for n in (*LENGTHS, 70_000)]:
        executable = stablehlo_py.compile(text, cache=False, options=options)
        arguments = [rng.standard_normal(ty.shape).astype(ty.numpy) for ty in executable.program.arguments]
        for a, b in zip(guarded_call(executable, arguments), executable(*arguments), strict=True):
            assert np.asarray(a).tobytes() == np.asarray(b).tobytes(), text
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's libc")
def test_nothing_beside_a_buffer_is_read() -> None:
    code = f"import sys; sys.path.append({str(Path(__file__).parents[1])!r})\n{BOUNDS}"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]
