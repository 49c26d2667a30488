"""Convolutions with large windows go through Fourier transforms, where those need far fewer operations.

y[o] = sum over t of x[o + t - P] w[t] is a part of the product of two polynomials, x and the reversed w:

    convolution(x, w)  ->  slice(irfft(rfft(pad(x)) * rfft(pad(reverse(w)))))

The result has the error of the transforms, which is relative to the norms of x and w and not to the element (see
docs/numerics.md), so this is for floats whose operands do not ask for precision HIGHEST. One infinity or NaN would
reach every element: a result that is not finite throughout is thrown away and the convolution done as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Made, Pass
from stablehlo_py.core.types import TensorType, element_type, tensor_type
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Convolution
from stablehlo_py.mlir import ir, stablehlo
from stablehlo_py.records import record

FEWEST_TAPS = 256  # below, the worst error of a plain sum is no larger than that of the transforms
# A transform of n real numbers counts as 2.5 n log2 n operations, which run at an eighth of the rate of a convolution's
# (measured on CPUs with AVX2 and AVX-512: 15 to 25 % of the peak, and every pass goes through memory); the rewrite
# must save half of the time to be worth its error.
SLOWER = 8
GAIN = 2
PRIMES = (2, 3, 5)  # of a length that is transformed fast


class HloFftConvolutions(Pass):
    """Replace convolutions of floats with large windows by products of spectra."""

    name: ClassVar[str] = "hlo-fft-convolutions"
    only_with: ClassVar[tuple[str, ...]] = ("stablehlo.convolution",)

    def run(self, op: ir.Operation) -> Made:
        changed = False
        for operation in operations_named(op, "stablehlo.convolution"):
            plan = plan_of(Convolution(operation))
            if plan is not None:
                with ir.InsertionPoint(operation), operation.location:
                    result = _checked(Convolution(operation), plan.spectral_product())
                operation.results[0].replace_all_uses_with(result)
                operation.erase()
                changed = True
        return None if changed else False


@record
class Window:
    """One spatial dimension: sizes with their dilations, and where the result begins in the whole product."""

    image: int
    taps: int
    places: int
    stride: int
    first: int  # the place of result 0 in the product of image and reversed window; may be outside
    length: int  # of the transforms

    @staticmethod
    def of(image: int, taps: int, places: int, stride: int, before: int) -> Window:
        first = taps - 1 - before
        last, end = first + (places - 1) * stride, image + taps - 1
        # what wraps around may fall on places that nobody reads
        needed = max(last + 1, end - max(first, 0), image, taps, 1)
        return Window(image, taps, places, stride, first, fast_length(min(needed, end) if last < end else end))


def fast_length(least: int) -> int:
    """The smallest even number of small factors that is no less."""
    length = least + least % 2
    while True:
        rest = length
        for p in PRIMES:
            while rest % p == 0:
                rest //= p
        if rest == 1:
            return length
        length += 2


def plan_of(op: Convolution) -> _Plan | None:
    """What to do where it pays and is allowed; None for all other convolutions."""
    types = (*op.operand_types, op.type)
    dims, rank = op.dims, op.spatial_rank
    if any(ty.element.name not in ("f32", "f64") or ty.size == 0 for ty in types) or not 1 <= rank <= 3:
        return None
    if any(not isinstance(v.type, ir.RankedTensorType) or not v.type.has_static_shape for v in op.operation.operands):
        return None
    if op.wants_precision or op.batch_group_count != 1 or types[1].shape[dims.kernel_input_feature] != 1:
        return None
    if math.prod(types[1].shape[d] for d in dims.kernel_spatial) < FEWEST_TAPS:
        return None
    windows = []
    for n in range(rank):
        image = (types[0].shape[dims.input_spatial[n]] - 1) * op.lhs_dilation[n] + 1
        taps = (types[1].shape[dims.kernel_spatial[n]] - 1) * op.rhs_dilation[n] + 1
        places = types[2].shape[dims.output_spatial[n]]
        windows.append(Window.of(image, taps, places, op.window_strides[n], op.padding[n][0]))
    plan = _Plan(op, tuple(windows))
    return plan if plan.pays else None


def _checked(op: Convolution, fast: ir.Value) -> ir.Value:
    """fast where all of it is finite, else the convolution itself."""
    flags = TensorType(op.type.shape, element_type("i1"))
    finite = make.op("is_finite", [fast], flags).results[0]
    every = _all(finite)
    branch = ir.Operation.create("stablehlo.if", results=[fast.type], operands=[every], regions=2)
    for region in branch.regions:
        with ir.InsertionPoint(ir.Block.create_at_start(region, [])):
            value = fast if region == branch.regions[0] else op.operation.clone().results[0]
            ir.Operation.create("stablehlo.return", operands=[value])
    return branch.results[0]


def _all(flags: ir.Value) -> ir.Value:
    """Whether every flag is set."""
    ty = tensor_type(flags.type)
    scalar = TensorType((), ty.element)
    true = make.constant(np.array(True), scalar)
    reduce = ir.Operation.create(
        "stablehlo.reduce",
        results=[scalar.mlir],
        operands=[flags, true],
        attributes={"dimensions": make.integers(range(ty.rank))},
        regions=1,
    )
    block = ir.Block.create_at_start(reduce.regions[0], [scalar.mlir, scalar.mlir])
    with ir.InsertionPoint(block):
        both = make.op("and", list(block.arguments), scalar).results[0]
        ir.Operation.create("stablehlo.return", operands=[both])
    return reduce.results[0]


@record
class _Plan:
    """A convolution of one input feature in each group, with the windows of its spatial dimensions."""

    op: Convolution
    windows: tuple[Window, ...]

    @property
    def batch(self) -> int:
        return self.op.operand_types[0].shape[self.op.dims.input_batch]

    @property
    def groups(self) -> int:
        return self.op.feature_group_count

    @property
    def outputs(self) -> int:
        """Output features of one group."""
        return self.op.type.shape[self.op.dims.output_feature] // self.groups

    @property
    def pays(self) -> bool:
        """Whether the transforms take less than the sums, with what must be gained for their error."""
        op = self.op
        taps = math.prod(op.operand_types[1].shape[d] for d in op.dims.kernel_spatial)
        sums = 2 * op.type.size * taps
        length = math.prod(w.length for w in self.windows)
        count = self.batch * self.groups + self.groups * self.outputs + self.batch * self.groups * self.outputs
        return sums > GAIN * SLOWER * 2.5 * count * length * math.log2(max(length, 2))

    def spectral_product(self) -> ir.Value:
        op, dims = self.op, self.op.dims
        x, w = op.operation.operands
        rank = len(self.windows)
        lengths = [window.length for window in self.windows]
        # (batch, group, 1, spatial) and (1, group, output, spatial)
        image = make.transpose(x, [dims.input_batch, dims.input_feature, *dims.input_spatial])
        image = self._padded(image, [window.image for window in self.windows], op.lhs_dilation)
        kernel = make.transpose(w, [dims.kernel_output_feature, dims.kernel_input_feature, *dims.kernel_spatial])
        kernel = make.reverse(kernel, [2 + n for n in range(rank) if not op.window_reversal[n]])
        kernel = self._padded(kernel, [window.taps for window in self.windows], op.rhs_dilation)
        kernel = make.reshape(kernel, [self.groups, self.outputs, *lengths])
        left, right = self._transform(image, "RFFT"), self._transform(kernel, "RFFT")
        spectrum = tensor_type(left.type).shape[2:]
        shape = [self.batch, self.groups, self.outputs, *spectrum]
        last = range(3, 3 + rank)
        product = make.elementwise(
            "multiply", make.broadcast(left, shape, [0, 1, *last]), make.broadcast(right, shape, [1, 2, *last])
        )
        result = self._transform(product, "IRFFT")
        result = make.reshape(result, [self.batch, self.groups * self.outputs, *lengths])
        return self._placed(result)

    def _padded(self, value: ir.Value, sizes: Sequence[int], dilation: Sequence[int]) -> ir.Value:
        """(.., spatial) with its dilation, filled up with zeros to the length of the transforms."""
        ty = tensor_type(value.type)
        zero = make.constant(np.zeros(()), TensorType((), ty.element))
        high = [0, 0, *(w.length - size for w, size in zip(self.windows, sizes, strict=True))]
        return make.pad(value, zero, [0] * ty.rank, high, [0, 0, *(d - 1 for d in dilation)])

    def _transform(self, value: ir.Value, kind: str) -> ir.Value:
        ty = tensor_type(value.type)
        lengths = [window.length for window in self.windows]
        if kind == "RFFT":
            result = TensorType((*ty.shape[:-1], lengths[-1] // 2 + 1), element_type(f"complex<{ty.element.name}>"))
        else:
            result = TensorType((*ty.shape[:-1], lengths[-1]), ty.element.part)
        kinds = {"fft_type": stablehlo.FftTypeAttr.get(kind), "fft_length": make.integers(lengths)}
        return make.op("fft", [value], result, **kinds).results[0]

    def _placed(self, whole: ir.Value) -> ir.Value:
        """From (batch, feature, spatial of the whole product) the places of the result, in its layout."""
        op, dims = self.op, self.op.dims
        starts, limits, strides, low, high = [0, 0], list(tensor_type(whole.type).shape[:2]), [1, 1], [0, 0], [0, 0]
        for w in self.windows:
            inside = [n for n in range(w.places) if 0 <= w.first + n * w.stride < w.image + w.taps - 1]
            begin, count = (inside[0], len(inside)) if inside else (0, 0)
            starts.append(w.first + begin * w.stride if count else 0)
            limits.append(starts[-1] + (count - 1) * w.stride + 1 if count else 0)
            strides.append(w.stride)
            low.append(begin)
            high.append(w.places - begin - count)
        result = make.slice_(whole, starts, limits, strides)
        if any((*low, *high)):
            zero = make.constant(np.zeros(()), TensorType((), tensor_type(result.type).element))
            result = make.pad(result, zero, low, high, [0] * len(low))
        order = [0] * op.type.rank
        for place, d in enumerate((dims.output_batch, dims.output_feature, *dims.output_spatial)):
            order[d] = place
        return make.transpose(result, order)
