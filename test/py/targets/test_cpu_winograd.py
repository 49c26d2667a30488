"""Convolutions by Winograd's filters against sums in f64, or exact ones of integers, and what falls back to plain sums."""

from __future__ import annotations

import functools
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax import lax
from ops.agree import numbers

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.targets.cpu.features import host
from stablehlo_py.targets.cpu.windows import matrix_plan, winograd_emitter, winograd_plan
from stablehlo_py.targets.machine_code import CodegenOptions
from stablehlo_py.testing.other_cpu import as_cpu

pytestmark = pytest.mark.skipif("+avx2" not in host()[1], reason="code for AVX2")
ORDERS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}
BOUND = {"float32": 2e-7, "float64": 4e-16, "bfloat16": 2e-7, "float16": 2e-7}  # of norms; see docs/numerics.md

# name: image, kernel, arguments of conv_general_dilated
CASES = {
    "whole tiles": ((1, 32, 28, 64), (3, 3, 64, 32), {}),
    "half a tile left": ((2, 13, 15, 24), (3, 3, 24, 40), {}),
    "features no multiple of a vector": ((2, 14, 13, 27), (3, 3, 27, 37), {}),
    "no zeros around": ((3, 16, 17, 32), (3, 3, 32, 32), {"padding": "VALID"}),
    "zeros beyond the window": ((1, 19, 18, 32), (3, 3, 32, 32), {"padding": [(5, 0), (2, 4)]}),
    "less than the image": ((1, 30, 28, 32), (3, 3, 32, 32), {"padding": [(-3, 1), (0, -4)]}),
    "narrower than a tile's part": ((64, 2, 3, 64), (3, 3, 64, 64), {}),
    "one axis of two": ((1, 24, 20, 64), (3, 1, 64, 64), {}),
    "one axis, with strides along the other": ((1, 24, 41, 64), (3, 1, 64, 64), {"window_strides": (1, 2)}),
    "steps beyond the last place of a plain axis": ((5, 12, 6, 20), (1, 3, 20, 16), {"padding": [(1, 0), (1, 0)]}),
    "a line": ((2, 201, 64), (3, 64, 64), {}),
    "a volume": ((1, 11, 10, 12, 32), (3, 3, 3, 32, 32), {}),
    "images of few places": ((32, 4, 4, 64), (3, 3, 64, 64), {}),
    "a kernel that threads share": ((1, 10, 14, 192), (3, 3, 192, 250), {}),
}


def convolution(image: tuple[int, ...], **options: object) -> functools.partial:
    rank = len(image) - 2
    plain = {"window_strides": (1,) * rank, "padding": "SAME", "dimension_numbers": ORDERS[rank]}
    return functools.partial(lax.conv_general_dilated, **{**plain, **options})


@pytest.fixture
def emitted() -> Iterator[mock.Mock]:
    """Counts the kernels that are written with Winograd's filters."""
    with mock.patch.object(winograd_emitter, "_Emitter", wraps=winograd_emitter._Emitter) as spy:
        yield spy


@pytest.fixture
def whatever_it_takes() -> Iterator[None]:
    """Filters wherever they are right, also where they are no faster, or slower than tiles."""
    with mock.patch.multiple(winograd_plan, GAIN=0.1, LEAST_WORK=1), mock.patch.object(matrix_plan, "GAIN", math.inf):
        yield


def compiled(text: str, cpu: str = "", threads: int | None = None) -> stablehlo_py.Executable:
    options = Options(codegen=CodegenOptions(cpu=cpu), threads=threads)
    return stablehlo_py.compile(text, cache=False, options=options)


def in_f64(function: functools.partial, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(jax.jit(function)(x.astype(np.float64), w.astype(np.float64)))


def norms(function: functools.partial, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """|x| |w| for each element of the result: of what its window reads, and of the weights of its feature."""
    window = in_f64(function, x.astype(np.float64) ** 2, np.ones(w.shape))
    features = np.sum(w.astype(np.float64) ** 2, axis=tuple(range(w.ndim - 1)))
    return np.sqrt(window * features)


@pytest.mark.usefixtures("whatever_it_takes", "cpu")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("element", BOUND)
def test_floats(name: str, element: str, emitted: mock.Mock) -> None:
    image, kernel, options = CASES[name]
    dtype = np.dtype(element if element != "bfloat16" else ml_dtypes.bfloat16)
    x, w = numbers(image, dtype), numbers(kernel, dtype, seed=1)
    wide = np.float64 if element == "float64" else np.float32
    with jax.enable_x64(element == "float64"):
        text = jax.jit(convolution(image, preferred_element_type=wide, **options)).lower(x, w).as_text()
    (found,) = compiled(text)(x, w)
    assert emitted.call_count == 1
    exact = convolution(image, **options)
    error = np.abs(found - in_f64(exact, x, w))
    assert (error <= BOUND[element] * norms(exact, x, w)).all()


@pytest.mark.usefixtures("whatever_it_takes", "cpu")
@pytest.mark.parametrize("features", [16, 192])
def test_numbers_of_one_sign(features: int, emitted: mock.Mock) -> None:
    """Partial sums only grow: the error is that of a long sum, and no more than that of the longer plain one."""
    x, w = (np.abs(numbers(shape, np.float32)) for shape in ((2, 18, 18, features), (3, 3, features, 32)))
    exact = in_f64(convolution(x.shape), x, w)
    errors = []
    for precision in (None, "highest"):
        (found,) = compiled(jax.jit(convolution(x.shape, precision=precision)).lower(x, w).as_text())(x, w)
        errors.append(np.abs(found / exact - 1).max())
    assert emitted.call_count == 1
    assert errors[0] <= errors[1] < features * 9 * 2**-24


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize("name", [name for name, (image, *_) in CASES.items() if len(image) > 3])
@pytest.mark.parametrize("orders", [("first", "first"), ("first", "last"), ("last", "first")])
@pytest.mark.parametrize("element", ["float32", "bfloat16"])
def test_features_apart(name: str, orders: tuple[str, str], element: str, emitted: mock.Mock) -> None:
    """The image, the result or both with features first; rows of places shorter than a vector too; an infinity among them."""
    image, kernel, options = CASES[name]
    dtype = np.dtype(element if element != "bfloat16" else ml_dtypes.bfloat16)
    x, w = numbers(image, dtype).copy(), numbers(kernel, dtype, seed=1)
    x[(-1, *(n // 2 for n in image[1:-1]), 3)] = np.inf
    last = ORDERS[len(image) - 2]
    of = {"last": last[0], "first": "NC" + last[0][1:-1]}
    dims = (of[orders[0]], last[1], of[orders[1]])
    turned = np.ascontiguousarray(np.transpose(x, [last[0].index(c) for c in dims[0]]))
    texts = [
        jax.jit(convolution(image, dimension_numbers=d, precision=p, preferred_element_type=np.float32, **options))
        .lower(a, w)
        .as_text()
        for d, p, a in ((dims, None, turned), (last, "highest", x))
    ]
    (found,) = compiled(texts[0])(turned, w)
    assert emitted.call_count == 1
    (plain,) = compiled(texts[1])(x, w)
    plain = np.transpose(plain, [last[2].index(c) for c in dims[2]])
    assert found.shape == plain.shape
    np.testing.assert_array_equal(np.isinf(found), np.isinf(plain))
    np.testing.assert_allclose(found, plain, rtol=0, atol=1e-5 * np.abs(plain[np.isfinite(plain)]).max())


GUARDED = """
import json, sys
import numpy as np
from stablehlo_py.compiler import compile
from stablehlo_py.targets.cpu.windows import winograd_plan
from stablehlo_py.testing.guard import guarded_call
from stablehlo_py.testing.other_cpu import as_cpu

winograd_plan.GAIN, winograd_plan.LEAST_WORK = 0.01, 1
rng = np.random.default_rng(0)
for name, text in json.load(open(sys.argv[1])).items():
    for cpu in ("x86-64-v3", "znver4"):
        with as_cpu(cpu):
            executable = compile(text, cache=False)
        arguments = [rng.integers(-9, 9, ty.shape).astype(ty.numpy) for ty in executable.program.arguments]
        if executable.program.arguments[0].numpy.kind == "f":
            arguments[0][(0,) * arguments[0].ndim] = np.inf
        for a, b in zip(guarded_call(executable, arguments), executable(*arguments), strict=True):
            assert a.tobytes() == b.tobytes(), (cpu, name)
print("all within bounds")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="guards by Linux's libc")
@pytest.mark.parametrize("element", ["float32", "float64", "bfloat16", "int8"])
@pytest.mark.parametrize("order", ["last", "first"])
def test_nothing_beside_the_buffers_is_touched(element: str, order: str, tmp_path: Path) -> None:
    texts = {}
    for name, (image, kernel, options) in CASES.items():
        last, wide = ORDERS[len(image) - 2], jnp.int32 if "int" in element else None
        if order == "first":
            first = "NC" + last[0][1:-1]
            last = (first, "OI" + last[1][:-2], first)
        image = tuple(dict(zip(ORDERS[len(image) - 2][0], image, strict=True))[c] for c in last[0])
        kernel = tuple(dict(zip(ORDERS[len(image) - 2][1], kernel, strict=True))[c] for c in last[1])
        with jax.enable_x64(element == "float64"):
            x, w = (jax.ShapeDtypeStruct(shape, jnp.dtype(element)) for shape in (image, kernel))
            function = convolution(image, **{**options, "dimension_numbers": last, "preferred_element_type": wide})
            texts[name] = jax.jit(function).lower(x, w).as_text()
    path = tmp_path / "texts.json"
    path.write_text(json.dumps(texts))
    ran = subprocess.run([sys.executable, "-c", GUARDED, str(path)], capture_output=True, text=True, timeout=600)
    assert ran.stdout == "all within bounds\n", ran.stderr[-2000:]


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize("scale", [1e-44, 1e-20, 1e18])
def test_sizes_of_weights_and_elements_do_not_matter(scale: float, emitted: mock.Mock) -> None:
    """Subnormal weights are numbers, and elements of any size beside each other disturb only windows that read them."""
    image, kernel, _ = CASES["whole tiles"]
    rng = np.random.default_rng(3)
    x = (numbers(image) * 10.0 ** rng.integers(-6, 7, image)).astype(np.float32)
    w = (numbers(kernel, seed=1) * scale).astype(np.float32)
    function = convolution(image)
    (found,) = compiled(jax.jit(function).lower(x, w).as_text())(x, w)
    assert emitted.call_count == 1
    smallest = 4 * np.finfo(np.float32).smallest_subnormal
    assert (np.abs(found - in_f64(function, x, w)) <= BOUND["float32"] * norms(function, x, w) + smallest).all()


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize("element", ["float32", "bfloat16"])
@pytest.mark.parametrize("where", ["image", "kernel", "overflow"])
@pytest.mark.parametrize("name", ["half a tile left", "a volume", "one axis, with strides along the other"])
def test_what_is_not_finite_is_that_of_plain_sums(name: str, where: str, element: str, emitted: mock.Mock) -> None:
    image, kernel, options = CASES[name]
    dtype = np.dtype(element if element != "bfloat16" else ml_dtypes.bfloat16)
    x, w = numbers(image, dtype).copy(), numbers(kernel, dtype, seed=1).copy()
    if where == "image":
        x[(0, *(n // 2 for n in image[1:-1]), 3)], x[(-1, *(0 for _ in image[1:-1]), 5)] = np.inf, np.nan
    elif where == "kernel":
        w[(*(1 if n == 3 else 0 for n in kernel[:-2]), 2, 7)] = -np.inf  # met by elements of the image everywhere
    else:
        w = (w.astype(np.float32) * 2.0**118).astype(dtype)
        x[(0, *(n // 2 for n in image[1:-1]))] = 2.0**6  # 36 times this overflows in the transforms, few sums do
    texts = [
        jax.jit(convolution(image, precision=precision, preferred_element_type=np.float32, **options))
        .lower(x, w)
        .as_text()
        for precision in (None, "highest")
    ]
    (found,), (wanted,) = (compiled(text)(x, w) for text in texts)
    assert emitted.call_count == 1
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
    assert where == "overflow" or not np.isfinite(found).all()
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(found[~finite], wanted[~finite])
    np.testing.assert_allclose(found[finite], wanted[finite], rtol=0, atol=1e-5 * np.abs(wanted[finite]).max())


@pytest.mark.usefixtures("whatever_it_takes", "cpu")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_integers_are_exact(name: str, element: str) -> None:
    """Wherever they go: filters are left where a step multiplies more than two bytes, or features are odd."""
    image, kernel, options = CASES[name]
    info, rng = np.iinfo(element), np.random.default_rng(5)
    extremes = np.array([info.min, info.min, info.max, info.max, 1], element)
    x, w = rng.choice(extremes, image), rng.choice(extremes, kernel)
    function = convolution(image, **options)
    text = jax.jit(functools.partial(function, preferred_element_type=jnp.int32)).lower(x, w).as_text()
    (found,) = compiled(text)(x, w)
    np.testing.assert_array_equal(found, in_f64(function, x, w).astype(np.int64))


# Signs of the rows of F(2, 3) and F(4, 3), which bring out the largest elements and weights that are multiplied.
IMAGE_SIGNS = ["++--+0", "0--++0", "0++-+0", "0--++0", "0-++-0", "0++--+", "+0-000", "0++000", "0-+000", "0+0-00"]
KERNEL_SIGNS = ["+++", "+-+", "---", "-+-"]


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize("machine", ["x86-64-v3", "skylake-avx512", "znver4", "sapphirerapids"])
@pytest.mark.parametrize("element", ["int8", "uint8"])
@pytest.mark.parametrize("rank", [1, 2])
def test_the_largest_integers_that_filters_make(element: str, rank: int, machine: str, emitted: mock.Mock) -> None:
    """Tiles and weights whose signs are those of the transforms' rows, along each axis: all sums are as large as can be."""
    info = np.iinfo(element)

    def patterns(signs: list[str]) -> np.ndarray:
        """(pattern, place along each axis): the largest of the type for plus, the smallest for minus, 0 or 1 for none."""
        rows = np.array([[{"+": 1, "-": -1, "0": 0}[c] for c in row] for row in signs])
        if rank == 2:
            rows = np.einsum("ai,bj->abij", rows, rows).reshape(-1, rows.shape[1], rows.shape[1])
        rows = np.concatenate([rows, -rows, np.ones_like(rows), -np.ones_like(rows)])
        return np.where(rows > 0, info.max, np.where(rows < 0, info.min, max(info.min, 0))).astype(element)

    x, w = patterns(IMAGE_SIGNS), patterns(KERNEL_SIGNS)
    x = np.repeat(x[..., None], 64, axis=-1)
    w = np.repeat(np.moveaxis(w, 0, -1)[..., None, :], 64, axis=-2)
    function = convolution(x.shape, padding="VALID")
    text = jax.jit(functools.partial(function, preferred_element_type=jnp.int32)).lower(x, w).as_text()
    with as_cpu(machine):
        (found,) = compiled(text)(x, w)
    has_more = element == "int8" and machine in ("znver4", "sapphirerapids")  # four products at once, of bytes alone
    assert emitted.call_count == (0 if has_more else 1)
    np.testing.assert_array_equal(found, in_f64(function, x, w).astype(np.int64))


@pytest.mark.usefixtures("whatever_it_takes", "cpu")
@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("element", ["float32", "uint8"])
def test_kernels_that_threads_share(element: str, threads: int, emitted: mock.Mock) -> None:
    """Large ones are transformed in a launch of their own, where every part of it makes some panels."""
    image, kernel = (3, 14, 12, 192), (3, 3, 192, 250)
    x, w = numbers(image, element), numbers(kernel, element, seed=1)
    wide = jnp.int32 if element == "uint8" else None
    function = convolution(image)
    text = jax.jit(functools.partial(function, preferred_element_type=wide)).lower(x, w).as_text()
    executable = compiled(text, threads=threads)
    assert emitted.call_args.args[0].shares_kernel
    for _ in range(2):
        (found,) = executable(x, w)
        error = np.abs(found.astype(np.float64) - in_f64(function, x, w))
        assert (error <= BOUND.get(element, 0) * norms(function, x, w)).all()


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize(
    ("element", "image", "kernel", "results"),
    [
        ("int8", (1, 32, 28, 64), (3, 3, 64, 32), [4, 4]),
        ("uint8", (1, 32, 28, 64), (3, 3, 64, 32), [2, 4]),  # weights up to 225 * 255 would not fit into 16 bits
        ("float32", (1, 32, 28, 64), (3, 3, 64, 32), [2, 2]),
        ("int8", (8, 32, 2, 64), (3, 3, 64, 32), [4, 2]),  # four results along an axis of two
        ("int8", (1, 16, 16, 16, 32), (3, 3, 3, 32, 32), [2, 2, 4]),
        ("uint8", (8, 64, 64), (3, 64, 64), [4]),
        ("int8", (1, 24, 20, 64), (3, 1, 64, 64), [4, 1]),
    ],
)
def test_which_filters(
    element: str, image: tuple[int, ...], kernel: tuple[int, ...], results: list[int], emitted: mock.Mock
) -> None:
    wide = jnp.int32 if "int" in element else None
    x, w = jax.ShapeDtypeStruct(image, element), jax.ShapeDtypeStruct(kernel, element)
    compiled(jax.jit(convolution(image, preferred_element_type=wide)).lower(x, w).as_text(), "x86-64-v3")
    assert [one.results for one in emitted.call_args.args[0].filters] == results


@pytest.mark.usefixtures("whatever_it_takes")
@settings(max_examples=40)
@given(
    sizes=st.lists(st.integers(3, 14), min_size=1, max_size=3),
    features=st.tuples(st.integers(1, 3).map(lambda n: 16 * n), st.integers(8, 40)),
    element=st.sampled_from(["int8", "uint8"]),
    before=st.integers(0, 3),
    seed=st.integers(0, 99),
)
def test_integers_of_any_size(
    sizes: list[int], features: tuple[int, int], element: str, before: int, seed: int
) -> None:
    rank, info = len(sizes), np.iinfo(element)
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, (2, *sizes, features[0]), element, endpoint=True)
    w = rng.integers(info.min, info.max, (*[3] * rank, *features), element, endpoint=True)
    function = convolution(x.shape, padding=[(before, 1)] * rank)
    text = jax.jit(functools.partial(function, preferred_element_type=jnp.int32)).lower(x, w).as_text()
    (found,) = compiled(text, "x86-64-v3")(x, w)
    np.testing.assert_array_equal(found, in_f64(function, x, w).astype(np.int64))


@pytest.mark.parametrize(("element", "most"), [("int8", 3640), ("uint8", 916)])
def test_integers_at_the_end_of_their_range(element: str, most: int, emitted: mock.Mock) -> None:
    """The scaled sums of the most features that are taken still fit; of more, plain sums are made."""
    value = np.iinfo(element).min or np.iinfo(element).max
    for features, count in ((most, 1), (most + 2, 0)):
        x, w = np.full((1, 18, 22, features), value, element), np.full((3, 3, features, 16), value, element)
        emitted.reset_mock()
        function = convolution(x.shape, padding="VALID")
        text = jax.jit(functools.partial(function, preferred_element_type=jnp.int32)).lower(x, w).as_text()
        (found,) = compiled(text, "x86-64-v3")(x, w)
        assert emitted.call_count == count
        assert (found == 9 * features * int(value) ** 2).all()


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize(
    ("name", "is_first", "element"),
    [
        ("half a tile left", False, "float32"),
        ("half a tile left", True, "float32"),
        ("images of few places", False, "float32"),
        ("images of few places", True, "float32"),
        ("a line", False, "float32"),
        ("whole tiles", False, "int8"),
        ("half a tile left", False, "uint8"),
    ],
)
def test_every_number_of_threads_gives_the_same_bits(name: str, is_first: bool, element: str) -> None:
    image, kernel, options = CASES[name]
    if is_first:
        image, options = (image[0], image[-1], *image[1:-1]), {"dimension_numbers": ("NCHW", "HWIO", "NCHW")}
    x, w = numbers(image, element), numbers(kernel, element, seed=1)
    if element == "float32":
        x[0, 3, 3] = np.inf  # some steps are done again
    wide = jnp.int32 if "int" in element else None
    text = jax.jit(convolution(image, preferred_element_type=wide, **options)).lower(x, w).as_text()
    first, *others = (compiled(text, threads=threads)(x, w)[0] for threads in (1, 2, 3))
    assert all(first.tobytes() == other.tobytes() for other in others)


def test_where_filters_are_left(emitted: mock.Mock) -> None:
    """Asked for precision, strides, dilations, groups, few places for many weights."""
    image, kernel, _ = CASES["whole tiles"]
    others = [
        (image, kernel, {"precision": "highest"}),
        (image, kernel, {"window_strides": (2, 2)}),
        (image, kernel, {"rhs_dilation": (1, 2)}),
        (image, kernel, {"lhs_dilation": (2, 1), "padding": [(1, 1), (1, 1)]}),
        (image, (3, 3, 32, 64), {"feature_group_count": 2}),
        (image, (5, 5, 64, 32), {}),
        (image, (5, 5, 64, 32), {"lhs_dilation": (2, 2), "padding": [(2, 2), (2, 2)]}),  # three taps for some results
        ((1, 7, 7, 512), (3, 3, 512, 512), {}),
    ]
    for shape, weights, options in others:
        x, w = jax.ShapeDtypeStruct(shape, np.float32), jax.ShapeDtypeStruct(weights, np.float32)
        compiled(jax.jit(convolution(shape, **options)).lower(x, w).as_text())
        assert not emitted.called, options


@pytest.mark.usefixtures("whatever_it_takes")
def test_reversed_windows(emitted: mock.Mock) -> None:
    """What the gradient of the image is made of: taps from the last to the first, output features apart."""
    image, kernel, _ = CASES["half a tile left"]
    w = numbers(kernel, seed=1)

    def transposed(y: jnp.ndarray, w: jnp.ndarray) -> jnp.ndarray:
        return jax.linear_transpose(lambda x: convolution(image)(x, w), jax.ShapeDtypeStruct(image, y.dtype))(y)[0]

    y = numbers((*image[:-1], kernel[-1]), seed=2)
    (found,) = compiled(jax.jit(transposed).lower(y, w).as_text())(y, w)
    with jax.enable_x64(True):
        wanted = np.asarray(jax.jit(transposed)(y.astype(np.float64), w.astype(np.float64)))
    assert np.abs(found - wanted).max() <= 1e-5 * np.abs(wanted).max()
    assert emitted.call_count == 1


@pytest.mark.usefixtures("whatever_it_takes")
@pytest.mark.parametrize("order", ["OIHW", "OHWI", "IOHW", "HWOI"])
@pytest.mark.parametrize("element", ["float32", "float64", "bfloat16", "int8"])
def test_kernels_in_any_order(order: str, element: str, emitted: mock.Mock) -> None:
    image, kernel, _ = CASES["features no multiple of a vector" if "int" not in element else "whole tiles"]
    x, w = numbers(image, element), numbers(kernel, element, seed=1)
    turned = np.ascontiguousarray(np.transpose(w, ["HWIO".index(c) for c in order]))
    exact = convolution(image)
    wide = jnp.int32 if "int" in element else np.float64 if element == "float64" else np.float32
    function = convolution(image, dimension_numbers=("NHWC", order, "NHWC"), preferred_element_type=wide)
    with jax.enable_x64(element == "float64"):
        text = jax.jit(function).lower(x, turned).as_text()
    (found,) = compiled(text, "x86-64-v3")(x, turned)
    assert emitted.call_count == 1
    assert (np.abs(found - in_f64(exact, x, w)) <= BOUND.get(element, 0) * norms(exact, x, w)).all()


@pytest.mark.usefixtures("whatever_it_takes")
def test_all_sizes_up_to_a_few_tiles() -> None:
    for rows, columns in itertools.product((4, 5, 7), (3, 6, 9)):
        shape = (4, rows, columns, 64)
        x, w = numbers(shape), numbers((3, 3, 64, 64), seed=1)
        function = convolution(shape)
        (found,) = compiled(jax.jit(function).lower(x, w).as_text())(x, w)
        assert (np.abs(found - in_f64(function, x, w)) <= BOUND["float32"] * norms(function, x, w)).all()
