"""Convolutions on the target against the reference interpreter: windows, strides, dilations, groups, layouts."""

from __future__ import annotations

import numpy as np
import pytest

from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret

from .kernels import compile_text, small_integers

NHWC = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
NCHW = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"
MIXED = "[f, 0, b, 1]x[i, 1, 0, o]->[0, f, 1, b]"

CASES = {
    "plain": ((2, 6, 7, 3), (3, 2, 3, 5), (2, 4, 6, 5), NHWC, ""),
    "one by one": ((2, 6, 7, 3), (1, 1, 3, 5), (2, 6, 7, 5), NHWC, ""),
    "strides and padding": ((1, 8, 9, 2), (3, 3, 2, 4), (1, 4, 5, 4), NHWC, "stride = [2, 2], pad = [[1, 1], [1, 1]]"),
    "negative padding": ((1, 8, 9, 2), (3, 3, 2, 4), (1, 4, 8, 4), NHWC, "pad = [[-1, -1], [1, 0]]"),
    "rhs dilation": ((1, 8, 9, 2), (3, 3, 2, 4), (1, 4, 5, 4), NHWC, "rhs_dilate = [2, 2]"),
    "lhs dilation": ((1, 4, 4, 2), (3, 3, 2, 4), (1, 7, 7, 4), NHWC, "pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]"),
    "reversal": ((1, 5, 5, 2), (3, 2, 2, 4), (1, 3, 4, 4), NHWC, "reverse = [true, false]"),
    "feature groups": ((2, 5, 5, 6), (3, 3, 2, 9), (2, 3, 3, 9), NHWC, "groups"),
    "batch groups": ((4, 5, 5, 3), (3, 3, 3, 6), (2, 3, 3, 6), NHWC, "batches"),
    "nchw": ((2, 3, 6, 7), (5, 3, 3, 2), (2, 5, 4, 6), NCHW, ""),
    "mixed": ((3, 6, 2, 7), (3, 2, 3, 5), (4, 5, 6, 2), MIXED, ""),
}


@pytest.mark.parametrize("name", CASES)
def test_convolution(name):
    lhs, rhs, out, numbers, window = CASES[name]
    feature_groups = 3 if window == "groups" else 1
    batch_groups = 2 if window == "batches" else 1
    window = "" if window in ("groups", "batches") else window
    types = ["tensor<" + "x".join(map(str, shape)) + "xf32>" for shape in (lhs, rhs, out)]
    text = f"""func.func @main(%x: {types[0]}, %w: {types[1]}) -> {types[2]} {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = {numbers}, window = {{{window}}}
        {{feature_group_count = {feature_groups} : i64, batch_group_count = {batch_groups} : i64}}
        : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]} }}"""
    rng = np.random.default_rng(10)
    x, w = small_integers(rng, lhs, "f32"), small_integers(rng, rhs, "f32")
    with new_context(), ir.Location.unknown():
        (expected,) = interpret(ir.Module.parse(text), x, w)
    program = compile_text(text)
    assert "stablehlo.convolution" not in program.as_text()
    np.testing.assert_array_equal(program(x, w)[0], expected)


def test_a_huge_window_stays_with_the_host():
    types = ["tensor<1x20x20x1xf32>", "tensor<20x20x1x1xf32>", "tensor<1x1x1x1xf32>"]
    text = f"""func.func @main(%x: {types[0]}, %w: {types[1]}) -> {types[2]} {{
      %r = stablehlo.convolution(%x, %w) dim_numbers = {NHWC}, window = {{}}
        {{feature_group_count = 1 : i64, batch_group_count = 1 : i64}} : ({types[0]}, {types[1]}) -> {types[2]}
      return %r : {types[2]} }}"""
    program = compile_text(text)
    assert "its window has 400 positions" in program.report().notes[0]
    x, w = np.ones((1, 20, 20, 1), np.float32), np.ones((20, 20, 1, 1), np.float32)
    assert program(x, w)[0].item() == 400
