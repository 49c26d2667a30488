"""fft on the CPU: the results of a short factor are written by one step of a sequential loop, which reads it once."""

from __future__ import annotations

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.fft import fourier, stage_in_order


@lower("stablehlo.fft", target="cpu")
def lower_fft(op: Op, operand: Tensor) -> Tensor:
    return fourier(op, operand, stage_in_order)
