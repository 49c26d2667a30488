"""Conversions and comparisons between all pairs of dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers, one

DTYPES = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


@pytest.mark.parametrize("target", (*DTYPES, ml_dtypes.bfloat16, "complex64"))
def test_to_every_dtype_from_every_other(target):
    arrays = [numbers((33,), source) for source in DTYPES]
    arrays += [(50 * numbers((33,))).astype(source) for source in ("float16", "float64", ml_dtypes.bfloat16)]
    agrees_with_jax(lambda *arrays: [lax.convert_element_type(x, target) for x in arrays], *arrays)


@pytest.mark.parametrize("bits,kind", [(n, kind) for n in (8, 16, 32, 64) for kind in ("i", "ui")])
def test_float_to_integer_saturates(bits, kind):
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**63, -(2.0**63), 255.9, -128.9, -0.9, 127.5])
    got = one(
        f"%r = stablehlo.convert %a : (tensor<11xf64>) -> tensor<11x{kind}{bits}>",
        f"tensor<11xf64> -> tensor<11x{kind}{bits}>",
        x,
    )
    low, high = (0, 2**bits - 1) if kind == "ui" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    finite = [0 if np.isnan(v) else min(max(v, -1e300), 1e300) for v in x]
    assert [int(v) for v in got] == [min(max(int(v), low), high) for v in finite]


@pytest.mark.parametrize("name", ("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E3M4", "f6E2M3FN", "f4E2M1FN"))
def test_small_floats_round_trip(name):
    from stablehlo_py.core.types import element_type

    dtype = element_type(name).dtype
    x = np.arange(1 << element_type(name).bits, dtype=np.uint8).view(dtype)
    wide = one(
        f"%r = stablehlo.convert %a : (tensor<{x.size}x{name}>) -> tensor<{x.size}xf32>",
        f"tensor<{x.size}x{name}> -> tensor<{x.size}xf32>",
        x,
    )
    np.testing.assert_array_equal(wide, x.astype(np.float32))
    back = one(
        f"%r = stablehlo.convert %a : (tensor<{x.size}xf32>) -> tensor<{x.size}x{name}>",
        f"tensor<{x.size}xf32> -> tensor<{x.size}x{name}>",
        wide,
    )
    np.testing.assert_array_equal(back.astype(np.float32), wide)


def test_double_to_bfloat16_rounds_once():
    x = np.array(
        [1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 3 * 2.0**-8]
    )  # near ties that f32 would make ties
    got = one("%r = stablehlo.convert %a : (tensor<3xf64>) -> tensor<3xbf16>", "tensor<3xf64> -> tensor<3xbf16>", x)
    assert got.astype(np.float64).tolist() == [1 + 2.0**-7, 1.0, 1 + 2.0**-6]


@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", ml_dtypes.bfloat16))
def test_total_order(dtype):
    name = {"float16": "f16", "float32": "f32", "float64": "f64"}.get(str(np.dtype(dtype)), "bf16")
    line = np.array([np.copysign(np.nan, -1), -np.inf, -1, -0.0, 0.0, 1, np.inf, np.nan]).astype(dtype)
    a, b = (x.ravel() for x in np.meshgrid(line, line, indexing="ij"))
    ty = f"tensor<64x{name}>"
    got = one(
        f"%r = stablehlo.compare LT, %a, %b, TOTALORDER : ({ty}, {ty}) -> tensor<64xi1>",
        f"{ty}, {ty} -> tensor<64xi1>",
        a,
        b,
    )
    np.testing.assert_array_equal(got.reshape(8, 8), np.triu(np.ones((8, 8), bool), 1))


def test_comparison_with_nan_is_false_but_for_ne():
    x, y = np.array([np.nan, 1, np.nan], np.float32), np.array([np.nan, np.nan, 1], np.float32)
    agrees_with_jax(lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y), x, y)


@pytest.mark.parametrize(
    "pair", (("float32", "uint8"), ("uint64", "float16"), ("float32", "int32"), ("complex64", "complex64"))
)
def test_bitcast(pair):
    source, target = pair
    x = numbers((3, 5), source)
    agrees_with_jax(lambda x: lax.bitcast_convert_type(x, target), x)
    if source != target and np.dtype(source).itemsize != np.dtype(target).itemsize:
        narrow = np.ascontiguousarray(x).view(target).reshape(3, 5, -1)
        agrees_with_jax(lambda x: lax.bitcast_convert_type(x, source), narrow)


def test_bitcast_of_four_bits():
    x = np.array([0x21, 0xF8], np.uint8)
    got = one(
        "%r = stablehlo.bitcast_convert %a : (tensor<2xui8>) -> tensor<2x2xi4>", "tensor<2xui8> -> tensor<2x2xi4>", x
    )
    assert got.astype(int).tolist() == [[1, 2], [-8, -1]]
    back = one(
        "%r = stablehlo.bitcast_convert %a : (tensor<2x2xi4>) -> tensor<2xui8>", "tensor<2x2xi4> -> tensor<2xui8>", got
    )
    assert back.tolist() == x.tolist()
