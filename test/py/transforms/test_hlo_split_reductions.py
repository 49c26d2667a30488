"""Reductions of everything by rows first: all ops and types that are split, starts that count, special values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py import Options, compile

SHAPES = [(513, 1031), (1 << 19,), (1 << 17, 6), (3, 5, 16, 4096)]
OPS = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
TYPES = {
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "i8": np.int8,
    "i32": np.int32,
    "ui16": np.uint16,
    "i1": np.bool_,
}


def reduced(op: str, ty: str, x: np.ndarray, init: Any, threads: int = 2, kept: int = 0) -> np.ndarray:
    """kept: how many of the last dimensions the result has."""
    shape, dims = "x".join(map(str, x.shape)), list(range(x.ndim - kept))
    out = "".join(f"{n}x" for n in x.shape[x.ndim - kept :])
    text = f"""func.func @main(%x: tensor<{shape}x{ty}>, %i: tensor<{ty}>) -> tensor<{out}{ty}> {{
      %0 = stablehlo.reduce(%x init: %i) applies stablehlo.{op} across dimensions = {dims}
        : (tensor<{shape}x{ty}>, tensor<{ty}>) -> tensor<{out}{ty}>
      return %0 : tensor<{out}{ty}>
    }}"""
    return compile(text, cache=False, options=Options(threads=threads))(x, np.array(init, x.dtype))[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("ty", TYPES)
def test_values(ty: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    dtype = np.dtype(TYPES[ty])
    is_float = ty.startswith(("f", "b"))
    for op, function in OPS.items():
        if (is_float and op in ("and", "or", "xor")) or (ty == "i1" and op not in ("and", "or")):
            continue
        small = 2 if op == "multiply" or ty == "i1" else 5
        x = rng.integers(1 if op == "multiply" and is_float else 0, small, shape).astype(dtype)
        if op in ("and", "maximum") and ty != "i1":
            x = x - dtype.type(7) if not ty.startswith("u") else x | dtype.type(8)
        if op == "add" and dtype.itemsize < 4 and is_float:
            x = np.where(rng.random(shape) < 1e-3, x, dtype.type(0)).astype(dtype)
        init = x.reshape(-1)[0]
        with np.errstate(over="ignore"):
            # exact in any order: small whole numbers
            wide = x.astype(np.float64) if is_float else x
            wanted = function(function.reduce(wide, axis=None), wide.dtype.type(init)).astype(dtype)
        np.testing.assert_array_equal(reduced(op, ty, x, init), wanted, err_msg=op)


@pytest.mark.parametrize(
    "shape", [(16, 33, 16, 64), (1 << 16, 9), (3, 8, 25000), (70000, 2, 5), (1024, 513), (1360, 768)]
)
@pytest.mark.parametrize("ty", ["f32", "bf16", "i8"])
def test_columns(ty: str, shape: tuple[int, ...]) -> None:
    dtype, kept = np.dtype(TYPES[ty]), 2 if shape[1:] == (2, 5) else 1
    x = np.random.default_rng(4).integers(-9, 9, shape).astype(dtype)
    axes = tuple(range(len(shape) - kept))
    for op in ("maximum", "minimum") if ty == "bf16" else ("add", "maximum", "minimum"):
        wide = x.astype(np.float64)
        wanted = OPS[op](OPS[op].reduce(wide, axis=axes), 3)
        wanted = wanted.astype(np.int64).astype(np.int8) if ty == "i8" else wanted.astype(dtype)
        np.testing.assert_array_equal(reduced(op, ty, x, 3, kept=kept), wanted, err_msg=op)


def test_special_values() -> None:
    x = np.full((512, 1024), -0.0, np.float32)
    assert np.signbit(reduced("add", "f32", x, -0.0))
    assert not np.signbit(reduced("add", "f32", x, 0.0))
    assert np.signbit(reduced("maximum", "f32", x, -0.0))
    x[100, 7] = -np.nan
    for op in ("add", "maximum", "minimum"):
        assert np.isnan(reduced(op, "f32", x, 0.0))
    x[:] = -np.inf
    assert reduced("maximum", "f32", x, -np.inf) == -np.inf


def test_what_is_summed_is_made_in_the_same_shape() -> None:
    text = """func.func @main(%x: tensor<1048576xf32>, %y: tensor<1048576xi32>, %s: tensor<f32>)
        -> (tensor<f32>, tensor<1048576xf32>) {
      %two = stablehlo.constant dense<2.0> : tensor<1048576xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<1048576xf32>
      %c = stablehlo.convert %y : (tensor<1048576xi32>) -> tensor<1048576xf32>
      %d = stablehlo.multiply %c, %two : tensor<1048576xf32>
      %e = stablehlo.add %x, %b : tensor<1048576xf32>
      %p = stablehlo.compare GT, %d, %e : (tensor<1048576xf32>, tensor<1048576xf32>) -> tensor<1048576xi1>
      %f = stablehlo.select %p, %d, %e : tensor<1048576xi1>, tensor<1048576xf32>
      %0 = stablehlo.reduce(%f init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<1048576xf32>, tensor<f32>) -> tensor<f32>
      return %0, %e : tensor<f32>, tensor<1048576xf32>
    }"""
    rng = np.random.default_rng(3)
    x, y = (rng.integers(-9, 9, 1 << 20) for _ in range(2))
    made = compile(text, cache=False)
    total, e = made(x.astype(np.float32), y.astype(np.int32), np.float32(3))
    assert total == np.maximum(2 * y, x + 3).sum()
    np.testing.assert_array_equal(e, x + 3)
    kernels = made.as_text("kernels")
    assert kernels.count("call @") == 3  # e, which is a result; the rows; their sum


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    x = np.random.default_rng(2).standard_normal((700, 1001), np.float32)
    assert len({reduced("add", "f32", x, 0.5, threads).tobytes() for threads in (1, 2, 5)}) == 1
    x = x.reshape(-1, 7)
    assert len({reduced("add", "f32", x, 0.5, threads, kept=1).tobytes() for threads in (1, 2, 5)}) == 1
