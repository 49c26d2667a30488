"""Convolutions on matrix tiles (AMX) against exact sums, whatever the shape, the layout, the signs and the way they are cut."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.targets.cpu.windows import matrix_plan
from stablehlo_py.targets.cpu.windows.matrix_plan import Matrices

pytestmark = pytest.mark.usefixtures("cpu_with_tiles")
LAST = {1: ("NHC", "HIO", "NHC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
FIRST = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW"), 3: ("NCDHW", "OIDHW", "NCDHW")}
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

# name: image, kernel, arguments of conv_general_dilated
CASES = {
    "whole tiles": ((1, 16, 32, 64), (3, 3, 64, 64), {}),
    "rows end within a tile": ((2, 9, 23, 64), (3, 3, 64, 32), {}),
    "rows shorter than a tile": ((3, 7, 7, 64), (3, 3, 64, 48), {}),
    "features no multiple of anything": ((2, 14, 19, 37), (3, 3, 37, 41), {}),
    "a whole tile and two features more": ((1, 18, 20, 65), (3, 3, 65, 48), {}),
    "few features": ((2, 20, 19, 64), (3, 3, 64, 5), {}),
    "three channels, with strides": ((1, 31, 40, 3), (7, 7, 3, 24), {"window_strides": (2, 2)}),
    "one channel": ((1, 30, 28, 1), (9, 9, 1, 32), {}),
    "the image as it is": ((2, 18, 20, 64), (3, 3, 64, 32), {"padding": "VALID"}),
    "a window as long as the image": ((4, 9, 20, 64), (9, 3, 64, 32), {"padding": "VALID"}),
    "less than the image": ((1, 20, 28, 32), (3, 3, 32, 32), {"padding": [(-3, 1), (0, -4)]}),
    "zeros beyond the window": ((1, 12, 18, 32), (3, 3, 32, 32), {"padding": [(5, 0), (2, 4)]}),
    "strides": ((2, 17, 45, 40), (3, 3, 40, 32), {"window_strides": (2, 2)}),
    "taps apart": ((1, 21, 20, 24), (3, 3, 24, 48), {"rhs_dilation": (2, 3)}),
    "in groups": ((1, 14, 18, 64), (3, 3, 16, 128), {"feature_group_count": 4}),
    "in groups of the batch": ((4, 14, 18, 32), (3, 3, 32, 64), {"batch_group_count": 2}),
    "a line": ((2, 201, 64), (5, 64, 48), {}),
    "a long line of one panel": ((1, 900, 32), (5, 32, 32), {}),
    "a volume": ((1, 6, 10, 18, 16), (3, 3, 3, 16, 32), {}),
    "features first": ((2, 32, 17, 20), (40, 32, 3, 3), {"dimension_numbers": FIRST[2]}),
    "features first, few of them": ((1, 3, 24, 36), (10, 3, 5, 5), {"dimension_numbers": FIRST[2]}),
    "features first in a line": ((2, 64, 150), (48, 64, 5), {"dimension_numbers": FIRST[1]}),
    "features first in groups": (
        (1, 64, 13, 20),
        (64, 16, 3, 3),
        {"dimension_numbers": FIRST[2], "feature_group_count": 4},
    ),
    "features first in the image alone": (
        (2, 32, 17, 20),
        (3, 3, 32, 24),
        {"dimension_numbers": ("NCHW", "HWIO", "NHWC")},
    ),
    "features first in the kernel alone": (
        (2, 17, 20, 32),
        (24, 32, 3, 3),
        {"dimension_numbers": ("NHWC", "OIHW", "NHWC")},
    ),
    "features first in the result alone": (
        (2, 17, 20, 32),
        (3, 3, 32, 24),
        {"dimension_numbers": ("NHWC", "HWIO", "NCHW")},
    ),
    "columns before rows": ((2, 17, 20, 32), (3, 2, 32, 24), {"dimension_numbers": ("NWHC", "HWIO", "NHWC")}),
    "a kernel that threads share": ((1, 10, 18, 192), (3, 3, 192, 160), {}),
}


@pytest.fixture(autouse=True)
def for_all(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiles for all that they can do; a test whose name says so leaves the choice to the plan."""
    if "chooses" not in request.function.__name__:
        monkeypatch.setattr(matrix_plan, "GAIN", 0)


def convolution(image: tuple[int, ...], **options: object) -> functools.partial:
    rank = len(image) - 2
    plain = {"window_strides": (1,) * rank, "padding": "SAME", "dimension_numbers": LAST[rank]}
    return functools.partial(lax.conv_general_dilated, **{**plain, **options})


def text_of(function: Callable, *arrays: np.ndarray, result: object) -> str:
    return jax.jit(functools.partial(function, preferred_element_type=result)).lower(*arrays).as_text()


def of_bytes(function: Callable, x: np.ndarray, w: np.ndarray) -> tuple[str, np.ndarray]:
    """The program, and its exact result."""
    with jax.enable_x64(True):
        wanted = np.asarray(function(x.astype(np.int64), w.astype(np.int64), preferred_element_type=jnp.int64))
    return text_of(function, x, w, result=jnp.int32), wanted.astype(np.int32)


def random_bytes(shape: tuple[int, ...], dtype: type, seed: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def on_tiles(text: str, instruction: str, threads: int = 2) -> stablehlo_py.Executable:
    executable = stablehlo_py.compile(text, options=Options(threads=threads), cache=False)
    assert f"llvm.x86.{instruction}" in executable.as_text("loops")
    return executable


@pytest.mark.parametrize("case", CASES)
def test_bytes(case: str) -> None:
    image, kernel, options = CASES[case]
    x, w = random_bytes(image, np.int8, 0), random_bytes(kernel, np.int8, 1)
    text, wanted = of_bytes(convolution(image, **options), x, w)
    np.testing.assert_array_equal(on_tiles(text, "tdpbssd")(x, w)[0], wanted)


@pytest.mark.parametrize("case", ["features no multiple of anything", "features first", "the image as it is"])
def test_unsigned_bytes(case: str) -> None:
    image, kernel, options = CASES[case]
    x, w = random_bytes(image, np.uint8, 0), random_bytes(kernel, np.uint8, 1)
    text, wanted = of_bytes(convolution(image, **options), x, w)
    np.testing.assert_array_equal(on_tiles(text, "tdpbuud")(x, w)[0], wanted)


@pytest.mark.parametrize("case", CASES)
def test_bfloat16(case: str) -> None:
    """Sums in f32, as exact as those of any order are."""
    image, kernel, options = CASES[case]
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(shape).astype(BFLOAT16) for shape in (image, kernel))
    function = convolution(image, **options)
    with jax.enable_x64(True):
        wanted, size = (
            np.asarray(function(*(make(a.astype(np.float64)) for a in (x, w)))) for make in (np.asarray, np.abs)
        )
    text = text_of(function, x, w, result=jnp.float32)
    executable = stablehlo_py.compile(text, options=Options(threads=2), cache=False)
    assert np.all(np.abs(executable(x, w)[0] - wanted) <= 2e-6 * size)


def test_bfloat16_is_on_tiles() -> None:
    x, w = np.zeros((1, 16, 32, 64), BFLOAT16), np.zeros((3, 3, 64, 64), BFLOAT16)
    on_tiles(text_of(convolution(x.shape), x, w, result=jnp.float32), "tdpbf16ps")


@pytest.mark.parametrize("case", ["whole tiles", "features no multiple of anything", "features first", "few features"])
@pytest.mark.parametrize(("image_size", "kernel_size"), [(1.0, 1e-39), (1e-39, 1.0), (1e-20, 1e-20)])
def test_subnormal_bf16_are_numbers(case: str, image_size: float, kernel_size: float) -> None:
    """Tiles take them for zeros, and sums below the normal numbers too; so these are added up without."""
    image, kernel, options = CASES[case]
    rng = np.random.default_rng(0)
    x, w = (
        (rng.choice([-1.5, 0.0, 1.0, 3.0], shape) * size).astype(BFLOAT16)
        for shape, size in ((image, image_size), (kernel, kernel_size))
    )
    function = convolution(image, **options)
    with jax.enable_x64(True):
        wanted, size = (
            np.asarray(function(*(make(a.astype(np.float64)) for a in (x, w)))) for make in (np.asarray, np.abs)
        )
    found = on_tiles(text_of(function, x, w, result=jnp.float32), "tdpbf16ps")(x, w)[0]
    assert np.count_nonzero(wanted) > wanted.size // 2
    assert np.all(np.abs(found - wanted) <= 2e-6 * size + 1000 * 2.0**-149)


def test_subnormal_bf16_in_a_kernel_shorter_than_a_vector() -> None:
    x, w = np.ones((1, 80, 80, 1), BFLOAT16), np.full((3, 3, 1, 3), 1e-39, BFLOAT16)
    text = text_of(convolution(x.shape), x, w, result=jnp.float32)
    (found,) = stablehlo_py.compile(text, cache=False)(x, w)
    assert found[0, 1, 1, 0] == 9 * w[0, 0, 0, 0].astype(np.float32) != 0


def test_what_is_not_finite_stays_where_it_is() -> None:
    """Zeros that fill up a tile meet no infinity of a neighbour."""
    x, w = np.ones((1, 12, 20, 40), BFLOAT16), np.ones((3, 3, 40, 33), BFLOAT16)
    x[0, 5, 7, 3], w[1, 1, 2, 5] = np.inf, np.nan
    function = convolution(x.shape)
    text = text_of(function, x, w, result=jnp.float32)
    found = on_tiles(text, "tdpbf16ps")(x, w)[0]
    np.testing.assert_array_equal(found, np.asarray(function(x.astype(np.float32), w.astype(np.float32))))


# one of all ways to cut a convolution, whatever the count of cycles says
WAYS = {
    "to the result": lambda plan: plan.is_direct,
    "by rows, by way of a buffer": lambda plan: not plan.is_direct and not plan.is_flat,
    "through the ends of rows": lambda plan: plan.is_flat,
    "all images in a step": lambda plan: plan.images == 4,
    "several images in a step": lambda plan: plan.images == 2,
    "the most steps": lambda plan: plan.rows < 6,
}


def planned(monkeypatch: pytest.MonkeyPatch, wanted: Callable[[Matrices], bool]) -> None:
    known = matrix_plan._plans
    monkeypatch.setattr(matrix_plan, "_plans", lambda *of: (plan for plan in known(*of) if wanted(plan)))


# tiles hold features side by side, so that those of images with features first cannot go to the result by themselves
ALL_WAYS = [(way, order) for order in ("last", "first") for way in WAYS if (way, order) != ("to the result", "first")]


@pytest.mark.parametrize(("way", "features"), ALL_WAYS)
@pytest.mark.parametrize("shares", [False, True])
def test_ways(monkeypatch: pytest.MonkeyPatch, way: str, shares: bool, features: str) -> None:
    order = LAST if features == "last" else FIRST
    planned(monkeypatch, WAYS[way])
    monkeypatch.setattr(matrix_plan, "LAUNCH", 0 if shares else 1 << 40)
    image, kernel = ((4, 13, 20, 40), (3, 3, 40, 70)) if order is LAST else ((4, 40, 13, 20), (70, 40, 3, 3))
    x, w = random_bytes(image, np.int8, 0), random_bytes(kernel, np.int8, 1)
    text, wanted = of_bytes(convolution(image, dimension_numbers=order[2]), x, w)
    for threads in (1, 2, 3):
        np.testing.assert_array_equal(on_tiles(text, "tdpbssd", threads)(x, w)[0], wanted)


GUARDED = """
import numpy as np
from targets.test_cpu_matrix_convolutions import CASES, convolution, matrix_plan, of_bytes, on_tiles, random_bytes
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.other_cpu import as_cpu

matrix_plan.GAIN = 0
with as_cpu("sapphirerapids"):
    for image, kernel, options in CASES.values():
        x, w = random_bytes(image, np.int8, 0), random_bytes(kernel, np.int8, 1)
        text, wanted = of_bytes(convolution(image, **options), x, w)
        np.testing.assert_array_equal(guarded_call(on_tiles(text, "tdpbssd", 1), [x, w])[0], wanted)
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="pages are protected by Linux's libc")
def test_nothing_beside_the_buffers_is_touched() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", GUARDED]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]


def test_the_machine_chooses_vectors_for_small_ones_and_for_one_channel_a_group() -> None:
    for image, kernel, options in (
        ((1, 4, 4, 8), (3, 3, 8, 8), {}),
        ((1, 28, 28, 64), (3, 3, 1, 64), {"feature_group_count": 64}),
    ):
        x, w = random_bytes(image, np.int8, 0), random_bytes(kernel, np.int8, 1)
        text, wanted = of_bytes(convolution(image, **options), x, w)
        executable = stablehlo_py.compile(text, cache=False)
        assert "llvm.x86.tdp" not in executable.as_text("loops")
        np.testing.assert_array_equal(executable(x, w)[0], wanted)
