"""The largest element of a row, looked for beside the row before: the bits are those of each row by itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from targets.vectorised import NUMERATORS

from stablehlo_py import Options, compile

# softmax's numerators, their sums, and what was the largest or smallest of the row
ROWS = (
    "func.func @main(%x: tensor<{rows}x{n}x{ty}>)"
    " -> (tensor<{rows}x{n}x{ty}>, tensor<{rows}x{ty}>, tensor<{rows}x{ty}>) {{"
    + NUMERATORS
    + "return %3, %4, %0 : tensor<{rows}x{n}x{ty}>, tensor<{rows}x{ty}>, tensor<{rows}x{ty}> }}"
)
TYPES = {"f32": np.float32, "f64": np.float64}


def program(rows: int, n: int, ty: str, op: str = "maximum", threads: int = 1) -> Callable[..., tuple[np.ndarray, ...]]:
    ends = {"f32": ("0xFF800000", "0x7F800000"), "f64": ("0xFFF0000000000000", "0x7FF0000000000000")}[ty]
    text = ROWS.format(rows=rows, n=n, ty=ty, op=op, start=ends[op == "minimum"])
    return compile(text, cache=False, options=Options(threads=threads))


def numbers(rows: int, n: int, ty: str) -> np.ndarray:
    x = (np.random.default_rng(n).standard_normal((rows, n)) * 9).astype(TYPES[ty])
    x[0, -1], x[1], x[2], x[3, 1 % n], x[4, 0], x[5] = np.nan, np.nan, -np.inf, np.inf, -np.inf, -0.0
    x[6], x[6, n // 2], x[-1, -1], x[-2, 0] = 0.0, -0.0, np.nan, TYPES[ty](1e-310 if ty == "f64" else 1e-40)
    return x


@pytest.mark.usefixtures("cpu")
@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("n", [1, 17, 61, 128, 1000])
def test_each_row_by_itself(n: int, op: str, ty: str) -> None:
    """Few rows have no row before them; rows of a kernel that has many have the same bits."""
    rows, few = 64, 32  # see LEAST_ROWS
    x = numbers(rows, n, ty)
    together = program(rows, n, ty, op)(x)
    apart = [program(few, n, ty, op)(x[first : first + few].copy()) for first in range(0, rows, few)]
    for one, *parts in zip(together, *apart, strict=True):
        np.testing.assert_array_equal(one, np.concatenate(parts))
    wanted = x.max(1) if op == "maximum" else x.min(1)
    np.testing.assert_array_equal(together[2], wanted)


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("rows", [64, 67, 1021])
def test_any_number_of_threads(rows: int, threads: int) -> None:
    x = numbers(rows, 2048, "f32")
    x[9, ::7] = np.uint32(0x7FC00123).view(np.float32)  # a NaN's own bits too
    x[9, 3] = np.uint32(0xFFC00321).view(np.float32)
    one, many = program(rows, 2048, "f32"), program(rows, 2048, "f32", threads=threads)
    for wanted, result in zip(one(x), many(x), strict=True):
        np.testing.assert_array_equal(result.view(np.uint32), wanted.view(np.uint32))
