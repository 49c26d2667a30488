"""Programs whose kernels are vectorised, against the reference."""

from __future__ import annotations

import re

import numpy as np

from stablehlo_py.compiler import compile
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret

# of rows: the largest or smallest element as %0, and exp(x - that) as %3 with its sums as %4; to be formatted
NUMERATORS = """
  %start = stablehlo.constant dense<{start}> : tensor<{ty}>
  %zero = stablehlo.constant dense<0.0> : tensor<{ty}>
  %0 = stablehlo.reduce(%x init: %start) applies stablehlo.{op} across dimensions = [1]
    : (tensor<{rows}x{n}x{ty}>, tensor<{ty}>) -> tensor<{rows}x{ty}>
  %1 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<{rows}x{ty}>) -> tensor<{rows}x{n}x{ty}>
  %2 = stablehlo.subtract %x, %1 : tensor<{rows}x{n}x{ty}>
  %3 = stablehlo.exponential %2 : tensor<{rows}x{n}x{ty}>
  %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<{rows}x{n}x{ty}>, tensor<{ty}>) -> tensor<{rows}x{ty}>
"""


def check(
    text: str,
    *arrays: np.ndarray,
    vectors: bool,
    tolerance: tuple[float, float] | None = None,
) -> None:
    """vectors: whether a kernel must have them without LLVM's passes. tolerance: relative, absolute; None for the same bits."""
    with new_context() as context, ir.Location.unknown(context):
        wanted = interpret(ir.Module.parse(text), *arrays)
    compiled = compile(text, cache=False)
    if vectors:
        assert re.search(r"; ready\n(.*\n)*.* load <\d+ x ", compiled.as_text("llvm-ir"))
    for one, other in zip(compiled(*arrays), wanted, strict=True):
        if tolerance is None:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=tolerance[0], atol=tolerance[1])
