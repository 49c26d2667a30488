"""Uniform quantization as its type says it: integers that stand for numbers, real = (stored - zero_point) * scale."""

from __future__ import annotations

import functools

import numpy as np

from stablehlo_py.core.types import ElementType, TensorType, element_type, tensor_type
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir
from stablehlo_py.patterns import pattern
from stablehlo_py.records import record

_TYPE = pattern(
    r"!quant\.uniform<(?P<storage>[iu]+\d+)(<(?P<low>-?\d+):(?P<high>-?\d+)>)?:(?P<expressed>\w+)(:(?P<axis>\d+))?, "
    r"(?P<scales>[^<>]*)>"
)
_TENSOR = pattern(r"tensor<(?P<shape>(?:(?:\d+|\?)x)*)(?P<element>!quant\..*>)>$")


@record
class Quantization:
    """A uniform quantization, of the whole tensor or of each slice along `axis`; stored integers are low .. high."""

    storage: ElementType
    expressed: ElementType
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int | None
    low: int
    high: int


@functools.lru_cache(maxsize=4096)
def quantization(text: str) -> Quantization:
    """The quantization that `!quant.uniform<...>` spells."""
    found = _TYPE.fullmatch(text)
    if found is None:
        raise BadInput(f"{text} is not supported", hint="uniform quantization of a tensor or along one axis is")
    storage = element_type(found["storage"].replace("u", "ui") if found["storage"][0] == "u" else found["storage"])
    expressed = element_type(found["expressed"])
    low, high = (
        (0, 2**storage.bits - 1) if storage.is_unsigned else (-(2 ** (storage.bits - 1)), 2 ** (storage.bits - 1) - 1)
    )
    pairs = [pair.partition(":") for pair in found["scales"].strip("{}").split(",")]
    # The scale is a number of the expressed type, however many digits are written.
    scales = tuple(float(np.asarray(float(scale)).astype(expressed.dtype)) for scale, _, _ in pairs)
    return Quantization(
        storage,
        expressed,
        scales,
        tuple(int(zero or 0) for _, _, zero in pairs),
        None if found["axis"] is None else int(found["axis"]),
        low if found["low"] is None else int(found["low"]),
        high if found["high"] is None else int(found["high"]),
    )


def quantization_of(ty: ir.Type) -> Quantization | None:
    """The quantization of a tensor type, or None for every other type."""
    found = _TENSOR.match(str(ty))
    return quantization(found["element"]) if found else None


def stored_type(ty: ir.Type) -> TensorType:
    """The type of the array that holds a value: that of the storage for a quantized tensor."""
    found = _TENSOR.match(str(ty))
    if found is None:
        return tensor_type(ty)
    shape = tuple(-1 if d == "?" else int(d) for d in found["shape"].split("x")[:-1])
    return TensorType(shape, quantization(found["element"]).storage)
