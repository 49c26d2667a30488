"""The part of an image that a step of a convolution by matrix tiles reads, copied with zeros around, its features innermost.

Every place has room for `pitch` features, zeros behind those of the image. Behind the last place is room for what tiles read of
places that are no results.
"""

from __future__ import annotations

import math

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest, streaming
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, ROWS
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.windows.matrix_plan import Matrices

Index = int | ir.Value


class ImageCopy:
    """A scratch buffer that one step after the other fills."""

    def __init__(self, plan: Matrices, source: ir.Value) -> None:
        self.plan, self.of, self.source = plan, plan.geometry, source
        self.element = ir.MemRefType(source.type).element_type
        behind = ROWS * self.of.axes[-1].step * plan.pitch + plan.tile_elements
        self.size = -(-(plan.images * plan.strides[0] + behind) // plan.tile_elements) * plan.tile_elements
        self.buffer = nest.scratch([self.size], self.element)

    def begin(self) -> None:
        """What is the same for all steps: the zeros around."""
        self._clear(Address.of(self.buffer, [0]), self.size)

    def fill(self, b: Index, first: Index, place: Index) -> None:
        """Copy what the step reads that begins with image `b` and place `first` of the result; place: of its first feature."""
        of, plan = self.of, self.plan

        def along(n: int, x: Index, to: Index, inside: ir.Value | None) -> None:
            axes = of.axes[n:]
            if not axes or (len(axes) == 1 and not self._is_cut_along_rows):
                move = self._row if axes else self._place
                count = plan.reach[-1] if axes else 1
                source, target = Address.of(self.source, [x]), Address.of(self.buffer, [to])
                nest.when(
                    True if inside is None else inside,
                    lambda: move(source, target),
                    lambda: self._clear(target, count * plan.pitch),
                )
                return
            start = nest.subtract(multiply(first, axes[0].step) if n == 0 else 0, axes[0].before)

            def one(k: Index) -> None:
                at = nest.index(add(start, k))
                is_here = None if axes[0].is_plain else nest.is_below(at, axes[0].size)
                both = arith.andi(inside, is_here) if inside and is_here else inside or is_here
                along(n + 1, add(x, multiply(at, axes[0].x)), add(to, multiply(k, plan.strides[1 + n])), both)

            nest.once_or_loop(plan.reach[n], 1, one)

        def image(n: Index) -> None:
            along(0, add(place, multiply(add(b, n), of.loops["b"].x)), multiply(n, plan.strides[0]), None)

        nest.once_or_loop(plan.images, 1, image)

    @property
    def _is_cut_along_rows(self) -> bool:
        return len(self.of.axes) == 1 and self.plan.split.counts["o0"] > 1

    def _row(self, source: Address, target: Address) -> None:
        """All places of the last axis that are in the image; source: of place 0, target: of the first of the zeros."""
        plan, axis, features = self.plan, self.of.axes[-1], self.of.loops["i"]
        before, skipped = max(axis.before, 0), max(-axis.before, 0)
        count = min(plan.reach[-1] - before, axis.size - skipped)
        if count <= 0:
            return
        source, target = source.moved(skipped * axis.x), target.moved(before * plan.pitch)
        if features.x != 1 and features.extent > 1:
            turned(source, features.x, features.extent, target, plan.pitch, count, Vectors(self.element, LANES))
        elif axis.x == plan.pitch == features.extent:
            self._move(source, target, count * features.extent)
        else:
            nest.once_or_loop(
                count,
                1,
                lambda n: self._place(source.moved(multiply(n, axis.x)), target.moved(multiply(n, plan.pitch))),
            )

    def _place(self, source: Address, target: Address) -> None:
        self._move(source, target, self.of.loops["i"].extent)

    def _move(self, source: Address, target: Address, count: int) -> None:
        vectors = self._vectors(count)
        nest.in_vectors(count, vectors.lanes, lambda n: target.moved(n).store(source.moved(n).load(vectors.type)))

    def _clear(self, target: Address, count: int) -> None:
        streaming.fill_zeros(target, count, self._vectors(count))

    def _vectors(self, count: int) -> Vectors:
        """The longest that so many elements fill."""
        return Vectors(self.element, min(self.plan.tile_elements, 1 << int(math.log2(count))))
