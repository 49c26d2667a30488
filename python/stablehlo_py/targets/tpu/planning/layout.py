"""Tiled layouts: how a TPU lays an array out in tiles, and how many bytes that takes.

The two minor dimensions are cut into tiles of 8 sublanes by 128 lanes of 32-bit words. Narrow elements share a word:
`T(8,128)(2,1)` packs two rows of bf16. A second-minor dimension below 8 takes a smaller tile, down to one packed row.
Which dimensions are the two minor ones is free: the pair that pads least is taken, and the usual order where pairs tie.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from stablehlo_py.core.types import ELEMENT_TYPES, ElementType, element_type_of
from stablehlo_py.machine.tpu import Chip, chip
from stablehlo_py.records import record

WORD_BITS = 32
XLA_NAMES = {"pred": "i1", "s2": "i2", "s4": "i4", "s8": "i8", "s16": "i16", "s32": "i32", "s64": "i64"}
XLA_NAMES |= {"u2": "ui2", "u4": "ui4", "u8": "ui8", "u16": "ui16", "u32": "ui32", "u64": "ui64"}


@record
class TiledLayout:
    """minor_to_major: dimensions from the fastest; tile: sizes along the two (or one) minor of them; packing: rows a word."""

    minor_to_major: tuple[int, ...]
    tile: tuple[int, ...]
    packing: int
    element_bits: int
    padded_shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return math.prod(self.padded_shape) * self.element_bits // 8

    @property
    def tiles(self) -> str:
        """The tiles alone: `T(8,128)(2,1)`."""
        text = f"T({','.join(map(str, self.tile))})"
        if self.packing > 1 and self.minor_to_major:
            text += "(128)" if len(self.tile) == 1 else ""
            text += f"({self.packing},1)"
        return text + (f"E({self.element_bits})" if self.element_bits < 8 else "")

    @property
    def text(self) -> str:
        """As XLA prints it: `{1,0:T(8,128)(2,1)}`."""
        return f"{{{','.join(map(str, self.minor_to_major))}:{self.tiles}}}"


def tiled_layout(shape: tuple[int, ...], dtype: object, *, machine: Chip | str = "v5e") -> TiledLayout:
    """The layout of an array of `shape` that pads least."""
    machine = chip(machine) if isinstance(machine, str) else machine
    bits = _storage_bits(as_element(dtype))
    packing = max(1, WORD_BITS // bits)
    if len(shape) < 2:
        return _row_layout(shape, bits, packing, machine)
    best = None
    for minor, second in _pairs(len(shape)):
        layout = _plane_layout(shape, minor, second, bits, packing, machine)
        if best is None or layout.bytes < best.bytes:
            best = layout
    assert best is not None  # a shape of rank 2 or more has a pair
    return best


def natural_layout(shape: tuple[int, ...], dtype: object, *, machine: Chip | str = "v5e") -> TiledLayout:
    """The layout with the last dimension minor: what a matrix unit takes its operands from."""
    machine = chip(machine) if isinstance(machine, str) else machine
    bits = _storage_bits(as_element(dtype))
    packing = max(1, WORD_BITS // bits)
    if len(shape) < 2:
        return _row_layout(shape, bits, packing, machine)
    return _plane_layout(shape, len(shape) - 1, len(shape) - 2, bits, packing, machine)


def as_element(dtype: object) -> ElementType:
    """An element type from its StableHLO, XLA, NumPy or ml_dtypes name, or from a dtype."""
    if isinstance(dtype, ElementType):
        return dtype
    if isinstance(dtype, str):
        name = XLA_NAMES.get(dtype, dtype)
        if name in ELEMENT_TYPES:
            return ELEMENT_TYPES[name]
        dtype = getattr(ml_dtypes, name, name)
    return element_type_of(np.dtype(dtype))  # type: ignore[arg-type]


def _storage_bits(element: ElementType) -> int:
    """Booleans and 6-bit floats take a byte; complex numbers two words."""
    if element.is_bool or element.bits == 6:
        return 8
    return 2 * element.bits if element.is_complex else element.bits


def _pairs(rank: int) -> list[tuple[int, int]]:
    """(minor, second minor), the usual order first."""
    return [(a, b) for a in reversed(range(rank)) for b in reversed(range(rank)) if a != b]


def _row_layout(shape: tuple[int, ...], bits: int, packing: int, machine: Chip) -> TiledLayout:
    """Rank 0 and 1: a tile is one to eight rows of lanes, as the size asks for."""
    smallest = machine.lanes * packing
    largest = max(smallest, machine.lanes * machine.sublanes)
    size = shape[0] if shape else 1
    tile = min(largest, max(smallest, _power_of_two(size)))
    return TiledLayout(tuple(range(len(shape))), (tile,), packing, bits, (up(size, tile),))


def _plane_layout(
    shape: tuple[int, ...], minor: int, second: int, bits: int, packing: int, machine: Chip
) -> TiledLayout:
    rows = max(packing, min(machine.sublanes, _power_of_two(shape[second])))
    padded = list(shape)
    padded[minor] = up(shape[minor], machine.lanes)
    padded[second] = up(shape[second], rows)
    rest = tuple(d for d in reversed(range(len(shape))) if d not in (minor, second))
    return TiledLayout((minor, second, *rest), (rows, machine.lanes), packing, bits, tuple(padded))


def _power_of_two(size: int) -> int:
    """The least power of two that is not below size."""
    return 1 << max(0, size - 1).bit_length()


def up(size: int, multiple: int) -> int:
    """The least multiple that is not below size."""
    return -(-size // multiple) * multiple
