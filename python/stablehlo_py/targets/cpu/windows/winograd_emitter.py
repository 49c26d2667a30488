"""The loops of a convolution by Winograd's filters.

    for each panel of output features, in a launch before the others if the kernel is large:
      transform the kernel into matrices (input features x output features), one for each product of a tile
    for each step (some rows of tiles of some images):                                    parallel
      transform the part of the image that it reads into matrices (tiles x input features)
      for each panel, for each block of tiles:
        for each pair of matrices, for each register tile:  sums of products over the input features
        transform the sums into results
      what is not finite throughout is done again as plain sums

winograd.py has the filters, winograd_passes.py the loops of their transforms and winograd_plan.py the steps;
winograd_image.py and winograd_results.py say where things are read and go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.types import row_major
from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import (
    Form,
    interleaved,
    multiply_add,
    run_to_lanes,
    sixteen_bits,
    widened,
)
from stablehlo_py.targets.cpu.windows import winograd
from stablehlo_py.targets.cpu.windows.kernel_order import by_features
from stablehlo_py.targets.cpu.windows.winograd import Place
from stablehlo_py.targets.cpu.windows.winograd_image import ImageParts
from stablehlo_py.targets.cpu.windows.winograd_passes import Passes, passes_of
from stablehlo_py.targets.cpu.windows.winograd_plan import Winograd
from stablehlo_py.targets.cpu.windows.winograd_results import StepResults
from stablehlo_py.transforms.kernels.kernel_parallel import PHASES, give_range
from stablehlo_py.transforms.kernels.kernels_to_memref import SHARED

Index = int | ir.Value


def emit(plan: Winograd, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value], function: ir.Operation) -> None:
    """The whole kernel: image, kernel and result are `buffers`."""
    first = plan.panels if plan.shares_kernel else 0
    steps = first + plan.split.steps
    begin, end = (arith.constant(ir.IndexType.get(), n) for n in (0, steps))
    _Emitter(plan, form, buffers).emit(begin, end)
    if steps > 1:
        give_range(function, begin, end, steps, int(2 * plan.cycles), plan.grain)
    if first:
        function.attributes[PHASES] = ir.DenseI64ArrayAttr.get([0, first, first, steps])


class _Emitter:
    """kernel: (panel, matrix, input feature, output feature of the panel), elements that are multiplied.

    image: (tile, matrix, input feature), the same; sums: (tile of a block, matrix, output feature of a panel). of_kernel,
    of_panel, of_tile: elements from one matrix of the kernel, panel of it, and tile of the image to the next.
    """

    def __init__(self, plan: Winograd, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        self.plan, self.form, self.of = plan, replace(form, lanes=plan.lanes), plan.geometry
        self.x, self.w, self.out = buffers
        self.packed = Vectors(form.packed, plan.lanes)  # what is multiplied
        self.total = Vectors(form.sums, plan.lanes)  # what is added up
        self.of_kernel = plan.plane(plan.depth * plan.width, form.bytes)
        self.of_panel = plan.matrices * self.of_kernel
        self.of_tile = plan.plane(plan.matrices * plan.depth, form.bytes)
        self.kernel = nest.scratch([plan.panels * self.of_panel], form.packed)
        if plan.shares_kernel:
            self.kernel.owner.operation.attributes[SHARED] = ir.UnitAttr.get()
        self.image = nest.scratch([plan.tiles_of_step * self.of_tile], form.packed)
        self.sums = nest.scratch([plan.block * plan.matrices * plan.width], form.sums)
        self.parts = ImageParts(plan, self.x, form.group)
        pairs = ir.IntegerType.get_signless(16)
        self.transformed = self.packed if form.group == 1 else Vectors(pairs, plan.lanes * form.group)
        self.weights = replace(self.transformed, lanes=min(plan.width, self.transformed.lanes))
        filters, reads, passes = plan.filters, plan.reads, passes_of(plan.reads)
        self.image_passes = Passes([one.image for one in filters], reads, reads, passes, self.transformed.type)
        self.sums_passes = Passes([one.sums for one in filters], reads, plan.steps, passes, self.total.type)
        # what a lane of the kernel holds together is one axis more, in front, and in the last pass
        *firsts, last = [tuple(n + 1 for n in axes) for axes in passes]
        lines = [winograd.same, *(one.kernel for one in filters)]
        sizes = (form.group, *(one.taps for one in filters)), (form.group, *reads)
        self.kernel_passes = Passes(lines, *sizes, [*firsts, (0, *last)], self.weights.type)

    def emit(self, begin: ir.Value, end: ir.Value) -> None:
        self.w, self.of = by_features(self.w, self.of, self.plan.lanes)
        self.results = StepResults(self.plan, self.of, self.form, (self.x, self.w, self.out))
        panels = self.plan.panels
        if not self.plan.shares_kernel:
            nest.once_or_loop(panels, 1, self._panel_of_kernel)
        self.parts.begin()

        def step(number: ir.Value) -> None:
            if not self.plan.shares_kernel:
                self._step(number)
                return
            is_first = nest.is_below(number, panels)
            nest.when(
                is_first,
                lambda: self._panel_of_kernel(number),
                lambda: self._step(nest.index(nest.subtract(number, panels))),
            )

        nest.loop(begin, end, 1, step)

    def _step(self, number: ir.Value) -> None:
        split = self.plan.split
        images, along = nest.divided(number, split.counts["o0"])
        first = multiply(images, split.sizes["b"]) if split.counts["b"] > 1 else 0
        starts: dict[str, Index] = {"b": first, "o0": multiply(along, split.sizes["o0"])}
        self.parts.fill(starts["b"], starts["o0"])
        self._image(starts)
        self._panels(starts)

    # --- the kernel

    def _panel_of_kernel(self, panel: Index) -> None:
        plan, group, i = self.plan, self.form.group, self.of.loops["i"]
        stored = replace(self.weights, element=ir.MemRefType(self.w.type).element_type)
        apart = [i.w // group, *(axis.w for axis in self.of.axes)]
        strides = row_major(plan.reads, self.of_kernel)

        def some(c: Index, f: Index) -> None:
            place = add(multiply(c, i.w), add(self._feature(panel), f))
            source = Address.of(self.w, [add(self.of.first_tap, place)])
            at = add(multiply(panel, self.of_panel), add(multiply(c, plan.width), f))
            target = Address.of(self.kernel, [at])

            def finish(made: dict[Place, ir.Value], place: list[Index]) -> None:
                to = target.moved(nest.place_of(place[1:], strides))
                for matrix in [at[1:] for at in made if at[0] == 0]:
                    members = [made[(member, *matrix)] for member in range(group)]
                    to.moved(nest.place_of(matrix, strides)).store(self._joined(members))

            self.kernel_passes.emit((source, apart), lambda at: self._weights(at.load(stored.type)), finish)

        def row(c: Index) -> None:
            nest.once_or_loop(plan.width, stored.lanes, lambda f: some(c, f))

        nest.loop(0, plan.depth, 1, row)

    def _weights(self, loaded: ir.Value) -> ir.Value:
        return widened(self.form, loaded) if self.form.group == 1 else sixteen_bits(self.form, loaded)

    def _joined(self, members: list[ir.Value]) -> ir.Value:
        """Neighbouring input features in one lane."""
        if len(members) == 1:
            return members[0]
        lanes = ir.VectorType(members[0].type).shape[0]
        return vector.bitcast(ir.VectorType.get([lanes], self.form.packed), interleaved(*members))

    # --- the image

    def _image(self, starts: dict[str, Index]) -> None:
        plan, lanes, depth, group = self.plan, self.plan.lanes, self.plan.depth, self.form.group
        strides = row_major(plan.reads, depth)

        def tile(number: Index, at: Sequence[Index], b: Index) -> None:
            source, apart = self.parts.of_tile(at, b, starts)
            target = Address.of(self.image, [multiply(number, self.of_tile)])

            def features(c: Index) -> None:
                def finish(made: dict[Place, ir.Value], place: list[Index]) -> None:
                    to = target.moved(c).moved(nest.place_of(place, strides))
                    for matrix, value in made.items():
                        to.moved(nest.place_of(matrix, strides)).store(self._cast(value, self.packed.type))

                self.image_passes.emit((source.moved(multiply(c, group)), apart), self._elements, finish)

            nest.in_vectors(depth, lanes, features)

        self._tiles(tile)

    def _elements(self, place: Address) -> ir.Value:
        """A vector of the image in the type that is transformed."""
        return self._cast(run_to_lanes(self.form, place.load(self.parts.stored.type)), self.transformed.type)

    def _cast(self, value: ir.Value, ty: ir.VectorType) -> ir.Value:
        return value if value.type == ty else vector.bitcast(ty, value)

    def _tiles(self, body: Callable[[Index, Sequence[Index], Index], None]) -> None:
        """body(number, place along each axis, image) for every tile of a step, by which they are numbered."""
        plan = self.plan
        sizes = [plan.images, plan.rows, *plan.tiles[1:]]

        def along(at: list[Index], number: Index) -> None:
            if len(at) == len(sizes):
                body(number, at[1:], at[0])
                return
            size = sizes[len(at)]
            nest.once_or_loop(size, 1, lambda n: along([*at, n], add(multiply(number, size), n)))

        along([], 0)

    # --- the products and the results

    def _panels(self, starts: dict[str, Index]) -> None:
        """For each panel, for each block of tiles: all sums of products, then the results that they make."""
        plan = self.plan
        count, block, tall = plan.tiles_of_step, plan.block, plan.tall

        def panel(number: Index) -> None:
            def tiles(first: Index) -> None:
                first = nest.minimum(first, count - block) if count % block else first

                def matrix(m: Index) -> None:
                    nest.once_or_loop(block, tall, lambda row: self._sums(m, number, first, row))

                nest.loop(0, plan.matrices, 1, matrix)
                nest.once_or_loop(block, 1, lambda tile: self._results(number, first, tile))

            nest.once_or_loop(count, block, tiles)

        self.results.begin(starts)
        nest.once_or_loop(plan.panels, 1, panel)
        self.results.end()

    def _sums(self, matrix: Index, panel: Index, first: Index, row: Index) -> None:
        """One register tile, of the block's tiles `row`, ...: the products of a matrix, added up over the input features."""
        plan, depth = self.plan, self.plan.depth
        tall, vectors, lanes = plan.tall, plan.vectors, plan.lanes
        if plan.block % tall:
            row = nest.minimum(row, plan.block - tall)
        at = add(multiply(add(first, row), self.of_tile), multiply(matrix, depth))
        left = Address.of(self.image, [at])
        at = add(multiply(panel, self.of_panel), multiply(matrix, self.of_kernel))
        right = Address.of(self.kernel, [at])

        def step(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            weights, factors = right.moved(multiply(c, plan.width)), left.moved(c)
            loaded = [weights.moved(v * lanes).load(self.packed.type) for v in range(vectors)]
            new = []
            for r in range(tall):
                factor = factors.moved(r * self.of_tile).spread(self.packed.type)
                new += [multiply_add(self.form, factor, loaded[v], sums[r * vectors + v]) for v in range(vectors)]
            return new

        sums = nest.loop(0, depth, 1, step, [self.total.zero()] * (tall * vectors))
        to = Address.of(self.sums, [add(multiply(row, plan.matrices * plan.width), multiply(matrix, plan.width))])
        for n, total in enumerate(sums):
            to.moved(n // vectors * plan.matrices * plan.width + n % vectors * lanes).store(total)

    def _results(self, panel: Index, first: Index, tile: Index) -> None:
        plan = self.plan
        at, image = self._place_of(add(first, tile))
        source = Address.of(self.sums, [multiply(tile, plan.matrices * plan.width)])
        target = self.results.of_tile(at, image).moved(self._feature(panel))

        def features(f: Index) -> None:
            def finish(made: dict[Place, ir.Value], place: list[Index]) -> None:
                results = {at: self._scaled(value) for at, value in made.items()}
                self.results.store(results, at, place, target.moved(f))

            grid = source.moved(f), row_major(plan.reads, plan.width)
            self.sums_passes.emit(grid, lambda place: place.load(self.total.type), finish)

        nest.once_or_loop(plan.width, plan.lanes, features)

    def _place_of(self, tile: Index) -> tuple[list[Index], Index]:
        """Where the tile of this number is along the axes, and in which image."""
        at: list[Index] = []
        for size in reversed([self.plan.rows, *self.plan.tiles[1:]]):
            tile, place = nest.divided(tile, size)
            at.insert(0, place)
        return at, tile

    def _feature(self, panel: Index) -> Index:
        """The first output feature of a panel; the last panel may overlap the one before."""
        plan = self.plan
        first = multiply(panel, plan.width)
        return nest.minimum(first, plan.features - plan.width) if plan.features % plan.width else first

    def _scaled(self, value: ir.Value) -> ir.Value:
        scale = math.prod(one.scale for one in self.plan.filters)
        if self.form.group == 1:
            return arith.mulf(value, nest.constant_vector(self.total.type, 1 / scale))
        power = scale & -scale
        if scale != power:
            inverse = pow(scale // power, -1, 1 << 32)
            value = arith.muli(value, nest.constant_vector(self.total.type, inverse - (inverse >> 31 << 32)))
        return arith.shrsi(value, nest.constant_vector(self.total.type, power.bit_length() - 1))
