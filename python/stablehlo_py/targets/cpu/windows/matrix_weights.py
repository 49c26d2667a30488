"""The weights of a convolution by matrix tiles, packed as tiles of rhs, for each panel of features those of its sums in order.

    for each tile along the sums, for each of its 16 lanes of neighbours:   what follows for all panels, since it lies together
      a row for each panel: the lane's neighbours of the first feature, of the second, ...

Where the features are apart in the kernel, a panel after the other is put in order and packed.
"""

from __future__ import annotations

from collections.abc import Callable

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, ROWS
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import (
    Form,
    exponent,
    no_magnitude,
    rows_to_lanes,
    smaller_magnitude,
)
from stablehlo_py.targets.cpu.windows.convolutions import Geometry
from stablehlo_py.targets.cpu.windows.kernel_order import by_features
from stablehlo_py.targets.cpu.windows.matrix_plan import Matrices
from stablehlo_py.transforms.kernels.kernels_to_memref import SHARED

Index = int | ir.Value
EachPanel = Callable[
    [Callable[[Index, Index], None]], None
]  # body(panel, where it begins in the kernel) for some panels


class PackedWeights:
    """A scratch buffer: (panel, tile along the sums, lane of neighbours, feature of the panel), lanes of 32 bits."""

    def __init__(self, plan: Matrices, given: Geometry, kernel: ir.Value, form: Form) -> None:
        self.plan, self.given, self.of, self.form = plan, given, plan.geometry, form
        self.kernel = self.source = kernel
        self.stored = Vectors(ir.MemRefType(kernel.type).element_type, LANES)
        self.lanes = Vectors(ir.IntegerType.get_signless(32), LANES)
        self.row = plan.wide * LANES
        self.buffer = nest.scratch([plan.all_panels * plan.panel_words], self.lanes.element)
        shared = [self.buffer]
        if plan.between > 1:
            self.source = nest.scratch([plan.between * plan.width], self.stored.element)
        if form.is_small_float:
            self.noted = nest.scratch([plan.packings], self.lanes.element)
            shared.append(self.noted)
        for buffer in shared if plan.shares_weights else ():
            buffer.owner.operation.attributes[SHARED] = ir.UnitAttr.get()
        # of fewer features than lanes
        self.mask = self.stored.mask(plan.features) if plan.features < LANES else None

    def begin(self) -> None:
        """What comes before all packing."""
        if self.plan.between == 1:
            self.source, _ = by_features(self.kernel, self.given, LANES)

    def of_panel(self, panel: Index) -> Address:
        return Address.of(self.buffer, [multiply(panel, self.plan.panel_words)])

    def pack(self, number: Index) -> None:
        """One of the plan's `packings`."""
        plan = self.plan
        if self.form.is_small_float:
            self._note(number)
        if plan.between == 1:
            self._tile(number, lambda body: nest.once_or_loop(plan.all_panels, 1, lambda n: body(n, self._start(n))))
            return
        first = Address.of(self.kernel, [self._start(number)])
        turned(first, plan.between, plan.width, Address.of(self.source, [0]), plan.width, plan.between, self.stored)
        nest.once_or_loop(plan.depth, 1, lambda tile: self._tile(tile, lambda body: body(number, 0)))

    def _start(self, panel: Index) -> Index:
        """Where a panel's first feature is in the kernel."""
        group, in_group = nest.divided(panel, self.plan.panels_of_group)
        return add(multiply(group, self.of.loops["g"].w), multiply(self.plan.feature(in_group), self.plan.between))

    def _tile(self, number: Index, each: EachPanel) -> None:
        """One tile along the sums of some panels; zeros behind the last neighbours of a tap."""
        plan, group = self.plan, self.plan.group
        outer, run = plan.summed
        tap, block = nest.divided(number, plan.blocks)
        place: Index = self.of.first_tap
        for loop in reversed(outer):
            tap, n = nest.divided(tap, loop.extent)
            place = add(place, multiply(n, loop.w))
        place = add(place, multiply(block, ROWS * group * run.w))
        target = multiply(number, ROWS * self.row)
        whole, rest = divmod(run.extent, group)

        def lane(n: Index, count: int) -> None:
            w, to = add(place, multiply(n, group * run.w)), add(target, multiply(n, self.row))
            each(lambda panel, start: self._row(add(start, w), add(multiply(panel, plan.panel_words), to), count))

        filled = whole - (plan.blocks - 1) * ROWS  # lanes of the last tile
        left = nest.minimum(ROWS, nest.subtract(whole, multiply(block, ROWS))) if filled < ROWS else ROWS
        nest.loop(0, left, 1, lambda n: lane(n, group))

        def last() -> None:
            if rest:
                lane(filled, rest)
            for n in range(filled + (1 if rest else 0), ROWS):
                lane(n, 0)

        if filled < ROWS:
            nest.when(nest.equal(block, plan.blocks - 1), last)

    def _row(self, place: Index, target: Index, count: int) -> None:
        """The first `count` neighbours of a lane, zeros for the others."""
        source, to = Address.of(self.source, [place]), Address.of(self.buffer, [target])
        for v, offset in enumerate(self.plan.lane_offsets):
            if not count:
                to.moved(v * LANES).store(self.lanes.zero())
                continue
            run = self.plan.summed[1]
            rows = [source.moved(offset + n * run.w).load(self.stored.type, self.mask) for n in range(count)]
            rows += [self.stored.zero()] * (self.plan.group - count)
            to.moved(v * LANES).store(rows_to_lanes(self.form, rows))

    # --- small numbers

    def _note(self, number: Index) -> None:
        """Keep the exponent of the smallest magnitude in a part of the kernel, so many parts as there are packings."""
        (count,) = ir.MemRefType(self.kernel.type).shape
        elements = 2 * LANES
        part = min(-(-count // (elements * self.plan.packings)), count // elements) * elements
        first = nest.minimum(multiply(number, part), count - part)
        note_exponent(Address.of(self.kernel, [first]), part // 2, self.noted, number, self.form)

    def least_exponent(self) -> ir.Value:
        """Of all weights."""

        def smaller(n: Index, least: ir.Value) -> list[ir.Value]:
            return [arith.minsi(least, nest.load(self.noted, [n]))]

        return nest.loop(1, self.plan.packings, 1, smaller, [nest.load(self.noted, [0])])[0]


def note_exponent(what: Address, count: int, noted: ir.Value, number: Index, form: Form) -> None:
    """Keep the exponent of the smallest magnitude in `count` pairs of bf16, vectors of them, at a place of `noted`."""
    ty = ir.VectorType.get([LANES], ir.IntegerType.get_signless(32))

    def vector(n: ir.Value, least: ir.Value) -> list[ir.Value]:
        return [smaller_magnitude(form, Address(what.pointer, 4).moved(n).load(ty), least)]

    (least,) = nest.loop(0, count, LANES, vector, [no_magnitude(form)])
    nest.store(exponent(least), noted, [number])
