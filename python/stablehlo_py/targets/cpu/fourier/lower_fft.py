"""fft on the CPU: kernels whose body `cpu-emit-fft` writes; lengths with a large prime factor by the loops of any target."""

from __future__ import annotations

import math

from stablehlo_py.core.registry import lower
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.fft import fourier, stage_in_order
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.fourier.fft_butterflies import factors_of
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL

FFT = "kernel.fft"  # marks a kernel that is one fft of its argument and has no body yet
LONGEST = 4096  # of a transform whose values stay in the second-level cache


@record
class Transform:
    """kind: of stablehlo.fft; lengths: of the last dimensions, as the op has them; batch: how many there are."""

    kind: str
    lengths: tuple[int, ...]
    batch: int
    element: str  # of the parts: f32 or f64

    def to_attribute(self) -> ir.Attribute:
        return ir.ArrayAttr.get(
            [
                ir.StringAttr.get(self.kind),
                ir.DenseI64ArrayAttr.get([self.batch, *self.lengths]),
                ir.StringAttr.get(self.element),
            ]
        )

    @staticmethod
    def from_attribute(attribute: ir.Attribute) -> Transform:
        kind, sizes, element = ir.ArrayAttr(attribute)
        batch, *lengths = list(ir.DenseI64ArrayAttr(sizes))
        return Transform(ir.StringAttr(kind).value, tuple(lengths), batch, ir.StringAttr(element).value)


@lower("stablehlo.fft", target="cpu")
def lower_fft(op: Op, operand: Tensor) -> Tensor:
    """A marked kernel without a body, or loops: a short factor written by one step of a sequential loop."""
    lengths, function = op.ints("fft_length"), ir.InsertionPoint.current.block.owner.operation
    single = function.attributes.get(KERNEL) == ir.StringAttr.get("single")
    alone = single and list(function.regions[0].blocks[0].arguments) == [operand.value]
    plain = op.type.size and operand.type.size
    if not (alone and plain and all(n <= LONGEST and factors_of(n, 32) is not None for n in lengths)):
        return fourier(op, operand, stage_in_order)
    element = op.type.element
    part = element.part if element.is_complex else element
    batch = math.prod(op.type.shape[: op.type.rank - len(lengths)])
    made = Transform(op.enum("fft_type"), tuple(lengths), batch, part.name)
    function.attributes[FFT] = made.to_attribute()
    return build.empty(op.type)
