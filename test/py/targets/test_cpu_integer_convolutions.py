"""Convolutions of bytes with i32 results are exact, whatever the number of products and the edges."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from ops.agree import with_reference

import stablehlo_py
from stablehlo_py.compiler import Options
from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.targets.cpu.features import host

# (bytes, height, width, features in, features out, kernel): the products of one sum are kernel^2 * features in
CASES = [
    ("i8", 9, 7, 64, 32, 3),
    ("i8", 6, 6, 200, 19, 3),
    ("i8", 8, 5, 3, 17, 5),
    ("i8", 6, 5, 1024, 16, 3),
    ("ui8", 9, 7, 64, 32, 3),
    ("ui8", 6, 5, 300, 20, 3),
]


@pytest.mark.parametrize(("element", "height", "width", "channels", "features", "size"), CASES)
def test_sums_are_exact(element: str, height: int, width: int, channels: int, features: int, size: int) -> None:
    dtype = np.dtype("int8" if element == "i8" else "uint8")
    total = "i32" if element == "i8" else "ui32"
    rows, columns = height - size + 1, width - size + 1
    x_type = f"tensor<2x{height}x{width}x{channels}x{element}>"
    w_type = f"tensor<{size}x{size}x{channels}x{features}x{element}>"
    out_type = f"tensor<2x{rows}x{columns}x{features}x{total}>"
    text = f"""func.func @main(%x: {x_type}, %w: {w_type}) -> {out_type} {{
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{}}
        {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : ({x_type}, {w_type}) -> {out_type}
      return %0 : {out_type}
    }}"""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(channels)
    # many extremes, so that a sum in f32 would be rounded where it is not cut in time
    extremes = np.array([info.min, info.min, info.max, 1], dtype)
    x = rng.choice(extremes, (2, height, width, channels))
    w = rng.choice(extremes, (size, size, channels, features))
    x[0], w[..., 0] = info.max, info.max
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64), (size, size), axis=(1, 2))
    expected = np.einsum("bhwcij,ijco->bhwo", windows, w.astype(np.int64))
    found = stablehlo_py.compile(text, cache=False)(x, w)
    found = np.asarray(found[0] if isinstance(found, tuple | list) else found)
    assert np.array_equal(found.astype(np.int64), expected)


@pytest.mark.parametrize(
    "window",
    [
        {"window_strides": (2, 1), "padding": [(1, 2), (0, 1)]},
        {"padding": [(1, 1), (2, 0)], "rhs_dilation": (1, 2)},
        {"padding": [(2, 2), (1, 1)], "lhs_dilation": (2, 1)},
        {"padding": [(-1, 1), (1, -2)]},
    ],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_windows(window: dict, groups: int) -> None:
    """Zeros around and between bytes are zeros, whatever the bytes are moved by on the way."""
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (2, 13, 12, 8 * groups)).astype(np.int8)
    w = rng.integers(-128, 128, (3, 3, 8, 40 * groups)).astype(np.int8)
    options = {"window_strides": (1, 1), "dimension_numbers": ("NHWC", "HWIO", "NHWC"), **window}
    convolve = functools.partial(
        lax.conv_general_dilated, feature_group_count=groups, preferred_element_type=jnp.int32, **options
    )
    with_reference(jax.jit(convolve).lower(x, w).as_text(), x, w)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_work_is_shared_among_threads(dtype: type) -> None:
    """Steps that any number of threads may take, with the same sums."""
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    x, w = (
        rng.integers(info.min, info.max, shape, dtype, endpoint=True) for shape in ((1, 21, 19, 64), (3, 3, 64, 48))
    )
    function = functools.partial(
        lax.conv_general_dilated,
        window_strides=(1, 1),
        padding="SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        preferred_element_type=jnp.int32,
    )
    text = jax.jit(function).lower(x, w).as_text()
    wanted = np.asarray(function(x.astype(np.int32), w.astype(np.int32)))
    for threads in (1, 2, 3):
        executable = stablehlo_py.compile(text, options=Options(threads=threads), cache=False)
        np.testing.assert_array_equal(executable(x, w)[0], wanted)
    if cpu_of(host()[1]).int16_pairs:
        assert " over 0.." in executable.as_text("program")
