"""convert, bitcast_convert, reduce_precision: every pair of element types, one rounding, saturation."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from ops.agree import same
from ops.programs import Applied, compiled, worst_ulp

import stablehlo_py
from stablehlo_py.core.types import ELEMENT_TYPES, ElementType, element_type

SMALL = [row for row in ELEMENT_TYPES.values() if row.is_float and row.bits < 32]
KINDS = [
    *("i1", "i4", "ui4", "i8", "ui8", "i16", "ui16", "i32", "ui32", "i64", "ui64"),
    *("f16", "bf16", "f32", "f64", "f8E5M2", "f4E2M1FN", "complex<f32>", "complex<f64>"),
]


def convert(x: np.ndarray, target: str) -> np.ndarray:
    return compiled([Applied("stablehlo.convert", (0,), target)], x)[0]


def equal_bits(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Elementwise; any NaN equals any NaN."""
    raw = np.dtype(f"uint{ours.dtype.itemsize * 8}")
    with np.errstate(invalid="ignore"):
        nan = np.isnan(ours.astype(np.float64)) & np.isnan(theirs.astype(np.float64))
    return (ours.view(raw) == theirs.view(raw)) | nan


def patterns(element: ElementType) -> np.ndarray:
    """Every bit pattern of a small float."""
    raw = np.uint16 if element.bits == 16 else np.uint8
    return np.arange(1 << element.bits).astype(raw).view(element.dtype)


def odd_f32(x: np.ndarray) -> np.ndarray:
    """f64 to f32 cut towards zero, the last bit set where something was lost: a later rounding is then the only one."""
    with np.errstate(over="ignore", under="ignore"):
        near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32)
    cut = np.where(np.abs(back) > np.abs(x), bits - 1, bits) | np.uint32(1)
    return np.where((back == x) | np.isnan(x), bits, cut).astype(np.uint32).view(np.float32)


@pytest.mark.parametrize("element", SMALL, ids=str)
def test_every_pattern_of_a_small_float(element: ElementType) -> None:
    """To f32 exactly, and back to the same bits."""
    every = patterns(element)
    wide = every.astype(np.float32)
    got = convert(every, "f32")
    assert equal_bits(got, wide).all()
    assert equal_bits(convert(got, element.name), every).all()


@pytest.mark.parametrize("element", SMALL, ids=str)
def test_rounding_to_a_small_float(element: ElementType) -> None:
    """Random values, ties and their neighbours, from f32 and from f64."""
    rng = np.random.default_rng(0)
    values = patterns(element).astype(np.float32)
    values = values[np.isfinite(values)]
    ties = values[:-1] / 2 + values[1:] / 2
    info = ml_dtypes.finfo(element.dtype)
    x = np.concatenate(
        [
            rng.integers(0, 2**32, 500, dtype=np.uint32).view(np.float32),
            rng.uniform(-1, 1, 500).astype(np.float32) * np.float32(info.max),
            rng.standard_normal(500).astype(np.float32) * np.float32(info.smallest_normal),
            *(ties, np.nextafter(ties, np.float32(9e9)), np.nextafter(ties, np.float32(-9e9))),
            np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32),
        ]
    )
    with np.errstate(over="ignore"):
        assert equal_bits(convert(x, element.name), x.astype(element.dtype)).all()
    wide = np.concatenate([x, np.nextafter(x.astype(np.float64), np.inf), np.nextafter(x.astype(np.float64), -np.inf)])
    with np.errstate(over="ignore"):
        assert equal_bits(convert(wide, element.name), odd_f32(wide).astype(element.dtype)).all()


def values_of(element: ElementType) -> np.ndarray:
    """The ends of the range, powers of two and what is next to them, and for floats what no integer can be."""
    if element.is_bool:
        return np.array([True, False])
    if element.is_integer:
        low, high = (
            (0, 2**element.bits - 1)
            if element.is_unsigned
            else (-(2 ** (element.bits - 1)), 2 ** (element.bits - 1) - 1)
        )
        near = [
            (1 << k) + d + ((1 << k) >> s) for k in range(element.bits) for d in (-1, 0, 1) for s in (8, 9, 11, 24, 64)
        ]
        numbers = [low, low + 1, high - 1, high, 0, 1, *(v for v in near), *(-v for v in near)]
        storage = np.dtype(f"{'u' if element.is_unsigned else ''}int{max(8, element.bits)}")
        return np.array([min(max(v, low), high) for v in numbers], storage).astype(element.dtype)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        0.5,
        -0.5,
        -0.999,
        1.5,
        2.5,
        127.5,
        -128.9,
        255.9,
        65519.9,
        65520,
        1e-40,
    ]
    powers = [s * 2.0**k * f for k in range(-4, 66, 3) for s in (1, -1) for f in (1, 1 + 2.0**-8, 1 - 2.0**-12)]
    with np.errstate(over="ignore"):
        numbers = np.array([*special, *powers]).astype(element.part.dtype)
    if not element.is_complex:
        return numbers
    pairs = np.empty(numbers.shape, element.dtype)
    pairs.real, pairs.imag = numbers, numbers[::-1]
    return pairs


def expected(x: np.ndarray, source: ElementType, target: ElementType) -> np.ndarray:
    """The conversion in exact arithmetic, element by element."""
    if source.is_complex and not target.is_complex:
        return expected(x.real, source.part, target)
    if target.is_complex:
        return x.astype(target.dtype) if source.is_complex else expected(x, source, target.part).astype(target.dtype)
    if source.is_float:
        return from_floats(x, target)
    numbers = [int(v) for v in x]
    if target.is_bool:
        return np.array([v != 0 for v in numbers])
    if target.is_float:
        return np.array([rounded(v, target) for v in numbers], target.dtype)
    return wrapped(numbers, target)


def from_floats(x: np.ndarray, target: ElementType) -> np.ndarray:
    if target.is_bool:
        return x.astype(np.float64) != 0
    if target.is_float:
        wide = x.astype(np.float64)
        return (odd_f32(wide) if target.bits < 32 else wide).astype(target.dtype)
    low, high = (
        (0, 2**target.bits - 1) if target.is_unsigned else (-(2 ** (target.bits - 1)), 2 ** (target.bits - 1) - 1)
    )
    cut = [0 if np.isnan(v) else min(max(int(max(min(v, 1e30), -1e30)), low), high) for v in x.astype(np.float64)]
    return wrapped(cut, target)


def rounded(value: int, target: ElementType) -> np.generic:
    """An integer as a float with one rounding; f64 holds 53 bits, the rest is folded into the last."""
    if target.bits == 64:
        return np.float64(value)
    size = abs(value)
    shift = max(0, size.bit_length() - 50)
    folded = (size >> shift) | int(size & ((1 << shift) - 1) != 0)
    wide = np.array([np.copysign(float(folded << shift), value)])
    return (wide.astype(np.float32) if target.bits == 32 else odd_f32(wide).astype(target.dtype))[0]


def wrapped(numbers: list[int], target: ElementType) -> np.ndarray:
    modulus = 1 << target.bits
    kept = [v % modulus for v in numbers]
    if not target.is_unsigned:
        kept = [v - modulus if v >= modulus // 2 else v for v in kept]
    storage = np.dtype(f"{'u' if target.is_unsigned else ''}int{max(8, target.bits)}")
    return np.array(kept, storage).astype(target.dtype)


@pytest.mark.parametrize("source", KINDS)
def test_every_pair(source: str) -> None:
    x = values_of(element_type(source))
    results = compiled([Applied("stablehlo.convert", (0,), target) for target in KINDS], x)
    for target, got in zip(KINDS, results, strict=True):
        with np.errstate(over="ignore", invalid="ignore"):
            wanted = expected(x, element_type(source), element_type(target))
        same((got,), [wanted], 0.0)


def test_reduce_precision() -> None:
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64, np.float16):
        x = np.concatenate([rng.standard_normal(200), [0, -0.0, np.inf, np.nan, 1e-39, 60000, 1.9990234375]]).astype(
            dtype
        )
        ops = [
            Applied("stablehlo.reduce_precision", attributes=f"exponent_bits = {e} : i32, mantissa_bits = {m} : i32")
            for e, m in ((5, 10), (8, 7), (4, 3), (3, 0), (8, 23))
        ]
        assert {op: d for op, d in worst_ulp(ops, x).items() if d} == {}
    bf16 = Applied("stablehlo.reduce_precision", attributes="exponent_bits = 8 : i32, mantissa_bits = 7 : i32")
    x = rng.standard_normal(500).astype(np.float32)
    same(compiled([bf16], x), [x.astype(ml_dtypes.bfloat16).astype(np.float32)], 0.0)


@pytest.mark.parametrize(
    ("source", "target", "shape", "result"),
    [
        ("f32", "i32", (3, 4), (3, 4)),
        ("bf16", "ui16", (5,), (5,)),
        ("i64", "f64", (2,), (2,)),
        ("f64", "i8", (3,), (3, 8)),
        ("i8", "f64", (3, 8), (3,)),
        ("ui32", "f16", (2, 3), (2, 3, 2)),
        ("f16", "ui32", (2, 3, 2), (2, 3)),
        ("ui16", "f16", (500,), (500,)),
        ("bf16", "i16", (500,), (500,)),
        ("complex<f32>", "complex<f64>", (3, 2), (3,)),
        ("complex<f64>", "complex<f32>", (3,), (3, 2)),
        ("f8E4M3FN", "i8", (6,), (6,)),
    ],
)
def test_bitcast(source: str, target: str, shape: tuple[int, ...], result: tuple[int, ...]) -> None:
    before, after = element_type(source), element_type(target)
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (*shape, before.dtype.itemsize), np.uint8).view(before.dtype).reshape(shape)
    ins, outs = ("tensor<" + "".join(f"{d}x" for d in s) + t + ">" for s, t in ((shape, source), (result, target)))
    text = f"""func.func @main(%x: {ins}) -> {outs} {{
      %0 = stablehlo.bitcast_convert %x : ({ins}) -> {outs}
      return %0 : {outs}
    }}"""
    got = stablehlo_py.compile(text)(x)[0]
    wanted = np.frombuffer(x.tobytes(), after.dtype).reshape(result)
    assert got.dtype == wanted.dtype
    assert got.tobytes() == wanted.tobytes()


def test_bitcast_below_a_byte() -> None:
    """Eight booleans or two i4 in a byte, the lowest bits first."""
    text = """func.func @main(%x: tensor<3xi8>) -> (tensor<3x8xi1>, tensor<3x2xi4>, tensor<3xi8>) {
      %0 = stablehlo.bitcast_convert %x : (tensor<3xi8>) -> tensor<3x8xi1>
      %1 = stablehlo.bitcast_convert %x : (tensor<3xi8>) -> tensor<3x2xi4>
      %2 = stablehlo.bitcast_convert %1 : (tensor<3x2xi4>) -> tensor<3xi8>
      return %0, %1, %2 : tensor<3x8xi1>, tensor<3x2xi4>, tensor<3xi8>
    }"""
    x = np.array([0x5A, -1, 0x17], np.int8)
    bits, halves, back = stablehlo_py.compile(text)(x)
    np.testing.assert_array_equal(
        bits, np.unpackbits(x.view(np.uint8)[:, None], axis=1, bitorder="little").astype(bool)
    )
    assert halves.astype(np.int8).tolist() == [[-6, 5], [-1, -1], [7, 1]]
    np.testing.assert_array_equal(back, x)
