"""Convolutions as register tiles: every kind against the reference, both widths of vectors, any number of threads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from ops.agree import numbers, same, with_jax

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.windows.convolution_plan import in_blocks, plan_of
from stablehlo_py.targets.cpu.windows.convolutions import Axis, Geometry, Loop

LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")

# name: (image, kernel, the arguments of conv_general_dilated); sizes that are no multiple of a tile
CASES = {
    "features last": ((2, 13, 11, 24), (3, 3, 24, 40), {"dimension_numbers": LAST}),
    "features first": ((2, 24, 13, 11), (40, 24, 3, 3), {"dimension_numbers": FIRST}),
    "rows of the image": ((1, 3, 40, 70), (3, 3, 5, 5), {"dimension_numbers": FIRST}),
    "one of each": ((1, 1, 50, 45), (1, 1, 7, 5), {"dimension_numbers": FIRST}),
    "depthwise, last": ((2, 17, 15, 36), (3, 3, 1, 36), {"dimension_numbers": LAST, "feature_group_count": 36}),
    "depthwise, first": ((2, 20, 17, 35), (20, 1, 3, 3), {"dimension_numbers": FIRST, "feature_group_count": 20}),
    "grouped": ((2, 24, 15, 15), (36, 6, 3, 3), {"dimension_numbers": FIRST, "feature_group_count": 4}),
    "strided": ((2, 21, 19, 16), (3, 3, 16, 20), {"dimension_numbers": LAST, "window_strides": (2, 3)}),
    "dilated": ((1, 21, 19, 16), (3, 3, 16, 20), {"dimension_numbers": LAST, "rhs_dilation": (2, 3)}),
    "transposed": ((1, 9, 11, 16), (3, 4, 16, 20), {"dimension_numbers": LAST, "lhs_dilation": (2, 3)}),
    "transposed, first": (
        (1, 8, 9, 11),
        (12, 8, 3, 4),
        {"dimension_numbers": FIRST, "lhs_dilation": (1, 2), "rhs_dilation": (1, 2)},
    ),
    "transposed, in parts": ((1, 20, 21, 32), (3, 3, 32, 40), {"dimension_numbers": LAST, "lhs_dilation": (2, 2)}),
    "transposed, first, in parts": (
        (2, 32, 20, 21),
        (24, 32, 3, 3),
        {"dimension_numbers": FIRST, "lhs_dilation": (2, 2)},
    ),
    "transposed, few": ((1, 4, 9, 64), (3, 3, 64, 48), {"dimension_numbers": LAST, "lhs_dilation": (3, 2)}),
    # two loops over taps that would be one, were their numbers the same in each phase
    "transposed, even": ((1, 9, 11, 16), (2, 4, 16, 20), {"dimension_numbers": LAST, "lhs_dilation": (2, 2)}),
    "transposed, lanes apart": (
        (3, 2, 9, 8),
        (2, 4, 4, 14),
        {"dimension_numbers": ("NCHW", "IOHW", "NCHW"), "lhs_dilation": (1, 2), "rhs_dilation": (2, 1)},
    ),
    "one tap": ((2, 30, 9, 11), (20, 30, 1, 1), {"dimension_numbers": FIRST, "window_strides": (2, 1)}),
    "line": ((2, 30, 50), (20, 30, 5), {"dimension_numbers": ("NCH", "OIH", "NCH")}),
    "volume": ((1, 5, 9, 11, 8), (3, 3, 2, 8, 20), {"dimension_numbers": ("NDHWC", "DHWIO", "NDHWC")}),
    "deep, last": ((2, 7, 9, 200), (3, 3, 200, 44), {"dimension_numbers": LAST}),
    "deep, first": ((2, 200, 6, 7), (21, 200, 3, 3), {"dimension_numbers": FIRST}),
    "deep, uneven": ((1, 509, 8, 12), (20, 509, 1, 3), {"dimension_numbers": FIRST, "rhs_dilation": (1, 2)}),
    "few features": ((1, 20, 20, 3), (5, 5, 3, 5), {"dimension_numbers": LAST}),
}
# A dimension of size 1 has its neighbour's stride in memory, but not in a copy with zeros around it.
for order in ("NCH", "NHC", "CNH", "HNC"):
    CASES[f"one place, {order}"] = (
        tuple({"N": 6, "C": 1, "H": 1}[c] for c in order),
        (1, 1, 6),
        {
            "dimension_numbers": (order, "IHO", "NHC"),
            "window_strides": (2,),
            "padding": [(0, 2)],
            "batch_group_count": 6,
        },
    )


def convolution(options: dict) -> Callable:
    spatial = len(options["dimension_numbers"][0]) - 2
    arguments = {"window_strides": (1,) * spatial, "padding": [(1, 2)] * spatial, **options}
    return lambda x, w: lax.conv_general_dilated(x, w, **arguments)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("cpu")
def test_kinds(name: str) -> None:
    image, kernel, options = CASES[name]
    function, x, w = convolution(options), numbers(image), numbers(kernel, seed=1)
    text, wanted = jax.jit(function).lower(x, w).as_text(), jax.jit(function)(x, w)
    found = stablehlo_py.compile(text)(x, w)
    same(found, [np.asarray(wanted)], rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16], ids=["bf16", "f16"])
def test_small_floats(name: str, dtype: type) -> None:
    """Sums in f32, rounded once: half a unit in the last place from the sums of the same numbers in f64."""
    image, kernel, options = CASES[name]
    x, w = numbers(image, dtype), numbers(kernel, dtype, seed=1)
    function = convolution(options)
    (found,) = stablehlo_py.compile(jax.jit(function).lower(x, w).as_text())(x, w)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.jit(function)(x.astype(np.float64), w.astype(np.float64)))
    assert found.dtype == dtype
    unit = 2.0 ** (-8 if dtype is ml_dtypes.bfloat16 else -11)
    error = np.abs(found.astype(np.float64) - wanted)
    assert (error <= 1.01 * unit * np.abs(wanted) + 1e-5 * np.abs(wanted).max()).all()


@pytest.mark.parametrize("name", ["features last", "features first", "depthwise, first", "strided"])
def test_gradients(name: str) -> None:
    image, kernel, options = CASES[name]
    apply = convolution(options)

    def loss(x: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        return jnp.sum(apply(x, w) ** 2)

    with_jax(jax.grad(loss, (0, 1)), numbers(image), numbers(kernel, seed=1), rtol=2e-5)


@pytest.mark.parametrize("layout", [LAST, FIRST])
def test_every_number_of_threads_gives_the_same_bits(layout: tuple[str, ...]) -> None:
    shapes = ((3, 34, 30, 64), (3, 3, 64, 72)) if layout is LAST else ((3, 64, 34, 30), (72, 64, 3, 3))
    x, w = numbers(shapes[0]), numbers(shapes[1], seed=1)
    text = jax.jit(convolution({"dimension_numbers": layout})).lower(x, w).as_text()
    results = [stablehlo_py.compile(text, options=Options(threads=threads))(x, w)[0] for threads in (1, 2, 3)]
    assert " over 0.." in stablehlo_py.compile(text).as_text("program")
    for other in results[1:]:
        np.testing.assert_array_equal(results[0], other)


GUARDED = """
import json, sys
import numpy as np
import stablehlo_py
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.other_cpu import as_cpu

rng = np.random.default_rng(0)
for name, text in json.load(open(sys.argv[1])).items():
    for cpu in ("x86-64-v3", "znver4"):
        with as_cpu(cpu):
            executable = stablehlo_py.compile(text, cache=False)
        arguments = [rng.integers(-9, 9, ty.shape).astype(ty.numpy) for ty in executable.program.arguments]
        for a, b in zip(guarded_call(executable, arguments), executable(*arguments), strict=True):
            assert a.tobytes() == b.tobytes(), (cpu, name)
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux" or "+avx2" not in host()[1], reason="guards by Linux's libc; code for AVX2")
@pytest.mark.parametrize("element", ["float32", "float64", "bfloat16", "int8", "uint8"])
def test_nothing_beside_the_buffers_is_touched(element: str, tmp_path: Path) -> None:
    texts = {}
    for name, (image, kernel, options) in CASES.items():
        wide = jnp.int32 if "int" in element else None
        with jax.enable_x64(element == "float64"):
            x, w = (jax.ShapeDtypeStruct(shape, jnp.dtype(element)) for shape in (image, kernel))
            function = convolution({**options, "preferred_element_type": wide})
            texts[name] = jax.jit(function).lower(x, w).as_text()
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    ran = subprocess.run([sys.executable, "-c", GUARDED, str(path)], capture_output=True, text=True, timeout=600)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]


def test_rows_go_on_in_the_next_row_of_the_image() -> None:
    """Of 49 places, tiles of 6 or 5 rows in one row of 7 waste a quarter."""
    loops = {
        "b": Loop("b", 1, 49 * 64, 0, 49 * 128),
        "g": Loop("g", 1, 64, 128, 128),
        "f": Loop("f", 128, 0, 1, 1),
        "i": Loop("i", 64, 1, 128, 0),
    }
    axes = (Axis(7, 3, 7, 7 * 64, 3 * 8192, 7 * 128, 1, 1, 1, 1), Axis(7, 3, 7, 64, 8192, 128, 1, 1, 1, 1))
    plan = plan_of(Geometry(loops, axes, 0), Cpu(32, 16), 4)
    assert plan is not None
    tile = plan.tile
    assert (tile.row_names, tile.lane.name, tile.rows, tile.vectors) == (["o0", "o1"], "f", 5, 2)


def test_a_tile_of_one_vector_has_many_rows() -> None:
    """8 features of a group fill one vector of 8 lanes: 28 rows in three shares are 10, whose sums hide the latency."""
    loops = {
        "b": Loop("b", 1, 784 * 256, 0, 784 * 256),
        "g": Loop("g", 32, 8, 8, 8),
        "f": Loop("f", 8, 0, 1, 1),
        "i": Loop("i", 8, 1, 256, 0),
    }
    row, taps = 28 * 256, 8 * 256
    axes = (Axis(28, 3, 28, row, 3 * taps, row, 1, 1, 1, 1), Axis(28, 3, 28, 256, taps, 256, 1, 1, 1, 1))
    plan = plan_of(Geometry(loops, axes, 0), Cpu(32, 16), 4, padded=True)
    assert plan is not None
    tile = plan.tile
    assert (tile.row_names, tile.lane.name, tile.rows, tile.vectors) == (["o1"], "f", 10, 1)
    assert plan.split.counts["g"] == 32


def test_deep_sums_are_cut_in_blocks() -> None:
    """Of 3 x 1536 steps at most 400 at a time: 4 blocks of 384 for each of the 3; a prime number of steps stays whole."""
    taps, inner = Loop("t0", 3, 7, 1536, 0), Loop("t1", 1536, 1, 1, 0)
    outer, block = in_blocks([taps, inner], 400)
    assert outer == [taps, Loop("t1", 4, 384, 384, 0)]
    assert block == [Loop("t1", 384, 1, 1, 0)]
    assert in_blocks([taps, inner], 5000) == ([], [taps, inner])
    assert in_blocks([Loop("i", 509, 1, 1, 0)], 400) == ([], [Loop("i", 509, 1, 1, 0)])


def test_a_kernel_larger_than_the_caches_is_packed_once() -> None:
    """9 MB for 784 places: in parts of the places, each would read all of it again."""
    features, places = 512, 28
    loops = {
        "b": Loop("b", 1, features * places**2, 0, features * places**2),
        "g": Loop("g", 1, features, features, features),
        "f": Loop("f", features, 0, 1, 1),
        "i": Loop("i", features, 1, features, 0),
    }
    row, taps = features * places, features * features
    axes = (
        Axis(places, 3, places, row, 3 * taps, row, 1, 1, 1, 1),
        Axis(places, 3, places, features, taps, features, 1, 1, 1, 1),
    )
    for cpu in (Cpu(32, 16), Cpu(64, 32)):
        plan = plan_of(Geometry(loops, axes, 0), cpu, 4, padded=True)
        assert plan is not None
        assert (plan.split.counts["lanes"], plan.split.counts["o0"]) == (plan.split.steps, 1)


@pytest.mark.parametrize("seed", range(40))
def test_of_any_kind(seed: int) -> None:
    """Orders of dimensions, groups, strides, dilations and padding drawn at random, in one to three dimensions."""
    draw = np.random.default_rng(seed)

    def some(choices: list[int], count: int) -> list[int]:
        return [int(n) for n in draw.choice(choices, count)]

    def order(letters: str) -> str:
        return "".join(letters[n] for n in draw.permutation(len(letters)))

    rank = int(draw.integers(1, 4))
    spatial, (groups,) = "DHW"[-rank:], some([1, 1, 1, 2, 3], 1)
    features, results = some([1, 2, 3, 4, 8, 16, 20], 1)[0], some([1, 2, 3, 4, 8, 12, 24], 1)[0]
    image = {
        "N": int(draw.integers(1, 4)),
        "C": features * groups,
        **dict(zip(spatial, some(list(range(1, 15)), rank), strict=True)),
    }
    kernel = {"O": results * groups, "I": features, **dict(zip(spatial, some(list(range(1, 6)), rank), strict=True))}
    orders = (order("NC" + spatial), order("OI" + spatial), order("NC" + spatial))
    options = {
        "dimension_numbers": orders,
        "feature_group_count": groups,
        "window_strides": some([1, 1, 1, 2, 3], rank),
        "lhs_dilation": some([1, 1, 2, 3], rank),
        "rhs_dilation": some([1, 1, 2, 3], rank),
        "padding": [tuple(some([0, 1, 2, 3], 2)) for _ in range(rank)],
    }
    x, w = numbers([image[c] for c in orders[0]]), numbers([kernel[c] for c in orders[1]], seed=1)
    function = convolution(options)
    found = stablehlo_py.compile(jax.jit(function).lower(x, w).as_text())(x, w)
    same(found, [np.asarray(jax.jit(function)(x, w))], rtol=1e-5)
