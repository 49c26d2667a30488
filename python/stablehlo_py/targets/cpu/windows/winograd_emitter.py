"""The loops of a convolution by Winograd's filters: see winograd.py.

transform the kernel into a matrix (input features x output features) for each product of a tile
for each step (some rows of tiles of some images):                                    parallel
  copy the part of the image that it reads, with its zeros
  transform it into matrices (tiles x input features)
  for each pair of matrices, for each register tile:  sums of products over the input features
  transform the sums into results; what is not finite throughout is done again as plain sums
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.ops import llvm_ops
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
from stablehlo_py.targets.cpu.windows.convolutions import Geometry
from stablehlo_py.targets.cpu.windows.winograd import READ, RESULTS, TAPS, Place, Winograd
from stablehlo_py.transforms.kernels.kernel_parallel import give_range
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

Index = int | ir.Value


def emit(plan: Winograd, form: Form, buffers: tuple[ir.Value, ir.Value, ir.Value], function: ir.Operation) -> None:
    """The whole kernel: image, kernel and result are `buffers`."""
    steps = plan.split.steps
    begin, end = (arith.constant(ir.IndexType.get(), n) for n in (0, steps))
    _Emitter(plan, form, buffers).emit(begin, end)
    if steps > 1:
        give_range(function, begin, end, steps, int(2 * plan.cycles), plan.grain)


class _Emitter:
    """kernel, image, sums: the matrices, `of_...` elements from one to the next; patch: what a tile at an edge reads."""

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
        self.stored = Vectors(ir.MemRefType(self.x.type).element_type, plan.lanes * form.group)
        self.patch = nest.scratch([math.prod(plan.reads) * plan.depth * form.group], self.stored.element)
        self.checked = nest.scratch([plan.lanes], form.sums)
        self.window = [TAPS if n in plan.filtered else 1 for n in range(len(self.of.axes))]

    def emit(self, begin: ir.Value, end: ir.Value) -> None:
        self.w, self.of = self._kernel_by_features()
        self._kernel()
        nest.loop(begin, end, 1, self._step)

    def _step(self, number: ir.Value) -> None:
        split = self.plan.split
        starts: dict[str, Index] = {"g": 0}
        images, along = divided(number, split.counts["o0"]) if split.counts["o0"] > 1 else (number, 0)
        starts["o0"] = multiply(along, split.sizes["o0"])
        starts["b"] = multiply(images, split.sizes["b"]) if split.counts["b"] > 1 else 0
        self._image(starts)
        self._products()
        self._results(starts)

    # --- the kernel

    def _kernel_by_features(self) -> tuple[ir.Value, Geometry]:
        """The kernel with its output features innermost, and the convolution that reads it: a copy where they are not."""
        of, group = self.of, self.form.group
        f, i = of.loops["f"], of.loops["i"]
        if f.w == 1:
            return self.w, of
        features, size = self.plan.features, self.plan.depth * group * self.plan.features
        copy = nest.scratch([math.prod(self.window) * size], self.stored.element)
        strides = [math.prod(self.window[n + 1 :]) * size for n in range(len(of.axes))]
        loops = [(count, axis.w, to) for count, axis, to in zip(self.window, of.axes, strides, strict=True)]
        loops += [(features, f.w, 1), (self.plan.depth * group, i.w // group, features)]

        def along(n: int, place: Index, to: Index) -> None:
            if n == len(loops):
                nest.store(nest.load(self.w, [place]), copy, [to])
                return
            count, step, there = loops[n]
            nest.once_or_loop(
                count, 1, lambda k: along(n + 1, add(place, multiply(k, step)), add(to, multiply(k, there)))
            )

        along(0, of.first_tap, 0)
        near = {"f": replace(f, w=1), "i": replace(i, w=group * features)}
        axes = tuple(replace(axis, w=to) for axis, to in zip(of.axes, strides, strict=True))
        return copy, replace(of, loops={**of.loops, **near}, axes=axes, first_tap=0)

    def _kernel(self) -> None:
        """(matrix, panel, input feature, features of the panel)."""
        plan, lanes = self.plan, self.plan.lanes
        stored = Vectors(ir.MemRefType(self.w.type).element_type, lanes)
        axes, i = self.of.axes, self.of.loops["i"]
        between = i.w // self.form.group
        taps = list(itertools.product(*(range(count) for count in self.window)))
        offsets = [sum(n * axis.w for n, axis in zip(tap, axes, strict=True)) for tap in taps]

        def some(c: Index, f: Index, mask: ir.Value | None) -> None:
            first = Address.of(self.w, [add(add(self.of.first_tap, multiply(c, i.w)), f)])
            members = []
            for member in range(self.form.group):
                places = [first.moved(member * between + offset) for offset in offsets]
                loaded = [self._weights(place.load(stored.type, mask)) for place in places]
                members.append(winograd.of_kernel(dict(zip(taps, loaded, strict=True)), plan.filtered))
            panel, lane = divided(f, plan.width)
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
            corner = []
            for n, (place, move) in enumerate(zip(at, plan.moves, strict=True)):
                begin = multiply(starts["o0"], self.of.axes[0].step) if n == 0 else 0
                corner.append(nest.subtract(add(begin, multiply(place, move)), self.of.axes[n].before))
            source, strides = self._source(corner, add(starts["b"], b))
            offsets = [self._dot(place, strides) for place in places]
            target = Address.of(self.image, [multiply(number, depth)])

            def features(c: Index) -> None:
                c = nest.minimum(c, depth - lanes) if depth % lanes else c
                first = source.moved(multiply(c, group))
                loaded = [run_to_lanes(self.form, first.moved(offset).load(self.stored.type)) for offset in offsets]
                read = {place: self._cast(value, work) for place, value in zip(places, loaded, strict=True)}
                to = target.moved(c)
                for n, (_, value) in enumerate(sorted(winograd.of_image(read, plan.filtered).items())):
                    to.moved(n * self.of_image).store(self._cast(value, self.packed.type))

            nest.once_or_loop(depth, lanes, features)

        self._tiles(tile)

    def _source(self, corner: list[Index], b: Index) -> tuple[Address, list[Index]]:
        """Where what a tile reads begins, and how far it is from one place to the next along each axis.

        In the image itself, or where that ends within the tile, in a copy of this part with zeros around.
        """
        plan, axes, group = self.plan, self.of.axes, self.form.group
        inside: ir.Value | None = None
        for axis, first, count, tiles, move in zip(axes, corner, plan.reads, plan.tiles, plan.moves, strict=True):
            if axis.before <= 0 and (tiles - 1) * move - axis.before + count <= axis.size:
                continue
            # as unsigned numbers, those before the image are large
            here = arith.cmpi(arith.CmpIPredicate.ult, nest.index(first), nest.index(max(axis.size - count + 1, 0)))
            inside = here if inside is None else arith.andi(inside, here)
        strides: list[Index] = [axis.x * group for axis in axes]

        def whole() -> Address:
            start = add(multiply(b, self.of.loops["b"].x * group), self._dot(corner, strides))
            return Address.of(self.x, [start])

        if inside is None:
            return whole(), strides
        near = [math.prod(plan.reads[n + 1 :]) * plan.depth * group for n in range(len(axes))]

        def copy() -> list[ir.Value]:
            self._copy(corner, b, near)
            return [Address.of(self.patch, [0]).pointer, *map(nest.index, near)]

        types = [llvm_ops.pointer_type(), *[ir.IndexType.get()] * len(axes)]
        found = nest.choose(inside, types, lambda: [whole().pointer, *map(nest.index, strides)], copy)
        return Address(found[0], element_bytes(self.stored.element)), list(found[1:])

    def _copy(self, corner: list[Index], b: Index, near: list[int]) -> None:
        plan, axes, group = self.plan, self.of.axes, self.form.group

        def along(n: int, place: Index, to: Index, inside: ir.Value | None) -> None:
            if n == len(axes):
                assert inside is not None
                nest.when(inside, lambda: self._move(place, to), lambda: self._move(None, to))
                return
            axis = axes[n]

            def one(k: Index) -> None:
                at = nest.index(add(corner[n], k))
                here = arith.cmpi(arith.CmpIPredicate.ult, at, nest.index(axis.size))
                both = here if inside is None else arith.andi(inside, here)
                along(n + 1, add(place, multiply(at, axis.x * group)), add(to, multiply(k, near[n])), both)

            nest.once_or_loop(plan.reads[n], 1, one)

        along(0, multiply(b, self.of.loops["b"].x * group), 0, None)

    def _move(self, place: Index | None, to: Index) -> None:
        """All features of one place of the image, or zeros, to the copy."""
        count, lanes = self.plan.depth * self.form.group, self.stored.lanes

        def some(c: Index) -> None:
            c = nest.minimum(c, count - lanes) if count % lanes else c
            zero = nest.constant_vector(self.stored.type, 0)
            value = zero if place is None else Address.of(self.x, [add(place, c)]).load(self.stored.type)
            Address.of(self.patch, [add(to, c)]).store(value)

        nest.once_or_loop(count, lanes, some)

    @staticmethod
    def _dot(places: Sequence[Index], strides: Sequence[Index]) -> Index:
        total: Index = 0
        for place, stride in zip(places, strides, strict=True):
            if isinstance(place, int) and place == 0:
                continue
            total = add(total, multiply(place, stride))
        return total

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
        plan, lanes, features = self.plan, self.plan.lanes, self.plan.features
        axes, plane = self.of.axes, self.of_sums
        is_float = self.form.group == 1
        begin = add(multiply(starts["b"], self.of.loops["b"].o), multiply(starts["o0"], axes[0].o))
        if is_float:
            self.total.store(self.total.zero(), self.checked, [0])

        def tile(number: Index, at: Sequence[Index], b: Index) -> None:
            start = add(begin, multiply(b, self.of.loops["b"].o))
            for n, place in enumerate(at):
                start = add(start, multiply(place, axes[n].o * plan.steps[n]))
            source = Address.of(self.sums, [multiply(number, self.columns)])
            target = Address.of(self.out, [start])

            def of_features(f: Index) -> None:
                f = nest.minimum(f, features - lanes) if features % lanes else f
                read = {
                    place: source.moved(f).moved(n * plane).load(self.total.type)
                    for n, place in enumerate(self._places(READ))
                }
                made = winograd.of_products(read, plan.filtered)
                results = {place: self._scaled(value) for place, value in made.items()}
                if is_float:
                    self._check(list(results.values()))
                self._store(results, at, starts, target.moved(f), 0)

            nest.once_or_loop(features, lanes, of_features)

        self._tiles(tile)
        if is_float:
            total = self.total.load(self.checked, [0])
            sum_ = vector.reduction(self.form.sums, "add", total)
            nest.when(arith.cmpf(arith.CmpFPredicate.UNO, sum_, sum_), lambda: self._again(starts))

    def _scaled(self, value: ir.Value) -> ir.Value:
        axes = len(self.plan.filtered)
        if self.form.group == 1:
            return arith.mulf(value, nest.constant_vector(self.total.type, RESULTS**-axes))
        return arith.shrsi(value, nest.constant_vector(self.total.type, axes))

    def _check(self, results: list[ir.Value]) -> None:
        """Add 0 for each finite one, NaN for any other."""
        zero = self.total.zero()
        marks = arith.mulf(results[0], zero)
        for value in results[1:]:
            marks = vector.fma(value, zero, marks)
        self.total.store(arith.addf(self.total.load(self.checked, [0]), marks), self.checked, [0])

    def _store(
        self, results: dict[Place, ir.Value], at: Sequence[Index], starts: dict[str, Index], target: Address, axis: int
    ) -> None:
        """Those that are inside: the last tiles of an axis may reach beyond, or be there for even steps alone."""
        if axis == len(self.of.axes):
            for place, value in results.items():
                target.moved(sum(n * a.o for n, a in zip(place, self.of.axes, strict=True))).store(value)
            return
        places, beyond = self.of.axes[axis].places, self.plan.tiles[axis] * self.plan.steps[axis]
        if beyond == places:
            self._store(results, at, starts, target, axis + 1)
            return
        here = add(multiply(at[axis], self.plan.steps[axis]), starts["o0"] if axis == 0 else 0)
        for n in range(self.plan.steps[axis]):
            part = {place: value for place, value in results.items() if place[axis] == n}
            # with one place too many, first ones are always inside
            inside = n == 0 and beyond == places + 1 > 2
            condition = inside or arith.cmpi(arith.CmpIPredicate.ult, nest.index(add(here, n)), nest.index(places))
            nest.when(condition, functools.partial(self._store, part, at, starts, target, axis + 1))

    def _again(self, starts: dict[str, Index]) -> None:
        """The results of this step as plain sums."""
        plan, axes, batch = self.plan, self.of.axes, self.of.loops["b"]
        rows = nest.minimum(plan.split.sizes["o0"], nest.subtract(axes[0].places, starts["o0"]))

        def along(n: int, at: list[Index], out: Index) -> None:
            if n == len(axes):
                self._plain_sums(at, out)
                return

            def one(place: ir.Value) -> None:
                here = add(place, starts["o0"]) if n == 0 else place
                along(n + 1, [*at, here], add(out, multiply(here, axes[n].o)))

            nest.loop(0, rows if n == 0 else axes[n].places, 1, lambda place: one(place))

        def image(b: ir.Value) -> None:
            b = add(b, starts["b"])
            along(0, [b], multiply(b, batch.o))

        nest.loop(0, plan.images, 1, lambda b: image(b))

    def _plain_sums(self, at: Sequence[Index], out: Index) -> None:
        """All features of one place of the result; at: the image, and the place along each axis."""
        plan, axes, lanes, i = self.plan, self.of.axes, self.plan.lanes, self.of.loops["i"]
        stored = Vectors(self.stored.element, lanes)

        def tap(n: int, x: Index, w: Index, total: ir.Value) -> ir.Value:
            if n == len(axes):
                return nest.loop(0, plan.depth, 1, lambda c, total: [product(add(x, c), w, c, total)], [total])[0]
            axis = axes[n]

            def one(t: ir.Value, total: ir.Value) -> list[ir.Value]:
                place = nest.index(nest.subtract(add(multiply(at[1 + n], axis.step), t), axis.before))
                inside = arith.cmpi(arith.CmpIPredicate.ult, place, nest.index(axis.size))
                moved = add(x, multiply(place, axis.x)), add(w, multiply(t, axis.w))
                return nest.choose(inside, [total.type], lambda: [tap(n + 1, *moved, total)], lambda: [total])

            return nest.loop(0, self.window[n], 1, one, [total])[0]

        def product(x: Index, w: Index, c: ir.Value, total: ir.Value) -> ir.Value:
            factor = widened(self.form, Address.of(self.x, [x]).spread(stored.type))
            weights = Address.of(self.w, [add(w, multiply(c, i.w))]).load(stored.type)
            return vector.fma(factor, widened(self.form, weights), total)

        def features(f: Index) -> None:
            f = nest.minimum(f, plan.features - lanes) if plan.features % lanes else f
            x, w = multiply(at[0], self.of.loops["b"].x), add(self.of.first_tap, f)
            Address.of(self.out, [add(out, f)]).store(tap(0, x, w, self.total.zero()))

        nest.once_or_loop(plan.features, lanes, features)


def divided(value: Index, by: int) -> tuple[Index, Index]:
    """Quotient and remainder."""
    if isinstance(value, int):
        return value // by, value % by
    return arith.divui(value, nest.index(by)), arith.remui(value, nest.index(by))
