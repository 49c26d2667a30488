"""The loops of a convolution by matrix tiles.

    pack the weights                                                                 in a launch before the others if many
    for each step (some images, some places of the first axis, some panels):         parallel
      copy the part of the image that it reads, with zeros around                    unless it is read as it is
      for each panel, for each row of places, for each tile of them:
        sums of products over taps and input features, all in tiles
        sums to the result                                                           by way of a buffer, if not all are results

matrix_plan.py has the steps; matrix_image.py copies the image, matrix_weights.py packs the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import matrix_tiles, nest
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, ROWS
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import Form, is_exact, tile_in_f32
from stablehlo_py.targets.cpu.windows.convolutions import Geometry, Loop
from stablehlo_py.targets.cpu.windows.matrix_image import ImageCopy
from stablehlo_py.targets.cpu.windows.matrix_plan import Matrices
from stablehlo_py.targets.cpu.windows.matrix_weights import PackedWeights, note_exponent
from stablehlo_py.transforms.kernels.kernel_parallel import PHASES, give_range

Index = int | ir.Value
UNROLLED = 4  # products of tiles that are written out
WORK = 5  # of what other kernels count: from 60 us on, it pays to wake a thread
LHS, RHS = 2, 3  # tiles; sums are in those before


def emit(
    plan: Matrices, geometry: Geometry, buffers: tuple[ir.Value, ir.Value, ir.Value], function: ir.Operation
) -> None:
    """The whole kernel: image, kernel and result are `buffers`, which `geometry` describes."""
    first = plan.packings if plan.shares_weights else 0
    steps = first + plan.split.steps
    begin, end = (arith.constant(ir.IndexType.get(), n) for n in (0, steps))
    _Emitter(plan, geometry, buffers).emit(begin, end)
    if steps > 1:
        give_range(function, begin, end, steps, int(WORK * plan.cycles), plan.grain)
    if first:
        function.attributes[PHASES] = ir.DenseI64ArrayAttr.get([0, first, first, steps])


@record
class _Target:
    """Where sums go: one place `between` elements from the next, each tile of features so many elements further."""

    first: Address
    between: int
    offsets: Sequence[int]


class _Emitter:
    """sums: (place of a row, feature of a panel)."""

    def __init__(self, plan: Matrices, geometry: Geometry, buffers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        self.plan, self.of = plan, plan.geometry
        self.x, kernel, self.out = buffers
        self.form = Form(self.of.elements.split(",")[1], plan.group, LANES, plan.instruction, tiles=True)
        self.lanes = Vectors(ir.IntegerType.get_signless(32), LANES)
        self.total = Vectors(ir.MemRefType(self.out.type).element_type, LANES)
        self.row = plan.wide * LANES  # lanes in a row of the weights
        self.copy = ImageCopy(plan, self.x) if plan.pitch else None
        self.weights = PackedWeights(plan, geometry, kernel, self.form)
        self.exact: ir.Value | bool = True  # whether tiles lose nothing of what a step multiplies
        if not plan.is_direct:
            places = plan.tiles * ROWS if plan.is_turned else ROWS
            self.sums = nest.scratch([places * self.row], self.total.element)
        if self.form.is_small_float:
            self.noted_image = nest.scratch([1], self.lanes.element)
        # of fewer features than lanes
        self.mask = self.total.mask(plan.features) if plan.features < LANES else None

    def emit(self, begin: ir.Value, end: ir.Value) -> None:
        plan = self.plan
        self.weights.begin()
        matrix_tiles.configure()
        if self.copy is not None:
            self.copy.begin()
        if not plan.shares_weights:
            nest.once_or_loop(plan.packings, 1, self.weights.pack)
            nest.loop(begin, end, 1, lambda number: self._step(number))
        else:
            nest.loop(
                begin,
                end,
                1,
                lambda number: nest.when(
                    nest.is_below(number, plan.packings),
                    lambda: self.weights.pack(number),
                    lambda: self._step(nest.index(nest.subtract(number, plan.packings))),
                ),
            )
        matrix_tiles.release()

    # --- a step

    def _step(self, number: ir.Value) -> None:
        plan, of, split = self.plan, self.of, self.plan.split
        rest, part = nest.divided(number, split.counts["lanes"])
        images, along = nest.divided(rest, split.counts["o0"])
        b, first = multiply(images, plan.images), multiply(along, plan.rows)
        if of.axes[0].places % plan.rows:
            first = nest.minimum(first, of.axes[0].places - plan.rows)
        panel = multiply(part, plan.panels)
        if plan.all_panels % plan.panels:
            panel = nest.minimum(panel, plan.all_panels - plan.panels)
        group = part if of.loops["g"].extent > 1 else 0
        if self.copy is not None:
            self.copy.fill(b, first, multiply(group, of.loops["g"].x))
            if self.form.is_small_float:
                copy = Address.of(self.copy.buffer, [0])
                note_exponent(copy, self.copy.size // plan.group, self.noted_image, 0, self.form)
                self.exact = is_exact(nest.load(self.noted_image, [0]), self.weights.least_exponent())
            x: Index = 0
        else:
            x = nest.place_of(
                [b, multiply(first, of.axes[0].step), group], [of.loops["b"].x, of.axes[0].x, of.loops["g"].x]
            )
            x = add(x, -sum(axis.before * axis.x for axis in of.axes))
        out = nest.place_of([b, first, group], [of.loops["b"].o, of.axes[0].o, of.loops["g"].o])

        def one(n: Index) -> None:
            at = add(panel, n)
            in_group = n if of.loops["g"].extent > 1 else at
            self._places(plan.places, x, at, add(out, multiply(plan.feature(in_group), of.loops["f"].o)))

        nest.once_or_loop(plan.panels, 1, one)

    def _places(self, loops: Sequence[Loop], x: Index, panel: Index, out: Index) -> None:
        loop, *others = loops
        if others:
            nest.once_or_loop(
                loop.extent,
                1,
                lambda n: self._places(others, add(x, multiply(n, loop.x)), panel, add(out, multiply(n, loop.o))),
            )
            return
        plan = self.plan
        image = Address.of(self.x if self.copy is None else self.copy.buffer, [x])
        weights = self.weights.of_panel(panel)

        def tiles(n: Index) -> None:
            if plan.is_direct:
                if loop.extent % ROWS:
                    n = nest.minimum(n, loop.extent - ROWS)
                to = _Target(Address.of(self.out, [add(out, multiply(n, loop.o))]), loop.o, plan.lane_offsets)
            else:
                place = multiply(n, self.row) if plan.is_turned else 0
                to = _Target(Address.of(self.sums, [place]), self.row, range(0, self.row, LANES))
            at = image.moved(multiply(n, loop.x))
            nest.when(
                self.exact,
                lambda: self._in_tiles(at, loop.x, weights, to),
                lambda: self._in_f32(at, loop.x, weights, to),
            )
            if not plan.is_direct and not plan.is_turned:
                self._in_order(n, out)

        nest.once_or_loop(loop.extent if plan.is_direct else plan.tiles * ROWS, ROWS, tiles)
        if plan.is_turned:
            self._turned(plan.results, 0, out)

    # --- the sums of a tile of places, so many elements apart

    def _in_tiles(self, image: Address, between: int, weights: Address, to: _Target) -> None:
        plan = self.plan
        tile = ROWS * self.row

        def step(image: Address, weights: Address) -> None:
            matrix_tiles.load(LHS, image, between * plan.element_bytes)
            for v in range(plan.wide):
                matrix_tiles.load(RHS + v, weights.moved(v * LANES), self.row * 4)
                matrix_tiles.multiply_add(plan.instruction, v, LHS, RHS + v)

        def taps(loops: Sequence[Loop], image: Address, weights: Address) -> None:
            if not loops:
                step(image, weights)
                return
            loop, *others = loops
            apart = tile * math.prod(other.extent for other in others)

            def one(n: Index) -> None:
                taps(others, image.moved(multiply(n, loop.x)), weights.moved(multiply(n, apart)))

            if not others and loop.extent <= UNROLLED:
                for n in range(loop.extent):
                    one(n)
            else:
                nest.once_or_loop(loop.extent, 1, one)

        for v in range(plan.wide):
            matrix_tiles.zero(v)
        taps(self._steps, image, weights)
        for v, offset in enumerate(to.offsets):
            matrix_tiles.store(v, to.first.moved(offset), to.between * 4)

    def _in_f32(self, image: Address, between: int, weights: Address, to: _Target) -> None:
        """The same of bf16 without tiles, in the order in which tiles add up, subnormal numbers and all."""
        plan = self.plan
        tile = ROWS * self.row
        zero = self.total.zero()

        def taps(loops: Sequence[Loop], left: Address, right: Address, totals: list[ir.Value]) -> list[ir.Value]:
            if not loops:
                return tile_in_f32(left, plan.group, right, self.row, totals)
            loop, *others = loops
            apart = tile * math.prod(other.extent for other in others)

            def one(n: ir.Value, *inner: ir.Value) -> list[ir.Value]:
                return taps(others, left.moved(multiply(n, loop.x)), right.moved(multiply(n, apart)), list(inner))

            return nest.loop(0, loop.extent, 1, one, totals)

        def place(n: ir.Value) -> None:
            totals = taps(self._steps, image.moved(multiply(n, between)), weights, [zero] * plan.wide)
            for offset, total in zip(to.offsets, totals, strict=True):
                to.first.moved(add(multiply(n, to.between), offset)).store(total)

        nest.loop(0, ROWS, 1, lambda n: place(n))

    @property
    def _steps(self) -> list[Loop]:
        """The loops over products of tiles in a sum, outermost first."""
        plan = self.plan
        return [*plan.summed[0], Loop("block", plan.blocks, plan.tile_elements, 0, 0)]

    # --- results

    def _in_order(self, first: Index, out: Index) -> None:
        """What is a result of the places that have been summed up, from `first` of a row on, to the result's row at `out`."""
        plan, last = self.plan, self.plan.results[-1]
        end = add(first, ROWS)

        def line(begin: Index, start: Index, to: Index) -> None:
            """A line of results, whose first is at place `begin` of the row, from place `start` on."""

            def place(n: ir.Value) -> None:
                source = Address.of(self.sums, [multiply(nest.subtract(n, first), self.row)])
                target = Address.of(self.out, [add(to, multiply(nest.subtract(n, begin), last.o))])
                for v, offset in enumerate(plan.lane_offsets):
                    value = source.moved(v * LANES).load(self.total.type)
                    target.moved(offset).store(value, self.mask)

            nest.loop(start, nest.minimum(end, add(begin, last.extent)), 1, lambda n: place(n))

        if not plan.is_flat:
            line(0, first, out)
            return
        lines = plan.results[0]
        beyond = add(nest.divided(add(first, ROWS - 1), lines.x)[0], 1)

        def one(y: ir.Value) -> None:
            begin = multiply(y, lines.x)
            line(begin, nest.maximum(first, begin), add(out, multiply(y, lines.o)))

        nest.loop(nest.divided(first, lines.x)[0], nest.minimum(beyond, lines.extent), 1, lambda y: one(y))

    def _turned(self, loops: Sequence[Loop], place: Index, out: Index) -> None:
        """Those of a whole row to a result whose features are apart; place, out: where the loops begin."""
        loop, *others = loops
        if others:
            nest.once_or_loop(
                loop.extent,
                1,
                lambda n: self._turned(others, add(place, multiply(n, loop.x)), add(out, multiply(n, loop.o))),
            )
            return
        apart = self.of.loops["f"].o
        for v, offset in enumerate(self.plan.lane_offsets):
            source = Address.of(self.sums, [add(multiply(place, self.row), v * LANES)])
            target = Address.of(self.out, [add(out, offset * apart)])
            turned(source, self.row, loop.extent, target, apart, min(LANES, self.plan.features), self.total)
