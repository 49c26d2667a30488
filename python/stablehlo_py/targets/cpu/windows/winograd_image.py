"""Where a tile of a convolution by Winograd's filters finds the part of the image that it reads, features innermost.

In the image itself; where that ends within the tile, in a copy of this part with zeros around; and where the features of
the image are apart, in a copy of all that a step reads, turned in registers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.ops import llvm_ops
from stablehlo_py.targets.cpu.emit import nest, streaming
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.windows.winograd_plan import Winograd
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

Index = int | ir.Value
Part = tuple[Address, list[Index]]  # where it begins, and how far one place is from the next along each axis


class ImageParts:
    """group: elements that are multiplied together, for which the strides of the plan's geometry count as one."""

    def __init__(self, plan: Winograd, image: ir.Value, group: int) -> None:
        self.plan, self.of, self.image, self.group = plan, plan.geometry, image, group
        self.stored = Vectors(ir.MemRefType(image.type).element_type, plan.lanes * group)
        self.features = plan.depth * group
        sizes = [plan.images, *plan.reach] if plan.is_image_turned else [1, *plan.reads]
        self.strides = [math.prod(sizes[n + 1 :]) * self.features for n in range(len(sizes))]  # of the copy
        self.copy = nest.scratch([sizes[0] * self.strides[0]], self.stored.element)

    def begin(self) -> None:
        """What is the same for all steps: the zeros around."""
        if self.plan.is_image_turned:
            size = ir.MemRefType(self.copy.type).shape[0]
            streaming.fill_zeros(Address.of(self.copy, [0]), size, self.stored)

    def fill(self, b: Index, first: Index) -> None:
        """Copy what the step reads that begins with image `b` and place `first` of the result."""
        if not self.plan.is_image_turned:
            return
        of, plan = self.of, self.plan
        column = plan.image_column
        axis = of.axes[column]
        before = max(axis.before, 0)
        count = min(plan.reach[column], axis.size + axis.before) - before

        def row(x: Index, to: Index, inside: ir.Value | None) -> None:
            source = Address.of(self.image, [add(x, before - axis.before)])
            target = Address.of(self.copy, [add(to, before * self.strides[1 + column])])
            strides = of.loops["i"].x, self.strides[1 + column]

            def turn() -> None:
                turned(source, strides[0], self.features, target, strides[1], count, self.stored)

            def clear() -> None:
                nest.loop(
                    0,
                    count,
                    1,
                    lambda n: streaming.fill_zeros(target.moved(multiply(n, strides[1])), self.features, self.stored),
                )

            nest.when(True if inside is None else inside, turn, clear)

        def along(n: int, x: Index, to: Index, inside: ir.Value | None) -> None:
            if n == len(of.axes):
                row(x, to, inside)
                return
            if n == column:
                along(n + 1, x, to, inside)
                return
            start = nest.subtract(multiply(first, of.axes[0].step) if n == 0 else 0, of.axes[n].before)

            def one(k: Index) -> None:
                at = nest.index(add(start, k))
                both = _both(inside, nest.is_below(at, of.axes[n].size))
                along(n + 1, add(x, multiply(at, of.axes[n].x)), add(to, multiply(k, self.strides[1 + n])), both)

            nest.once_or_loop(plan.reach[n], 1, one)

        def image(n: Index) -> None:
            along(0, multiply(add(b, n), of.loops["b"].x), multiply(n, self.strides[0]), None)

        nest.once_or_loop(plan.images, 1, image)

    def of_tile(self, at: Sequence[Index], b: Index, starts: dict[str, Index]) -> Part:
        """What the tile `at` these numbers along the axes reads of image `b` of the step."""
        begins = [multiply(place, move) for place, move in zip(at, self.plan.moves, strict=True)]
        if self.plan.is_image_turned:
            place = nest.place_of([b, *begins], self.strides)
            return Address.of(self.copy, [place]), list(self.strides[1:])
        begins[0] = add(begins[0], multiply(starts["o0"], self.of.axes[0].step))
        corner = [nest.subtract(begin, axis.before) for begin, axis in zip(begins, self.of.axes, strict=True)]
        return self._source(corner, add(starts["b"], b))

    def _source(self, corner: list[Index], b: Index) -> Part:
        """In the image itself, or in a copy with zeros around."""
        plan, axes = self.plan, self.of.axes
        inside: ir.Value | None = None
        for axis, first, count, tiles, move in zip(axes, corner, plan.reads, plan.tiles, plan.moves, strict=True):
            if axis.before > 0 or (tiles - 1) * move - axis.before + count > axis.size:
                inside = _both(inside, nest.is_below(first, max(axis.size - count + 1, 0)))
        strides: list[Index] = [axis.x * self.group for axis in axes]

        def whole() -> Address:
            start = multiply(b, self.of.loops["b"].x * self.group)
            return Address.of(self.image, [add(start, nest.place_of(corner, strides))])

        if inside is None:
            return whole(), strides

        def copy() -> list[ir.Value]:
            self._copy(corner, b)
            return [Address.of(self.copy, [0]).pointer, *map(nest.index, self.strides[1:])]

        types = [llvm_ops.pointer_type(), *[ir.IndexType.get()] * len(axes)]
        found = nest.choose(inside, types, lambda: [whole().pointer, *map(nest.index, strides)], copy)
        return Address(found[0], element_bytes(self.stored.element)), list(found[1:])

    def _copy(self, corner: list[Index], b: Index) -> None:
        plan, axes = self.plan, self.of.axes

        def along(n: int, place: Index, to: Index, inside: ir.Value | None) -> None:
            if n == len(axes):
                assert inside is not None
                target = Address.of(self.copy, [to])
                move = self._move
                nest.when(inside, lambda: move(Address.of(self.image, [place]), target), lambda: move(None, target))
                return

            def one(k: Index) -> None:
                at = nest.index(add(corner[n], k))
                both = _both(inside, nest.is_below(at, axes[n].size))
                x = add(place, multiply(at, axes[n].x * self.group))
                along(n + 1, x, add(to, multiply(k, self.strides[1 + n])), both)

            nest.once_or_loop(plan.reads[n], 1, one)

        along(0, multiply(b, self.of.loops["b"].x * self.group), 0, None)

    def _move(self, source: Address | None, target: Address) -> None:
        """All features of one place of the image, or zeros, to the copy."""
        if source is None:
            streaming.fill_zeros(target, self.features, self.stored)
            return
        nest.in_vectors(
            self.features, self.stored.lanes, lambda c: target.moved(c).store(source.moved(c).load(self.stored.type))
        )


def _both(a: ir.Value | None, b: ir.Value) -> ir.Value:
    return b if a is None else arith.andi(a, b)
