"""Conversions between element types, and comparisons."""

from __future__ import annotations

import operator

import numpy as np

from stablehlo_py.core.types import ElementType
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.evaluate.numeric import bits_of, element_of, exact, from_bits, narrow, total_order
from stablehlo_py.ops.evaluate.pointwise import pointwise

_DIRECTIONS = {
    "EQ": operator.eq,
    "NE": operator.ne,
    "LT": operator.lt,
    "LE": operator.le,
    "GT": operator.gt,
    "GE": operator.ge,
}


@pointwise("stablehlo.convert")
def evaluate_convert(op: Op, operand: np.ndarray) -> np.ndarray:
    """Rounds to nearest even; integers wrap; float to integer saturates, NaN to 0; to i1 it is x != 0."""
    return narrow(operand, op.type.element.dtype)


@pointwise("stablehlo.compare")
def evaluate_compare(op: Op, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """IEEE comparison, or the total order of the bits for compare_type TOTALORDER."""
    direction = _DIRECTIONS[op.enum("comparison_direction")]
    if op.enum("compare_type") == "TOTALORDER" and element_of(lhs.dtype).is_float:
        return direction(total_order(lhs), total_order(rhs))
    return direction(exact(lhs), exact(rhs))


def _width(element: ElementType) -> int:
    return element.bits * 2 if element.is_complex else element.bits


def _as_bits(x: np.ndarray) -> np.ndarray:
    """[..] -> [.., width]: one bit an entry, lowest first."""
    element = element_of(x.dtype)
    if element.is_bool:
        return x[..., None].astype(np.uint8)
    parts = np.ascontiguousarray(x).reshape(x.shape) if element.is_complex else bits_of(x)
    bytes_ = np.frombuffer(parts.tobytes(), np.uint8).reshape(*x.shape, x.dtype.itemsize)
    return np.unpackbits(bytes_, axis=-1, bitorder="little")[..., : _width(element)]


def _of_bits(bits: np.ndarray, element: ElementType) -> np.ndarray:
    """[.., width] -> [..]."""
    if element.is_bool:
        return bits[..., 0].astype(np.bool_)
    missing = 8 * element.bytes - bits.shape[-1]
    bits = np.concatenate([bits, np.zeros((*bits.shape[:-1], missing), np.uint8)], axis=-1)
    data = np.packbits(bits, axis=-1, bitorder="little").tobytes()
    if element.is_complex:
        return np.frombuffer(data, element.dtype).reshape(bits.shape[:-1])
    words = np.frombuffer(data, np.dtype(f"uint{8 * element.bytes}")).reshape(bits.shape[:-1])
    return from_bits(words, element.dtype)


@pointwise("stablehlo.bitcast_convert")
def evaluate_bitcast_convert(op: Op, operand: np.ndarray) -> np.ndarray:
    """Same bits, other type: [..] -> [.., n] when the type gets n times narrower, [.., n] -> [..] when wider."""
    source, target = element_of(operand.dtype), op.type.element
    wide, narrow_ = _width(source), _width(target)
    if wide == narrow_ and wide >= 8:
        return np.frombuffer(operand.tobytes(), target.dtype).reshape(operand.shape)
    bits = _as_bits(operand)
    if wide > narrow_:
        return _of_bits(bits.reshape(*operand.shape, wide // narrow_, narrow_), target)
    if wide < narrow_:
        return _of_bits(bits.reshape(*operand.shape[:-1], narrow_), target)
    return _of_bits(bits, target)
