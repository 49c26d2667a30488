"""Tiled layouts: the text that XLA prints for a v5e, and the bytes that it reports."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py import tpu


@pytest.mark.parametrize(
    ("shape", "dtype", "text", "padded"),
    [
        ((300, 500), "float32", "{1,0:T(8,128)}", 622592),
        ((300, 500), "bf16", "{1,0:T(8,128)(2,1)}", 311296),
        ((300, 500), "s8", "{1,0:T(8,128)(4,1)}", 155648),
        ((300, 500), "i4", "{1,0:T(8,128)(8,1)E(4)}", 77824),
        ((), "f32", "{:T(128)}", 512),
        ((), "bool", "{:T(512)}", 512),
        ((7,), "bfloat16", "{0:T(256)(128)(2,1)}", 512),
        ((1000,), "f32", "{0:T(1024)}", 4096),
        ((4, 300), np.int8, "{1,0:T(4,128)(4,1)}", 1536),
        ((4096, 1), np.float32, "{0,1:T(1,128)}", 16384),
        ((2, 3, 129, 200), ml_dtypes.bfloat16, "{3,0,2,1:T(2,128)(2,1)}", 396288),
        ((3, 5, 7), "f8E4M3FN", "{2,0,1:T(4,128)(4,1)}", 2560),
    ],
)
def test_layout(shape, dtype, text, padded):
    layout = tpu.tiled_layout(shape, dtype)
    assert (layout.text, layout.bytes) == (text, padded)


def test_an_empty_array_takes_no_bytes():
    assert tpu.tiled_layout((0, 128), "f32").bytes == 0


def test_no_other_pair_of_minor_dimensions_pads_less():
    rng = np.random.default_rng(9)
    for _ in range(50):
        shape = tuple(int(x) for x in rng.integers(1, 40, 3))
        layout = tpu.tiled_layout(shape, "f32")
        for order in ((2, 1, 0), (2, 0, 1), (1, 0, 2), (1, 2, 0), (0, 1, 2), (0, 2, 1)):
            turned = tuple(shape[d] for d in reversed(order))
            assert layout.bytes <= _bytes(turned)


def _bytes(shape: tuple[int, ...]) -> int:
    rows = min(8, 1 << (shape[-2] - 1).bit_length())
    return 4 * int(np.prod(shape[:-2])) * -(-shape[-2] // rows) * rows * -(-shape[-1] // 128) * 128
