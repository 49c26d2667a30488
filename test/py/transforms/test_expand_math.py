"""Expansions of mathematical functions: at most 4 units in the last place, special values exactly, no calls left."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from transforms.math_truth import FUNCTIONS, Function, errors, samples, truth_of

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.vectors import expand_math
from stablehlo_py.testing.other_cpu import as_cpu
from stablehlo_py.transforms.math_expansions import CALLS, OPS
from stablehlo_py.transforms.math_expansions.quarter_turns import two_over_pi

TYPES = {"f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
MOST = {"f32": 2.5, "f64": 3.5}  # of the 4 that are promised
COUNT = 20_000
BY_NAME = {f.name: f for f in FUNCTIONS}
CALL = re.compile(r"^\s+(callq|bl)\s+(?!kernel_body)", re.MULTILINE)
WITHOUT_FMA = ("exponential_minus_one", "log_plus_one", "sine", "power", "erfc", "cbrt")


def worst(function: Function, ty: str, *arrays: np.ndarray) -> tuple[float, tuple[np.generic, ...]]:
    """The largest error and where it is."""
    (result,) = stablehlo_py.compile(function.text(ty, len(arrays[0])), cache=False)(*arrays)
    found = errors(result, truth_of(function, *arrays))
    place = int(np.argmax(found))
    return float(found[place]), tuple(x[place] for x in arrays)


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("name", BY_NAME)
def test_dense_samples_and_special_values(name: str, ty: str) -> None:
    error, place = worst(BY_NAME[name], ty, *samples(BY_NAME[name], TYPES[ty], COUNT, seed=7))
    assert error <= MOST[ty], f"{error} units at {place}"


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("name", WITHOUT_FMA)
def test_without_fused_multiply_add(name: str, ty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expand_math, "has_fma", lambda features: False)
    error, place = worst(BY_NAME[name], ty, *samples(BY_NAME[name], TYPES[ty], COUNT, seed=8))
    assert error <= MOST[ty], f"{error} units at {place}"


# the numbers of each format that come closest to a multiple of pi / 2, and the largest ones
HARD_ANGLES = {
    "f32": [16367173.0 * 2.0**72, 12578.0 * 2.0**3, 3.4028234663852886e38, 2.0**24, 2.0**51, 2.0**78, 2.0**105],
    "f64": [6381956970095103.0 * 2.0**797, 1.7976931348623157e308, 2.0**106, 2.0**1023, 2.0**531, 1e22],
}


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("name", ["sine", "cosine", "tan"])
def test_hard_angles(name: str, ty: str) -> None:
    angles = np.array(HARD_ANGLES[ty], TYPES[ty])
    for quarter in range(1, 60):
        angles = np.append(angles, TYPES[ty].type(quarter * math.pi / 2))
    error, place = worst(BY_NAME[name], ty, np.concatenate([angles, -angles]))
    assert error <= MOST[ty], f"{error} units at {place}"


def test_two_over_pi() -> None:
    """The first hexadecimal digits, as printed in tables."""
    assert f"{two_over_pi(128):X}" == "A2F9836E4E441529FC2757D1F534DDC0"


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize(
    "name", ["exponential", "log", "tanh", "log_plus_one", "exponential_minus_one", "power", "atan2", "sine"]
)
def test_any_bits(name: str, ty: str) -> None:
    function, dtype = BY_NAME[name], TYPES[ty]
    executable = stablehlo_py.compile(function.text(ty, 8), cache=False)
    words = st.lists(st.integers(0, 2 ** (8 * dtype.itemsize) - 1), min_size=8, max_size=8)

    @given(st.tuples(*[words] * function.operands))
    def check(operands: tuple[list[int], ...]) -> None:
        arrays = [np.array(bits, f"u{dtype.itemsize}").view(dtype) for bits in operands]
        found = errors(executable(*arrays)[0], truth_of(function, *arrays))
        assert found.max() <= MOST[ty]

    check()


@pytest.mark.parametrize("ty", TYPES)
def test_ends_of_the_range_of_exp(ty: str) -> None:
    """The last finite and the first infinite result, the last subnormal and the first zero."""
    dtype = TYPES[ty]
    info = np.finfo(dtype)
    largest = dtype.type(np.log(np.longdouble(info.max)))
    least = dtype.type(np.log(np.longdouble(info.smallest_subnormal) / 2))
    points = []
    for start in (largest, least):
        for offset in range(-4, 5):
            points.append(start + offset * np.spacing(np.abs(start)))
    array = np.array(points, dtype)
    (result,) = stablehlo_py.compile(BY_NAME["exponential"].text(ty, len(array)), cache=False)(array)
    with np.errstate(all="ignore"):
        wanted = np.exp(array.astype(np.longdouble)).astype(dtype)
    assert np.array_equal(np.isinf(result), np.isinf(wanted))
    assert np.array_equal(result == 0, wanted == 0)


@pytest.mark.parametrize("ty", ["f16", "bf16"])
def test_small_floats_are_rounded_once(ty: str) -> None:
    """All 65536 values: the result in f32, rounded."""
    dtype = np.dtype(np.float16 if ty == "f16" else ml_dtypes.bfloat16)
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    for name in ("tanh", "exponential", "log"):
        (small,) = stablehlo_py.compile(BY_NAME[name].text(ty, 1 << 16), cache=False)(values)
        (single,) = stablehlo_py.compile(BY_NAME[name].text("f32", 1 << 16), cache=False)(values.astype(np.float32))
        with np.errstate(all="ignore"):
            wanted = single.astype(dtype)
        both_nan = np.isnan(small.astype(np.float32)) & np.isnan(wanted.astype(np.float32))
        assert np.all((small.view(np.uint16) == wanted.view(np.uint16)) | both_nan), name


def test_loops_are_vectorised() -> None:
    """No calls of the C library, and wide vectors where the host has them."""
    for name in ("tanh", "exponential", "log", "erf", "logistic", "sine", "power"):
        executable = stablehlo_py.compile(BY_NAME[name].text("f32", 1 << 14), cache=False)
        assembly = executable.as_text("asm")
        assert not CALL.search(assembly), name
        assert len(re.findall("%[yz]mm", assembly)) > 20 or "+avx2" not in host()[1], name


def test_calls_of_the_c_library_are_expanded() -> None:
    text = """func.func private @hypotf(f32, f32) -> f32
    func.func private @lgammaf(f32) -> f32
    func.func @f(%x: f32, %y: f32) -> (f32, f32) {
      %h = call @hypotf(%x, %y) : (f32, f32) -> f32
      %g = call @lgammaf(%x) : (f32) -> f32
      return %h, %g : f32, f32
    }"""
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        expand_math.ExpandMath(features="+fma").run(module.operation)
        after = str(module)
    assert "call @hypotf" not in after
    assert "call @lgammaf" in after


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("op", ["math.exp2", "math.rsqrt"])
def test_ops_that_no_rule_emits(op: str, ty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(OPS, "math.exp", OPS[op])
    truth = np.exp2 if op == "math.exp2" else BY_NAME["rsqrt"].truth
    function = replace(BY_NAME["exponential"], truth=truth)
    error, place = worst(function, ty, *samples(function, TYPES[ty], COUNT))
    assert error <= MOST[ty], f"{error} units at {place}"


@pytest.mark.parametrize("ty", TYPES)
def test_hypot(ty: str) -> None:
    """The absolute value of complex numbers; infinite beside NaN when one part is."""
    dtype = TYPES[ty]
    real, imag = samples(BY_NAME["atan2"], dtype, COUNT)
    kind, pair = f"tensor<{len(real)}x{ty}>", f"tensor<{len(real)}xcomplex<{ty}>>"
    text = f"""func.func @main(%0: {kind}, %1: {kind}) -> {kind} {{
      %z = stablehlo.complex %0, %1 : {pair}
      %r = stablehlo.abs %z : ({pair}) -> {kind}
      return %r : {kind}
    }}"""
    (result,) = stablehlo_py.compile(text, cache=False)(real, imag)
    with np.errstate(all="ignore"):
        truth = np.hypot(real.astype(np.longdouble), imag.astype(np.longdouble))
    assert errors(result, truth).max() <= MOST[ty]


def test_every_expansion_is_measured() -> None:
    measured = len(FUNCTIONS) - len({"logistic", "rsqrt"})  # their rules emit other ops
    assert len(OPS) == measured + len({"math.exp2", "math.rsqrt"})
    assert set(CALLS) == {"hypot"}


def test_features_decide_about_fusing() -> None:
    assert expand_math.has_fma("+avx,+fma,+sse2")
    assert not expand_math.has_fma("+avx,-fma,+fma4")
    assert expand_math.has_fma("+neon,+fp-armv8")


@pytest.mark.skipif(
    "+avx2" not in host()[1].split(",") or "+fma" not in host()[1].split(","), reason="for x86-64 with AVX2"
)
@pytest.mark.parametrize("ty", TYPES)
def test_vectors_of_every_width_give_the_same_bits(ty: str) -> None:
    """Eight or sixteen numbers at a time, and what is left over at the end of each length."""
    lengths = (1, 3, 8, 9, 17, 31, 64, 65, 131)
    chosen = [f for f in FUNCTIONS if f.operands == 1]
    arrays = [samples(f, TYPES[ty], 400, seed=9)[0] for f in chosen]
    random = np.random.default_rng(0)
    inputs = [random.choice(x, n) for x in arrays for n in lengths]
    types = [f"tensor<{n}x{ty}>" for _ in arrays for n in lengths]
    lines = [f'  %r{i} = "{chosen[i // len(lengths)].op}"(%a{i}) : ({kind}) -> {kind}' for i, kind in enumerate(types)]
    head = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    names = ", ".join(f"%r{i}" for i in range(len(types)))
    body = "\n".join(lines)
    every = ", ".join(types)
    text = f"func.func @main({head}) -> ({every}) {{\n{body}\n  return {names} : {every}\n}}\n"
    results = []
    for cpu in ("x86-64-v3", "znver4"):
        with as_cpu(cpu):
            results.append(stablehlo_py.compile(text, cache=False)(*inputs))
    for i, (a, b) in enumerate(zip(*results, strict=True)):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        assert same.all(), (chosen[i // len(lengths)].name, len(a))
