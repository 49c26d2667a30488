"""Weights packed in front of a loop: products by panels give what products by the weights themselves give."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py

STEPS = 18  # more than are unrolled


def program(rows: int, k: int, n: int, *, turned: bool, after: bool) -> str:
    """h = h w v, or tanh(-h w) v, a few times over."""
    w, contracted = (f"tensor<{n}x{k}xf32>", 1) if turned else (f"tensor<{k}x{n}xf32>", 0)
    small, wide = f"tensor<{rows}x{k}xf32>", f"tensor<{rows}x{n}xf32>"
    ops = f"%b = stablehlo.negate %a : {wide}\n    %c = stablehlo.tanh %b : {wide}" if after else ""
    return f"""func.func @main(%x: {small}, %w: {w}, %v: tensor<{n}x{k}xf32>) -> {small} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %many = stablehlo.constant dense<{STEPS}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, {small}
  cond {{
    %go = stablehlo.compare LT, %i, %many : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  }} do {{
    %a = stablehlo.dot_general %h, %w, contracting_dims = [1] x [{contracted}] : ({small}, {w}) -> {wide}
    {ops}
    %d = stablehlo.dot_general %{"c" if after else "a"}, %v, contracting_dims = [1] x [0]
      : ({wide}, tensor<{n}x{k}xf32>) -> {small}
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d : tensor<i32>, {small}
  }}
  return %r#1 : {small}
}}"""


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "k", "n"), [(9, 300, 64), (40, 128, 160), (128, 600, 64), (17, 1100, 96)])
def test_products_by_panels(rows: int, k: int, n: int, turned: bool, after: bool) -> None:
    generator = np.random.default_rng(0)
    x, w, v = (generator.standard_normal(s).astype(np.float32) for s in ((rows, k), (k, n), (n, k)))
    w, v = w / np.float32(k**0.5), v / np.float32(n**0.5)
    text = program(rows, k, n, turned=turned, after=after)
    results = []
    for threads in (1, 3):
        options = stablehlo_py.Options(threads=threads)
        executable = stablehlo_py.compile(text, cache=False, options=options)
        assert "kernel.unpack" in executable.as_text("simplify")
        assert "transpose" not in executable.as_text("program").partition("while")[2]
        results.append(executable(x, np.ascontiguousarray(w.T) if turned else w, v)[0])
    want = x.astype(np.float64)
    for _ in range(STEPS):
        want = (np.tanh(-(want @ w)) if after else want @ w) @ v.astype(np.float64)
    np.testing.assert_allclose(results[0], want, rtol=1e-4, atol=1e-5 * np.abs(want).max())
    np.testing.assert_array_equal(results[0], results[1])
