"""Products with what follows them in one kernel: against the reference, for edges of any size and several blocks of k."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference.interpreter import interpret

HEAD = """
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
       : (tensor<{m}x{k}x{e}>, tensor<{k}x{n}x{e}>) -> tensor<{m}x{n}x{e}>
  %row = stablehlo.broadcast_in_dim %r, dims = [1] : (tensor<{n}x{e}>) -> tensor<{m}x{n}x{e}>
  %col = stablehlo.broadcast_in_dim %c, dims = [0] : (tensor<{m}x{e}>) -> tensor<{m}x{n}x{e}>
"""
ARGUMENTS = "%a: tensor<{m}x{k}x{e}>, %b: tensor<{k}x{n}x{e}>, %r: tensor<{n}x{e}>, %c: tensor<{m}x{e}>, %y: tensor<{m}x{n}x{e}>"
BODIES = {
    "bias": ("  %1 = stablehlo.add %0, %row : T", ["%1 : T"]),
    "residual": (
        "  %1 = stablehlo.multiply %0, %col : T\n  %2 = stablehlo.add %1, %row : T\n"
        "  %3 = stablehlo.tanh %2 : T\n  %4 = stablehlo.subtract %y, %3 : T",
        ["%4 : T"],
    ),
    "several": (
        "  %z = stablehlo.constant dense<0.0> : T\n  %1 = stablehlo.add %0, %row : T\n"
        "  %2 = stablehlo.maximum %1, %z : T\n  %3 = stablehlo.compare GT, %1, %z : (T, T) -> B\n"
        "  %4 = stablehlo.select %3, %y, %z : B, T\n  %5 = stablehlo.convert %4 : (T) -> D",
        ["%0 : T", "%2 : T", "%3 : B", "%5 : D"],
    ),
}
DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
TOLERANCE = {"f32": 1e-5, "f64": 1e-12, "bf16": 2e-2, "f16": 4e-3}


def program(m: int, n: int, k: int, element: str, body: str) -> str:
    ops, results = BODIES[body]
    sizes = {"m": m, "n": n, "k": k, "e": element}
    values, types = zip(*[r.split(" : ") for r in results], strict=True)
    text = (
        f"func.func @main({ARGUMENTS.format(**sizes)}) -> ({', '.join(types)}) {{{HEAD.format(**sizes)}{ops}\n"
        f"  return {', '.join(values)} : {', '.join(types)}\n}}"
    )
    wide = {"T": element, "B": "i1", "D": "f32" if element == "f64" else "f64"}
    return re.sub(r"\b([TBD])\b", lambda letter: f"tensor<{m}x{n}x{wide[letter[1]]}>", text)


@pytest.mark.parametrize("body", sorted(BODIES))
@pytest.mark.parametrize("element", sorted(DTYPES))
@pytest.mark.parametrize(("m", "n", "k"), [(16, 64, 40), (17, 45, 70), (130, 33, 1200), (9, 1000, 9)])
def test_against_the_reference(m: int, n: int, k: int, element: str, body: str) -> None:
    generator = np.random.default_rng(0)
    shapes = [(m, k), (k, n), (n,), (m,), (m, n)]
    inputs = [(generator.standard_normal(shape) * 0.5).astype(DTYPES[element]) for shape in shapes]
    text = program(m, n, k, element, body)
    executable = stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=1))
    assert [kernel.name.split("_")[0] for kernel in executable.program.kernels] == ["product"]
    got = executable(*inputs)
    with new_context(), ir.Location.unknown():
        want = interpret(ir.Module.parse(text), *inputs)
    for x, y in zip(got, want, strict=True):
        if y.dtype == bool:
            assert np.mean(x != y) < 0.01  # signs of sums that are nearly zero
            continue
        scale = max(1.0, float(np.abs(y.astype(np.float64)).max()))
        difference = np.abs(x.astype(np.float64) - y.astype(np.float64))
        if body == "several" and y.dtype != inputs[0].dtype:
            difference = np.where(got[2] == want[2], difference, 0)  # what those signs select
        assert difference.max() <= TOLERANCE[element] * scale
    parallel = stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=3))(*inputs)
    for x, y in zip(got, parallel, strict=True):
        np.testing.assert_array_equal(x.view(np.uint8), y.view(np.uint8))


FUNCTIONS = ["cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt"]
FUNCTIONS += ["sine", "sqrt", "tan", "tanh"]


@pytest.mark.parametrize("element", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_any_function_is_done_by_the_tiles_which_threads_share(cpu: str, function: str, element: str) -> None:
    """One that is not would be a loop behind the product, and neither could be cut."""
    m, n, k = 40, 70, 30
    text = f"""
func.func @main(%a: tensor<{m}x{k}x{element}>, %b: tensor<{k}x{n}x{element}>) -> T {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<{m}x{k}x{element}>, tensor<{k}x{n}x{element}>) -> T
  %1 = stablehlo.{function} %0 : T
  return %1 : T
}}""".replace("T", f"tensor<{m}x{n}x{element}>")
    generator = np.random.default_rng(0)
    a, b = ((generator.integers(-8, 9, shape) / 8).astype(DTYPES[element]) for shape in ((m, k), (k, n)))  # exact sums
    executable = stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=1))
    (launch,) = executable.program.commands
    assert launch.end > 1
    with new_context(), ir.Location.unknown():
        (want,) = interpret(ir.Module.parse(text), a, b)
    (got,) = executable(a, b)
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=TOLERANCE[element], atol=1e-30)
