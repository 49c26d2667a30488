"""convolution on the CPU: what `cpu-emit-convolutions` has to know, kept beside the plain sum of products.

A convolution is a nest of loops whose every index moves each of the three buffers by a constant stride:

    out[b ob + o oo + g og + f of] = sum over t, i of
        x[b xb + (o S + t R - P) / L xs + g xg + i xi] * w[t wt + g wg + i wi + f wf]

b: batch, o: place in the result, g: group, f: output feature, t: tap of the kernel, i: input feature; o and t one for each
spatial dimension, with strides S, dilations R and L, and P zeros in front. Any layout, reversal and grouping is a choice
of strides.
"""

from __future__ import annotations

import math

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import row_major
from stablehlo_py.dialects.stablehlo import Convolution
from stablehlo_py.mlir import ir
from stablehlo_py.ops.build import Tensor
from stablehlo_py.ops.convolution import lower_convolution
from stablehlo_py.records import record, replace
from stablehlo_py.transforms.kernels.hlo_form_kernels import KERNEL

CONVOLUTION = "kernel.convolution"  # marks a kernel that is one convolution of its arguments


@record
class Loop:
    """How many steps, and by how many elements each moves the place in the image, the kernel and the result."""

    name: str
    extent: int
    x: int
    w: int
    o: int


@record
class Phases:
    """What Axis.in_phases took away: lhs_dilation, zeros in front, taps and places of the whole; front: zeros in front now.

    w, o: elements from one tap and one result to the next.
    """

    count: int
    before: int
    taps: int
    places: int
    front: int
    w: int
    o: int

    @property
    def are_even(self) -> bool:
        return self.places % self.count == 0


@record
class Axis:
    """A spatial dimension: its sizes, its strides in the buffers, and its window. x, w, o: elements from one to the next.

    step: window_stride; spread: rhs_dilation; stuffing: lhs_dilation; before: zeros in front. phases: how many classes of
    results there are, each with taps of its own (see Phases); slack: places of the image beyond those of one class.
    """

    size: int
    taps: int
    places: int
    x: int
    w: int
    o: int
    step: int
    spread: int
    stuffing: int
    before: int
    phases: Phases | None = None
    slack: int = 0

    @property
    def reach(self) -> int:
        """Places of the padded image that all windows together read."""
        return (self.places - 1) * self.step + (self.taps - 1) * self.spread + 1 + self.slack

    def in_phases(self) -> Axis:
        """The same axis without zeros between the elements of the image: results p, p + L, ... by the taps they meet.

        Result p + L j meets an element at tap t where p + t - P is a multiple of L: t0 = (P - p) mod L, then every L-th.
        """
        count = self.stuffing
        if count == 1 or self.step != 1 or self.spread != 1 or self.places < count:
            return self
        first_taps = [(self.before - p) % count for p in range(count)]
        before = [(self.before - p - t0) // count for p, t0 in enumerate(first_taps)]
        taps = [-(-(self.taps - t0) // count) if t0 < self.taps else 0 for t0 in first_taps]
        most, front = max(*taps, 1), max(before)
        return replace(
            self,
            taps=most,
            places=-(-self.places // count),
            w=self.w * count,
            o=self.o * count,
            stuffing=1,
            before=front,
            phases=Phases(count, self.before, self.taps, self.places, front, self.w, self.o),
            slack=max(front - b + t for b, t in zip(before, taps, strict=True)) - most,
        )

    @property
    def is_plain(self) -> bool:
        """Whether all windows lie within the image as it is."""
        return self.stuffing == 1 and self.before <= 0 and self.reach - self.before <= self.size


@record
class Geometry:
    """One convolution: the loops that are not spatial (b, g, f, i) and the axes. first_tap: where tap 0 is in the kernel.

    image, kernel: the numbers of the kernel's arguments. elements: the types of image, kernel and result, by commas.
    is_exact: the program asks for the precision of plain sums.
    """

    loops: dict[str, Loop]
    axes: tuple[Axis, ...]
    first_tap: int
    image: int = 0
    kernel: int = 1
    elements: str = ""
    is_exact: bool = False

    @staticmethod
    def of(op: Convolution) -> Geometry:
        dims, groups, batch_groups = op.dims, op.feature_group_count, op.batch_group_count
        x_shape, w_shape, o_shape = op.operand_types[0].shape, op.operand_types[1].shape, op.type.shape
        xs, ws, os = row_major(x_shape), row_major(w_shape), row_major(o_shape)
        group = max(groups, batch_groups)
        batch, features = x_shape[dims.input_batch] // batch_groups, x_shape[dims.input_feature] // groups
        outputs = o_shape[dims.output_feature] // group
        by_feature = batch_groups == 1
        xb, xi = xs[dims.input_batch], xs[dims.input_feature]
        wf, of = ws[dims.kernel_output_feature], os[dims.output_feature]
        loops = [
            Loop("b", batch, xb, 0, os[dims.output_batch]),
            Loop("g", group, xi * features if by_feature else xb * batch, wf * outputs, of * outputs),
            Loop("f", outputs, 0, wf, of),
            Loop("i", features, xi, ws[dims.kernel_input_feature], 0),
        ]
        axes, first = [], 0
        for n, (d, k, r) in enumerate(zip(dims.input_spatial, dims.kernel_spatial, dims.output_spatial, strict=True)):
            taps, reverse = w_shape[k], op.window_reversal[n]
            first += (taps - 1) * ws[k] if reverse else 0
            window = op.window_strides[n], op.rhs_dilation[n], op.lhs_dilation[n], op.padding[n][0]
            axes.append(Axis(x_shape[d], taps, o_shape[r], xs[d], -ws[k] if reverse else ws[k], os[r], *window))
        return Geometry({loop.name: loop for loop in loops}, tuple(axes), first, is_exact=op.wants_precision)

    def in_groups(self, group: int) -> Geometry | None:
        """The same with `group` neighbouring input features as one element of the image; None if they are apart.

        Strides in the kernel stay those of its elements.
        """
        if group == 1:
            return self
        i = self.loops["i"]
        strides = [self.loops["b"].x, self.loops["g"].x, *(axis.x for axis in self.axes)]
        if i.x != 1 or i.extent % group or any(stride % group for stride in strides):
            return None
        loops = {name: replace(loop, x=loop.x // group) for name, loop in self.loops.items()}
        loops["i"] = replace(i, extent=i.extent // group, w=i.w * group)
        return replace(self, loops=loops, axes=tuple(replace(axis, x=axis.x // group) for axis in self.axes))

    @property
    def products(self) -> int:
        steps = [loop.extent for loop in self.loops.values()] + [a.places * a.taps for a in self.axes]
        return math.prod(steps)

    @property
    def depth(self) -> int:
        """Products in one sum."""
        return math.prod(a.taps for a in self.axes) * self.loops["i"].extent

    def to_attribute(self) -> ir.Attribute:
        numbers = [self.image, self.kernel, self.first_tap, int(self.is_exact)]
        for loop in self.loops.values():
            numbers += [loop.extent, loop.x, loop.w, loop.o]
        for a in self.axes:
            numbers += [a.size, a.taps, a.places, a.x, a.w, a.o, a.step, a.spread, a.stuffing, a.before]
        return ir.ArrayAttr.get([ir.DenseI64ArrayAttr.get(numbers), ir.StringAttr.get(self.elements)])

    @staticmethod
    def from_attribute(attribute: ir.Attribute) -> Geometry:
        numbers, names = ir.ArrayAttr(attribute)
        image, kernel, first, is_exact, *rest = list(ir.DenseI64ArrayAttr(numbers))
        loops = {name: Loop(name, *rest[4 * n : 4 * n + 4]) for n, name in enumerate("bgfi")}
        places = rest[16:]
        axes = tuple(Axis(*places[n : n + 10]) for n in range(0, len(places), 10))
        return Geometry(loops, axes, first, image, kernel, ir.StringAttr(names).value, bool(is_exact))


@lower("stablehlo.convolution", target="cpu")
def lower_marked_convolution(op: Convolution, lhs: Tensor, rhs: Tensor) -> Tensor:
    """The sum of products of any target; its kernel is marked where it does this and nothing else."""
    function = ir.InsertionPoint.current.block.owner.operation
    kind = function.attributes.get(KERNEL)
    arguments = [
        n for v in (lhs.value, rhs.value) for n, a in enumerate(function.regions[0].blocks[0].arguments) if a == v
    ]
    if kind == ir.StringAttr.get("single") and len(arguments) == 2:
        geometry = Geometry.of(op)
        if geometry.products:
            names = ",".join(ty.element.name for ty in (lhs.type, rhs.type, op.type))
            marked = replace(geometry, image=arguments[0], kernel=arguments[1], elements=names)
            function.attributes[CONVOLUTION] = marked.to_attribute()
    return lower_convolution(op, lhs, rhs)
