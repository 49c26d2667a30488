"""Convolution in full generality: dilations, reversal, negative padding, feature and batch groups."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from stablehlo_py.core.registry import evaluate
from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import ConvDims, Convolution
from stablehlo_py.ops.evaluate.contraction import multipliable, summed
from stablehlo_py.ops.evaluate.shape import pad


def convolve(
    op: Convolution, lhs: np.ndarray, rhs: np.ndarray, padding: Sequence[tuple[int, int]], result: ElementType
) -> np.ndarray:
    """lhs by rhs in the layouts of dimension_numbers; sums of products as a contraction has them."""
    dims = op.dims
    left = _channels_last(multipliable(lhs, rhs, result), dims.input_batch, dims.input_spatial, dims.input_feature)
    right = multipliable(rhs, lhs, result)
    right = right.transpose(*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
    rank = len(dims.input_spatial)
    reversal = op.flags("window_reversal", (False,) * rank)
    right = np.flip(right, tuple(d for d in range(rank) if reversal[d]))
    lhs_dilation = op.ints("lhs_dilation", (1,) * rank)
    edges = [(0, 0), *padding, (0, 0)]
    inside = [0, *[d - 1 for d in lhs_dilation], 0]
    left = pad(left, np.zeros((), left.dtype), [lo for lo, _ in edges], [hi for _, hi in edges], inside)
    strides, dilation = op.ints("window_strides", (1,) * rank), op.ints("rhs_dilation", (1,) * rank)
    groups = op.batch_group_count
    if groups == 1:
        product = _windows(left, right, strides, dilation, op.feature_group_count)
    else:
        parts = zip(np.split(left, groups, axis=0), np.split(right, groups, axis=-1), strict=True)
        product = np.concatenate([_windows(lo, hi, strides, dilation, 1) for lo, hi in parts], axis=-1)
    return _to_result_layout(summed(product, result), dims)


def _channels_last(x: np.ndarray, batch: int, spatial: Sequence[int], feature: int) -> np.ndarray:
    return x.transpose(batch, *spatial, feature)


def _to_result_layout(x: np.ndarray, dims: ConvDims) -> np.ndarray:
    """[n, spatial.., c] -> the order of the result's dimension numbers."""
    order = [dims.output_batch, *dims.output_spatial, dims.output_feature]
    return x.transpose(np.argsort(order))


def _windows(
    lhs: np.ndarray, rhs: np.ndarray, strides: Sequence[int], dilation: Sequence[int], groups: int
) -> np.ndarray:
    """[n, spatial.., g * c] x [window.., c, g * o] -> [n, spatial.., g * o]: one product for each place in the window."""
    window = rhs.shape[:-2]
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    sizes = [
        max((n - r) // s + 1, 0) if w else 0 for n, r, s, w in zip(lhs.shape[1:-1], reach, strides, window, strict=True)
    ]
    channels, outputs = rhs.shape[-2], rhs.shape[-1] // groups
    total = np.zeros((groups, lhs.shape[0] * int(np.prod(sizes)), outputs), np.result_type(lhs, rhs))
    if total.size == 0 or channels == 0:
        return total.reshape(lhs.shape[0], *sizes, groups * outputs)
    for place in itertools.product(*map(range, window)):
        starts = [p * d for p, d in zip(place, dilation, strict=True)]
        view = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, strides, strict=True)]
        patch = lhs[(slice(None), *view, slice(None))].reshape(-1, groups, channels).transpose(1, 0, 2)
        total += patch @ rhs[place].reshape(channels, groups, outputs).transpose(1, 0, 2)
    return total.transpose(1, 0, 2).reshape(lhs.shape[0], *sizes, groups * outputs)


@evaluate("stablehlo.convolution")
def evaluate_convolution(op: Convolution, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The convolution with the padding that the program has."""
    return convolve(op, lhs, rhs, op.padding, op.type.element)


@evaluate("stablehlo.dynamic_conv")
def evaluate_dynamic_conv(op: Convolution, lhs: np.ndarray, rhs: np.ndarray, padding: np.ndarray) -> np.ndarray:
    """The convolution with a padding known at run time."""
    op = op if isinstance(op, Convolution) else Convolution(op.operation)
    return convolve(op, lhs, rhs, [(int(lo), int(hi)) for lo, hi in padding], op.type.element)
