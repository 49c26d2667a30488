"""ducc_fft and dynamic_ducc_fft: the Fourier transforms of JAX's exports of 2023, whose first operand describes them."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.fft

from stablehlo_py.custom_calls.registry import register_custom_call
from stablehlo_py.runtime.program import ArrayType

Attributes = Mapping[str, Any]  # Any: as in CustomCall
Types = tuple[ArrayType, ...]


@register_custom_call("ducc_fft")
def ducc_fft(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> np.ndarray:
    """inputs: descriptor, operand. The descriptor's fields 5, 6 and 7 are axes, forward and scale."""
    fields = _Table(inputs[0].tobytes())
    scale = fields.scalar(7, "<d", 0.0)
    return _transform(inputs[1], results[0], fields.vector(5), bool(fields.scalar(6, "<B", 0)), scale)


@register_custom_call("dynamic_ducc_fft")
def dynamic_ducc_fft(inputs: list[np.ndarray], attributes: Attributes, results: Types) -> np.ndarray:
    """inputs: descriptor, operand, its shape, strides of both, scale[1]. Fields 3 and 4 are axes and forward."""
    fields = _Table(inputs[0].tobytes())
    scale = float(inputs[5].ravel()[0])
    return _transform(inputs[1], results[0], fields.vector(3), bool(fields.scalar(4, "<B", 0)), scale)


def _transform(operand: np.ndarray, result: ArrayType, axes: list[int], forward: bool, scale: float) -> np.ndarray:
    """The transform whose kind follows from the types; unnormalised, then times scale."""
    if any(axis >= operand.ndim for axis in axes):
        raise ValueError(f"axes {axes} of an operand of rank {operand.ndim}")
    if operand.dtype.kind != "c":
        made = scipy.fft.rfftn(operand, axes=axes)
    elif result.numpy.kind != "c":
        made = scipy.fft.irfftn(operand, [result.shape[axis] for axis in axes], axes=axes, norm="forward")
    elif forward:
        made = scipy.fft.fftn(operand, axes=axes)
    else:
        made = scipy.fft.ifftn(operand, axes=axes, norm="forward")
    return (np.asarray(made) * scale).astype(result.numpy, copy=False)


class _Table:
    """The root table of a flatbuffer: fields by number, absent ones at their defaults."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = self._read("<I", 0)
        self.vtable = self.at - self._read("<i", self.at)
        self.fields = (self._read("<H", self.vtable) - 4) // 2

    def scalar(self, number: int, form: str, default: float) -> float:
        offset = self._offset(number)
        return self._read(form, self.at + offset) if offset else default

    def vector(self, number: int) -> list[int]:
        """A vector of 32-bit numbers."""
        offset = self._offset(number)
        if not offset:
            return []
        start = self.at + offset + self._read("<I", self.at + offset)
        return [self._read("<I", start + 4 + 4 * i) for i in range(min(self._read("<I", start), 64))]

    def _offset(self, number: int) -> int:
        return self._read("<H", self.vtable + 4 + 2 * number) if number < self.fields else 0

    def _read(self, form: str, at: int) -> Any:  # Any: int or float, by the form
        if at < 0 or at + struct.calcsize(form) > len(self.data):
            raise ValueError("the descriptor of a Fourier transform is damaged")
        return struct.unpack_from(form, self.data, at)[0]
