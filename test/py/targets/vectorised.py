"""Programs whose kernels are vectorised, against the reference."""

from __future__ import annotations

import re

import numpy as np

from stablehlo_py.compiler import compile
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret


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
