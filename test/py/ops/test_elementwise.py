"""Elementwise ops on every kind of element against the reference interpreter, special values included."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ops.agree import with_reference
from ops.programs import Applied, compiled, floats, integers, worst_ulp

import stablehlo_py

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
EXACT = ("abs", "negate", "sign", "floor", "ceil", "round_nearest_afz", "round_nearest_even", "sqrt")
ARITHMETIC = ("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder")
FUNCTIONS = (
    "exponential",
    "exponential_minus_one",
    "log",
    "log_plus_one",
    "logistic",
    "tanh",
    "sine",
    "cosine",
    "tan",
    "rsqrt",
    "cbrt",
)


def unary(*names: str) -> list[Applied]:
    return [Applied(f"stablehlo.{name}") for name in names]


def binary(*names: str) -> list[Applied]:
    return [Applied(f"stablehlo.{name}", (0, 1)) for name in names]


def compares(kind: str) -> list[Applied]:
    return [
        Applied(
            "stablehlo.compare",
            (0, 1),
            "i1",
            f"comparison_direction = #stablehlo<comparison_direction {direction}>,"
            f" compare_type = #stablehlo<comparison_type {kind}>",
        )
        for direction in DIRECTIONS
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_float_arithmetic_is_correctly_rounded(dtype: object) -> None:
    ops = [*unary(*EXACT), *binary(*ARITHMETIC), *compares("FLOAT"), *compares("TOTALORDER")]
    ops += [Applied("stablehlo.is_finite", (0,), "i1")]
    assert {op: d for op, d in worst_ulp(ops, floats(dtype, 0), floats(dtype, 1)).items() if d} == {}


@pytest.mark.parametrize("name", ["float8_e3m4", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn", "float4_e2m1fn"])
def test_arithmetic_of_every_small_float(name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name))
    x = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8).view(dtype)
    y = np.random.default_rng(0).permutation(x)
    ops = [*unary("abs", "negate", "sqrt"), *binary("add", "subtract", "multiply", "divide", "maximum", "minimum")]
    assert {op: d for op, d in worst_ulp([*ops, *compares("FLOAT")], x, y).items() if d} == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_floats(dtype: object) -> None:
    ops = [*unary(*FUNCTIONS), *binary("power", "atan2")]
    assert {op: d for op, d in worst_ulp(ops, floats(dtype, 2), floats(dtype, 3)).items() if d > 4} == {}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_functions_of_every_16_bit_float(dtype: object) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    assert {op: d for op, d in worst_ulp(unary(*FUNCTIONS, *EXACT), every).items() if d > 1} == {}
    ops = binary("power", "atan2")
    assert {op: d for op, d in worst_ulp(ops, floats(dtype, 2), floats(dtype, 3)).items() if d > 1} == {}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_roundings_between_ops_on_every_bf16() -> None:
    """Each op of a chain is rounded, and NaN of all bits stay NaN: those given, those of other types, those made on the way."""
    bf16 = np.dtype(ml_dtypes.bfloat16)
    x = np.arange(1 << 16, dtype=np.uint16).view(bf16)
    y = np.random.default_rng(1).permutation(x)
    bits = np.random.default_rng(2).integers(0, 1 << 32, 1 << 16, dtype=np.uint32)
    bits[:1000] |= 0x7FFF8000
    wide = bits.view(np.float32)
    text = """func.func @main(%x: tensor<65536xbf16>, %y: tensor<65536xbf16>, %w: tensor<65536xf32>)
        -> (tensor<65536xbf16>, tensor<65536xbf16>) {
      %0 = stablehlo.multiply %x, %y : tensor<65536xbf16>
      %1 = stablehlo.subtract %0, %x : tensor<65536xbf16>
      %2 = stablehlo.maximum %1, %y : tensor<65536xbf16>
      %3 = stablehlo.divide %2, %x : tensor<65536xbf16>
      %4 = stablehlo.sqrt %3 : tensor<65536xbf16>
      %5 = stablehlo.add %4, %0 : tensor<65536xbf16>
      %6 = stablehlo.convert %w : (tensor<65536xf32>) -> tensor<65536xbf16>
      %7 = stablehlo.add %6, %y : tensor<65536xbf16>
      return %5, %7 : tensor<65536xbf16>, tensor<65536xbf16>
    }"""
    got = stablehlo_py.compile(text, cache=False)(x, y, wide)
    product = x * y
    difference = product - x
    larger = np.where(np.isnan(difference) | np.isnan(y), bf16.type(np.nan), np.maximum(difference, y)).astype(bf16)
    for found, wanted in zip(got, [np.sqrt(larger / x) + product, wide.astype(bf16) + y], strict=True):
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
def test_integers(dtype: object) -> None:
    signed = np.dtype(dtype).kind == "i"
    ops = [*unary("not", "popcnt", "count_leading_zeros", *(["abs", "negate", "sign"] if signed else []))]
    ops += binary("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power")
    ops += binary("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
    ops += compares("SIGNED" if signed else "UNSIGNED")
    assert {op: d for op, d in worst_ulp(ops, integers(dtype, 0), integers(dtype, 1)).items() if d} == {}


def test_integer_corners() -> None:
    """Division by zero and the smallest number by -1 are defined, and so are shifts past the width."""
    low = np.iinfo(np.int32).min
    x = np.array([7, -7, low, low, 1, -1, -1, 2, -8], np.int32)
    y = np.array([0, 0, -1, 0, 32, 40, -1, -1, 31], np.int32)
    names = ("divide", "remainder", "shift_left", "shift_right_logical", "shift_right_arithmetic", "power")
    quotient, rest, left, logical, arithmetic, power = compiled(binary(*names), x, y)
    assert quotient[:4].tolist() == [-1, -1, low, -1]
    assert rest[:4].tolist() == [7, -7, 0, low]
    assert left[4:7].tolist() == [0, 0, 0]
    assert logical[4:7].tolist() == [0, 0, 0]
    assert arithmetic[4:].tolist() == [0, -1, -1, 0, -1]
    assert power[5:8].tolist() == [1, -1, 0]


def test_narrow_integers() -> None:
    x = np.arange(-8, 8).astype(np.int8).astype(ml_dtypes.int4)
    y = np.roll(x, 5)
    ops = [*unary("abs", "negate"), *binary("add", "multiply", "divide", "remainder", "maximum", "shift_left")]
    assert {op: d for op, d in worst_ulp(ops, x, y).items() if d} == {}
    u = np.arange(16).astype(np.uint8).astype(ml_dtypes.uint4)
    ops = binary("add", "multiply", "divide", "remainder", "minimum", "shift_right_logical")
    assert {op: d for op, d in worst_ulp(ops, u, np.roll(u, 3)).items() if d} == {}


def test_booleans() -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    ops = [*unary("not"), *binary("and", "or", "xor", "add", "multiply", "maximum", "minimum"), *compares("UNSIGNED")]
    assert {op: d for op, d in worst_ulp(ops, x, y).items() if d} == {}


def test_zeros_have_signs_and_nan_wins() -> None:
    x = np.array([0.0, -0.0, np.nan, 1.0, np.inf], np.float32)
    y = np.array([-0.0, 0.0, 1.0, np.nan, -np.inf], np.float32)
    largest, smallest = compiled(binary("maximum", "minimum"), x, y)
    assert np.signbit(largest[:2]).tolist() == [False, False]
    assert np.signbit(smallest[:2]).tolist() == [True, True]
    assert np.isnan(largest[2:4]).all() and np.isnan(smallest[2:4]).all()


def test_select_and_clamp_repeat_scalars() -> None:
    text = """func.func @main(%p: tensor<i1>, %q: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xf32>, %l: tensor<f32>,
                              %h: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.select %p, %x, %y : tensor<i1>, tensor<4xf32>
      %1 = stablehlo.select %q, %x, %y : tensor<4xi1>, tensor<4xf32>
      %2 = stablehlo.clamp %l, %x, %h : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
      %3 = stablehlo.clamp %y, %x, %x : tensor<4xf32>
      return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
    }"""
    x = np.array([-5.0, 0.25, np.nan, 9.0], np.float32)
    y = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    chosen = np.array([True, False, True, False])
    low, high = np.array(0.0, np.float32), np.array(1.0, np.float32)
    _, _, clamped, _ = with_reference(text, np.array(True), chosen, x, y, low, high)
    np.testing.assert_array_equal(clamped, np.array([0.0, 0.25, np.nan, 1.0], np.float32))


def test_map() -> None:
    text = """func.func @main(%x: tensor<3x5xf32>, %y: tensor<3x5xf32>) -> tensor<3x5xf32> {
      %0 = "stablehlo.map"(%x, %y) ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %two = stablehlo.constant dense<2.0> : tensor<f32>
        %1 = stablehlo.multiply %a, %two : tensor<f32>
        %2 = stablehlo.maximum %1, %b : tensor<f32>
        stablehlo.return %2 : tensor<f32>
      }) {dimensions = array<i64: 0, 1>} : (tensor<3x5xf32>, tensor<3x5xf32>) -> tensor<3x5xf32>
      return %0 : tensor<3x5xf32>
    }"""
    x = np.arange(15, dtype=np.float32).reshape(3, 5) - 7
    y = x[::-1].copy()
    np.testing.assert_array_equal(stablehlo_py.compile(text)(x, y)[0], np.maximum(2 * x, y))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 0, 3), (2, 1, 3, 1, 2, 5)])
def test_shapes(shape: tuple[int, ...]) -> None:
    x = np.linspace(-2, 2, int(np.prod(shape))).astype(np.float32).reshape(shape)
    total, root = compiled([*binary("add"), *unary("abs")], x, x)
    np.testing.assert_array_equal(total, x + x)
    np.testing.assert_array_equal(root, np.abs(x))
