"""Where the results of a step of a convolution by Winograd's filters go, and what is done where they are not finite."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import Form, widened
from stablehlo_py.targets.cpu.windows.convolutions import Geometry
from stablehlo_py.targets.cpu.windows.winograd import Place
from stablehlo_py.targets.cpu.windows.winograd_plan import Winograd

Index = int | ir.Value


class StepResults:
    """In the result itself, or where its features are apart, in a copy of the step's part that is turned at the end.

    of: the convolution, its kernel with output features innermost. strides: of the batch and the axes, where they go.
    """

    def __init__(self, plan: Winograd, of: Geometry, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        self.plan, self.of, self.form = plan, of, form
        self.x, self.w, self.out = buffers
        self.total = Vectors(form.sums, plan.lanes)
        self.target, self.strides = self.out, [of.loops["b"].o, *(axis.o for axis in of.axes)]
        if plan.is_result_turned:
            sizes = [plan.images, *plan.places_of_step]
            self.strides = [math.prod(sizes[n + 1 :]) * plan.features for n in range(len(sizes))]
            self.target = nest.scratch([sizes[0] * self.strides[0]], form.sums)
        self.checked = nest.scratch([plan.lanes], form.sums)

    def begin(self, starts: dict[str, Index]) -> None:
        self.starts = starts
        self.start = 0 if self.plan.is_result_turned else nest.place_of(self._first(), self.strides[:2])
        if self.form.group == 1:
            self.total.store(self.total.zero(), self.checked, [0])

    def _first(self) -> list[Index]:
        return [self.starts["b"], self.starts["o0"]]

    def of_tile(self, at: Sequence[Index], b: Index) -> Address:
        """Where the first feature of the tile's first place goes."""
        places = [multiply(place, step) for place, step in zip(at, self.plan.steps, strict=True)]
        return Address.of(self.target, [add(self.start, nest.place_of([b, *places], self.strides))])

    def store(
        self, results: dict[Place, ir.Value], at: Sequence[Index], line: Sequence[Index], target: Address
    ) -> None:
        """A vector of features of some places of the tile `at` these numbers along the axes: those from place `line` on."""
        if self.form.group == 1:
            self._check(list(results.values()))
        self._inside(results, at, line, target.moved(nest.place_of(line, self.strides[1:])), 0)

    def end(self) -> None:
        if self.form.group == 1:
            total = vector.reduction(self.form.sums, "add", self.total.load(self.checked, [0]))
            nest.when(arith.cmpf(arith.CmpFPredicate.UNO, total, total), lambda: self._again())
        if self.plan.is_result_turned:
            self._turn()

    def _check(self, results: list[ir.Value]) -> None:
        """Add 0 for each finite one, NaN for any other."""
        zero = self.total.zero()
        marks = arith.mulf(results[0], zero)
        for value in results[1:]:
            marks = vector.fma(value, zero, marks)
        self.total.store(arith.addf(self.total.load(self.checked, [0]), marks), self.checked, [0])

    def _inside(
        self, results: dict[Place, ir.Value], at: Sequence[Index], line: Sequence[Index], target: Address, axis: int
    ) -> None:
        """Those that are inside: the last tiles of an axis may reach beyond, or be there for even steps alone."""
        if axis == len(self.of.axes):
            for place, value in results.items():
                target.moved(sum(n * stride for n, stride in zip(place, self.strides[1:], strict=True))).store(value)
            return
        step, places = self.plan.steps[axis], self.of.axes[axis].places
        beyond = self.plan.tiles[axis] * step
        # a copy has room for whole tiles
        if beyond == places or self.plan.is_result_turned:
            self._inside(results, at, line, target, axis + 1)
            return
        here = add(add(multiply(at[axis], step), line[axis]), self.starts["o0"] if axis == 0 else 0)
        for n in sorted({place[axis] for place in results}):
            part = {place: value for place, value in results.items() if place[axis] == n}
            # inside in the last tile too
            is_sure = isinstance(line[axis], int) and beyond - step + line[axis] + n < places
            inside = is_sure or nest.is_below(add(here, n), places)
            nest.when(inside, functools.partial(self._inside, part, at, line, target, axis + 1))

    @property
    def _rows(self) -> Index:
        """Places of the first axis that the step has."""
        return nest.minimum(self.plan.split.sizes["o0"], nest.subtract(self.of.axes[0].places, self.starts["o0"]))

    def _turn(self) -> None:
        """The copy to the result: features of a row of places become rows of places of a feature."""
        of, plan, column = self.of, self.plan, self.plan.result_column
        vectors = Vectors(self.form.sums, plan.lanes)

        def along(n: int, place: Index, to: Index) -> None:
            if n == len(of.axes):
                source, target = Address.of(self.target, [place]), Address.of(self.out, [to])
                count = of.axes[column].places
                turned(source, self.strides[1 + column], count, target, of.loops["f"].o, plan.features, vectors)
                return
            if n == column:
                along(n + 1, place, to)
                return
            start = self.starts["o0"] if n == 0 else 0

            def one(k: Index) -> None:
                out = add(to, multiply(add(start, k), of.axes[n].o))
                along(n + 1, add(place, multiply(k, self.strides[1 + n])), out)

            nest.loop(0, self._rows if n == 0 else of.axes[n].places, 1, lambda k: one(k))

        def image(n: Index) -> None:
            along(0, multiply(n, self.strides[0]), multiply(add(self.starts["b"], n), of.loops["b"].o))

        nest.once_or_loop(plan.images, 1, image)

    # --- plain sums

    def _again(self) -> None:
        """The results of this step as plain sums."""
        plan, axes = self.plan, self.of.axes

        def along(n: int, at: list[Index], out: Index) -> None:
            if n == len(axes):
                self._plain_sums(at, out)
                return

            def one(place: ir.Value) -> None:
                here = add(place, self.starts["o0"]) if n == 0 else place
                along(n + 1, [*at, here], add(out, multiply(place, self.strides[1 + n])))

            nest.loop(0, self._rows if n == 0 else axes[n].places, 1, lambda place: one(place))

        def image(b: ir.Value) -> None:
            along(0, [add(b, self.starts["b"])], add(self.start, multiply(b, self.strides[0])))

        nest.loop(0, plan.images, 1, lambda b: image(b))

    def _plain_sums(self, at: Sequence[Index], out: Index) -> None:
        """All features of one place of the result; at: the image, and the place along each axis."""
        plan, axes, i = self.plan, self.of.axes, self.of.loops["i"]
        stored = Vectors(ir.MemRefType(self.w.type).element_type, plan.lanes)

        def tap(n: int, x: Index, w: Index, total: ir.Value) -> ir.Value:
            if n == len(axes):
                return nest.loop(0, plan.depth, 1, lambda c, total: [product(x, w, c, total)], [total])[0]
            axis = axes[n]

            def one(t: ir.Value, total: ir.Value) -> list[ir.Value]:
                place = nest.index(nest.subtract(add(multiply(at[1 + n], axis.step), t), axis.before))
                moved = add(x, multiply(place, axis.x)), add(w, multiply(t, axis.w))
                inside = nest.is_below(place, axis.size)
                return nest.choose(inside, [total.type], lambda: [tap(n + 1, *moved, total)], lambda: [total])

            return nest.loop(0, axis.taps, 1, one, [total])[0]

        def product(x: Index, w: Index, c: ir.Value, total: ir.Value) -> ir.Value:
            factor = Address.of(self.x, [add(x, multiply(c, i.x))]).spread(stored.type)
            weights = Address.of(self.w, [add(w, multiply(c, i.w))]).load(stored.type)
            return vector.fma(widened(self.form, factor), widened(self.form, weights), total)

        def features(f: Index) -> None:
            x, w = multiply(at[0], self.of.loops["b"].x), add(self.of.first_tap, f)
            Address.of(self.target, [add(out, f)]).store(tap(0, x, w, self.total.zero()))

        nest.in_vectors(plan.features, plan.lanes, features)
