"""Arrays for the arguments of random programs: ordinary numbers with the special ones strewn in."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from stablehlo_py.core.quantization import quantization
from stablehlo_py.core.types import ELEMENT_TYPES, ElementType

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 1e-3, 2.5, -2.5, 1e30, -1e30)


def make_array(shape: Sequence[int], element: str, style: str, seed: int) -> np.ndarray:
    """style: any (specials, extremes), mild (small and finite), positive, index (some out of range), wide (complex
    numbers with parts of any size)."""
    random = np.random.default_rng(seed)
    shape = tuple(shape)
    if element.startswith("!quant"):
        of = quantization(element)
        return np.asarray(random.integers(of.low, of.high, shape, endpoint=True)).astype(of.storage.dtype)
    info = ELEMENT_TYPES[element]
    if info.is_complex:
        # no huge parts unless asked for: whether a product of them overflows depends on how it is computed
        part_style = {"any": "calm", "wide": "any"}.get(style, style)
        parts = [_floats(random, shape, info.part, part_style) for _ in range(2)]
        array = np.empty(shape, info.dtype)
        array.real, array.imag = parts
        return array
    if info.is_float:
        return _floats(random, shape, info, style)
    if info.is_bool:
        return np.asarray(random.integers(0, 2, shape), bool)
    return _integers(random, shape, info, style)


def _floats(random: np.random.Generator, shape: tuple[int, ...], info: ElementType, style: str) -> np.ndarray:
    wide = random.standard_normal(shape) * random.choice((0.3, 1.0, 1.0, 4.0))
    if style == "positive":
        wide = np.abs(wide) + 0.25
    wide = np.asarray(wide)
    with np.errstate(all="ignore"):
        if style in ("any", "calm"):
            special = SPECIAL if style == "any" else SPECIAL[:-2]
            wide = np.where(random.random(shape) < 0.12, random.choice(special, shape), wide)
            wide = np.where(random.random(shape) < 0.04, wide * 40, wide)
        array = np.asarray(wide.astype(info.dtype))
        if style == "any" and info.bits >= 16:
            limits = ml_dtypes.finfo(info.dtype)
            edges = np.array([limits.max, limits.min, limits.smallest_subnormal, limits.smallest_normal], info.dtype)
            array = np.asarray(np.where(random.random(shape) < 0.04, random.choice(edges, shape), array))
    return array.astype(info.dtype)


def _integers(random: np.random.Generator, shape: tuple[int, ...], info: ElementType, style: str) -> np.ndarray:
    bits = info.bits
    low, high = (0, 2**bits - 1) if info.is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    wide = np.int64 if not info.is_unsigned else np.uint64
    near = (max(low, -8), min(high, 12))
    if style == "index":
        near = (max(low, -3), min(high, 18))
    small = random.integers(*near, shape, endpoint=True).astype(wide)
    if style == "any":
        full = random.integers(low, high, shape, dtype=wide, endpoint=True)
        small = np.where(random.random(shape) < 0.3, full, small)
        edges = np.array([low, high, 0, 1], wide)
        small = np.where(random.random(shape) < 0.12, random.choice(edges, shape), small)
    if style == "index":
        small = np.where(random.random(shape) < 0.05, np.array([low, high], wide)[random.integers(0, 2, shape)], small)
    if style == "positive":
        small = np.where(small < 1, np.array(1, wide), small)
    return np.asarray(small).astype(info.dtype)
