"""The loops of a convolution by Winograd's filters.

    transform the kernel into a matrix (input features x output features) for each product of a tile
    for each step (some rows of tiles of some images):                                    parallel
      transform the part of the image that it reads into matrices (tiles x input features)
      for each pair of matrices, for each register tile:  sums of products over the input features
      transform the sums into results; what is not finite throughout is done again as plain sums

winograd.py has the filters and winograd_plan.py the steps; winograd_image.py and winograd_results.py say where things are
read and go.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import turned
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
from stablehlo_py.targets.cpu.windows.convolutions import Geometry
from stablehlo_py.targets.cpu.windows.winograd import READ, RESULTS, Place
from stablehlo_py.targets.cpu.windows.winograd_image import ImageParts
from stablehlo_py.targets.cpu.windows.winograd_plan import Winograd
from stablehlo_py.targets.cpu.windows.winograd_results import StepResults
from stablehlo_py.transforms.kernels.kernel_parallel import give_range

Index = int | ir.Value


def emit(plan: Winograd, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value], function: ir.Operation) -> None:
    """The whole kernel: image, kernel and result are `buffers`."""
    steps = plan.split.steps
    begin, end = (arith.constant(ir.IndexType.get(), n) for n in (0, steps))
    _Emitter(plan, form, buffers).emit(begin, end)
    if steps > 1:
        give_range(function, begin, end, steps, int(2 * plan.cycles), plan.grain)


class _Emitter:
    """kernel, image, sums: the matrices, `of_...` elements from one to the next."""

    def __init__(self, plan: Winograd, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value]) -> None:
        self.plan, self.form, self.of = plan, replace(form, lanes=plan.lanes), plan.geometry
        self.x, self.w, self.out = buffers
        self.packed = Vectors(form.packed, plan.lanes)  # what is multiplied
        self.total = Vectors(form.sums, plan.lanes)  # what is added up
        self.columns = plan.panels * plan.width
        # elements from one matrix to the next
        self.of_kernel = plan.plane(plan.depth * self.columns, form.bytes)
        self.of_image = plan.plane(plan.tiles_of_step * plan.depth, form.bytes)
        self.of_sums = plan.plane(plan.tiles_of_step * self.columns, form.bytes)
        self.kernel = nest.scratch([plan.matrices * self.of_kernel], form.packed)
        self.image = nest.scratch([plan.matrices * self.of_image], form.packed)
        self.sums = nest.scratch([plan.matrices * self.of_sums], form.sums)
        self.parts = ImageParts(plan, self.x, form.group)

    def emit(self, begin: ir.Value, end: ir.Value) -> None:
        self.w, self.of = self._kernel_by_features()
        self.results = StepResults(self.plan, self.of, self.form, (self.x, self.w, self.out))
        self._kernel()
        self.parts.begin()
        nest.loop(begin, end, 1, self._step)

    def _step(self, number: ir.Value) -> None:
        split = self.plan.split
        images, along = nest.divided(number, split.counts["o0"])
        first = multiply(images, split.sizes["b"]) if split.counts["b"] > 1 else 0
        starts: dict[str, Index] = {"b": first, "o0": multiply(along, split.sizes["o0"])}
        self.parts.fill(starts["b"], starts["o0"])
        self._image(starts)
        self._products()
        self._results(starts)

    # --- the kernel

    def _kernel_by_features(self) -> tuple[ir.Value, Geometry]:
        """The kernel with its output features innermost, and the convolution that reads it: a copy where they are not.

        What lies between two features moves out, the rest stays where it is.
        """
        of = self.of
        between = of.loops["f"].w
        if between == 1:
            return self.w, of
        vectors = Vectors(ir.MemRefType(self.w.type).element_type, self.plan.lanes)
        count = ir.MemRefType(self.w.type).shape[0]
        features, block = self.plan.features, between * self.plan.features
        copy = nest.scratch([count], vectors.element)

        def part(at: Index) -> None:
            source, target = Address.of(self.w, [at]), Address.of(copy, [at])
            turned(source, between, features, target, features, between, vectors)

        nest.once_or_loop(count, block, part)

        def moved(stride: int) -> int:
            return stride * features if abs(stride) < between else stride

        axes = tuple(replace(axis, w=moved(axis.w)) for axis in of.axes)
        loops = {**of.loops, "f": replace(of.loops["f"], w=1), "i": replace(of.loops["i"], w=moved(of.loops["i"].w))}
        return copy, replace(of, loops=loops, axes=axes, first_tap=sum(-(a.taps - 1) * min(a.w, 0) for a in axes))

    def _kernel(self) -> None:
        """(matrix, panel, input feature, features of the panel)."""
        plan, lanes = self.plan, self.plan.lanes
        stored = Vectors(ir.MemRefType(self.w.type).element_type, lanes)
        axes, i = self.of.axes, self.of.loops["i"]
        between = i.w // self.form.group
        taps = list(itertools.product(*(range(axis.taps) for axis in axes)))
        offsets = [sum(n * axis.w for n, axis in zip(tap, axes, strict=True)) for tap in taps]

        def some(c: Index, f: Index, mask: ir.Value | None) -> None:
            first = Address.of(self.w, [add(add(self.of.first_tap, multiply(c, i.w)), f)])
            members = []
            for member in range(self.form.group):
                places = [first.moved(member * between + offset) for offset in offsets]
                loaded = [self._weights(place.load(stored.type, mask)) for place in places]
                members.append(winograd.of_kernel(dict(zip(taps, loaded, strict=True)), plan.filtered))
            panel, lane = nest.divided(f, plan.width)
            to = Address.of(self.kernel, [add(multiply(add(multiply(panel, plan.depth), c), plan.width), lane)])
            for n, place in enumerate(sorted(members[0])):
                to.moved(n * self.of_kernel).store(self._joined([weights[place] for weights in members]))

        whole = plan.features // lanes * lanes

        def feature(c: Index) -> None:
            nest.once_or_loop(whole, lanes, lambda f: some(c, f, None))
            if whole != plan.features:
                some(c, whole, stored.mask(plan.features - whole))

        nest.loop(0, plan.depth, 1, lambda c: feature(c))

    def _weights(self, loaded: ir.Value) -> ir.Value:
        return widened(self.form, loaded) if self.form.group == 1 else sixteen_bits(self.form, loaded)

    def _joined(self, members: list[ir.Value]) -> ir.Value:
        """Neighbouring input features in one lane."""
        if len(members) == 1:
            return members[0]
        return vector.bitcast(self.packed.type, interleaved(*members))

    # --- the image

    def _image(self, starts: dict[str, Index]) -> None:
        """(matrix, tile, input feature)."""
        plan, lanes, depth, group = self.plan, self.plan.lanes, self.plan.depth, self.form.group
        work = self.packed.type
        if group > 1:
            work = ir.VectorType.get([lanes * group], ir.IntegerType.get_signless(16))
        places = self._places(READ)

        def tile(number: Index, at: Sequence[Index], b: Index) -> None:
            source, strides = self.parts.of_tile(at, b, starts)
            offsets = [nest.place_of(place, strides) for place in places]
            target = Address.of(self.image, [multiply(number, depth)])

            def features(c: Index) -> None:
                first = source.moved(multiply(c, group))
                loaded = [
                    run_to_lanes(self.form, first.moved(offset).load(self.parts.stored.type)) for offset in offsets
                ]
                read = {place: self._cast(value, work) for place, value in zip(places, loaded, strict=True)}
                to = target.moved(c)
                for n, (_, value) in enumerate(sorted(winograd.of_image(read, plan.filtered).items())):
                    to.moved(n * self.of_image).store(self._cast(value, self.packed.type))

            nest.in_vectors(depth, lanes, features)

        self._tiles(tile)

    def _cast(self, value: ir.Value, ty: ir.VectorType) -> ir.Value:
        return value if value.type == ty else vector.bitcast(ty, value)

    def _places(self, count: int) -> list[Place]:
        """`count` of them along each axis that is transformed."""
        sizes = [count if n in self.plan.filtered else 1 for n in range(len(self.of.axes))]
        return list(itertools.product(*(range(size) for size in sizes)))

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

    # --- the products

    def _products(self) -> None:
        """(matrix, tile, output feature)."""
        plan, depth = self.plan, self.plan.depth
        count, tall, vectors, lanes = plan.tiles_of_step, plan.tall, plan.vectors, plan.lanes
        panel_size = depth * plan.width

        def registers(matrix: Index, panel: Index, row: Index) -> None:
            row = nest.minimum(row, count - tall) if count % tall else row
            left = Address.of(self.image, [add(multiply(matrix, self.of_image), multiply(row, depth))])
            at = add(multiply(matrix, self.of_kernel), multiply(panel, panel_size))
            right = Address.of(self.kernel, [at])

            def step(c: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                weights = right.moved(multiply(c, plan.width))
                loaded = [weights.moved(v * lanes).load(self.packed.type) for v in range(vectors)]
                new = []
                for r in range(tall):
                    factor = left.moved(c).moved(r * depth).spread(self.packed.type)
                    new += [multiply_add(self.form, factor, loaded[v], sums[r * vectors + v]) for v in range(vectors)]
                return new

            sums = nest.loop(0, depth, 1, step, [self.total.zero()] * (tall * vectors))
            start = add(multiply(matrix, self.of_sums), multiply(row, self.columns))
            to = Address.of(self.sums, [add(start, multiply(panel, plan.width))])
            for n, total in enumerate(sums):
                to.moved(n // vectors * self.columns + n % vectors * lanes).store(total)

        def matrix(m: Index) -> None:
            nest.once_or_loop(plan.panels, 1, lambda p: nest.once_or_loop(count, tall, lambda r: registers(m, p, r)))

        nest.loop(0, plan.matrices, 1, matrix)

    # --- the result

    def _results(self, starts: dict[str, Index]) -> None:
        plan, results = self.plan, self.results
        results.begin(starts)

        def tile(number: Index, at: Sequence[Index], b: Index) -> None:
            source, target = Address.of(self.sums, [multiply(number, self.columns)]), results.of_tile(at, b)

            def features(f: Index) -> None:
                read = {
                    place: source.moved(f).moved(n * self.of_sums).load(self.total.type)
                    for n, place in enumerate(self._places(READ))
                }
                made = winograd.of_products(read, plan.filtered)
                results.store({place: self._scaled(value) for place, value in made.items()}, at, target.moved(f))

            nest.in_vectors(plan.features, plan.lanes, features)

        self._tiles(tile)
        results.end()

    def _scaled(self, value: ir.Value) -> ir.Value:
        axes = len(self.plan.filtered)
        if self.form.group == 1:
            return arith.mulf(value, nest.constant_vector(self.total.type, RESULTS**-axes))
        return arith.shrsi(value, nest.constant_vector(self.total.type, axes))
