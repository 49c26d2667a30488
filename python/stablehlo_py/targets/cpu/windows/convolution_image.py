"""The part of the image that a step of a convolution reads, copied with its zeros around and between the elements.

The copy keeps the order of the dimensions in memory, so that what is contiguous stays so; it is as large as one step needs
and stays in the cache.
"""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.products.product_forms import Form, as_lhs, run_to_lanes
from stablehlo_py.targets.cpu.windows.convolution_plan import Split, Tile
from stablehlo_py.targets.cpu.windows.convolutions import Geometry


@record
class Side:
    """One dimension of the image: its name, elements in memory and in the copy, and strides in both."""

    name: str
    size: int
    source: int
    extent: int
    target: int


class PaddedImage:
    """A scratch buffer with the image's place in it; `geometry` has the strides of the copy."""

    def __init__(self, geometry: Geometry, split: Split, tile: Tile, source: ir.Value, form: Form) -> None:
        self.of, self.split, self.source, self.form, self.lanes = geometry, split, source, form, tile.lanes
        self.element = element = form.packed
        sides = [Side(n, geometry.loops[n].extent, geometry.loops[n].x, self._part(n), 0) for n in "bgi"]
        for n, axis in enumerate(geometry.axes):
            part = replace(axis, places=split.sizes["o0"]) if n == 0 else axis
            sides.append(Side(f"o{n}", axis.size, axis.x, part.reach, 0))
        stride = 1
        self.sides: list[Side] = []
        # Dimensions of size 1 have the stride of a neighbour, but zeros around them; what is in the lanes goes innermost.
        for side in sorted(sides, key=lambda s: (s.source, s.name != tile.lane.name, s.size != 1)):
            self.sides.insert(0, replace(side, target=stride))
            stride *= side.extent
        self.size = stride
        self.buffer = nest.scratch([stride + tile.lanes], element)
        strides = {side.name: side.target for side in self.sides}
        self.geometry = replace(
            geometry,
            loops={name: replace(loop, x=strides.get(name, 0)) for name, loop in geometry.loops.items()},
            axes=tuple(
                replace(axis, x=strides[f"o{n}"], size=axis.reach, before=0, stuffing=1)
                for n, axis in enumerate(geometry.axes)
            ),
        )

    def _part(self, name: str) -> int:
        return self.split.sizes.get(name, self.of.loops[name].extent) if name != "i" else self.of.loops["i"].extent

    def fill(self, starts: dict[str, int | ir.Value]) -> None:
        """Copy what begins at these steps of b, g and o0."""
        low: dict[str, int | ir.Value] = {}
        first, stop = dict(low), dict(low)
        for side in self.sides:
            if not side.name.startswith("o"):
                low[side.name], first[side.name] = starts.get(side.name, 0), starts.get(side.name, 0)
                stop[side.name] = add(first[side.name], side.extent)
                continue
            axis = self.of.axes[int(side.name[1:])]
            start = multiply(starts.get("o0", 0), axis.step) if side.name == "o0" else 0
            low[side.name] = start = nest.subtract(start, axis.before)
            first[side.name] = _maximum(0, _ceildiv(start, axis.stuffing))
            end = add(_floordiv(add(start, side.extent - 1), axis.stuffing), 1)
            stop[side.name] = nest.minimum(side.size, end)
        if not all(a.is_plain for a in self.of.axes):
            self._zeros()
        self._copy(list(self.sides), low, first, stop, 0, 0)

    def _zeros(self) -> None:
        vectors = Vectors(self.element, self.lanes)
        zero = as_lhs(replace(self.form, lanes=self.lanes), vectors.zero())
        nest.loop(0, self.size, self.lanes, lambda at: vectors.store(zero, self.buffer, [at]))

    def _copy(
        self,
        sides: list[Side],
        low: dict[str, int | ir.Value],
        first: dict[str, int | ir.Value],
        stop: dict[str, int | ir.Value],
        source: int | ir.Value,
        target: int | ir.Value,
    ) -> None:
        run = self._run(sides, first, stop)
        if run is not None:
            for side in sides:
                place = nest.subtract(multiply(first[side.name], self._stuffing(side)), low[side.name])
                source = add(source, multiply(first[side.name], side.source))
                target = add(target, multiply(place, side.target))
            self._elements(run, source, target)
            return
        side, *rest = sides

        def step(q: int | ir.Value) -> None:
            place = nest.subtract(multiply(q, self._stuffing(side)), low[side.name])
            self._copy(
                rest,
                low,
                first,
                stop,
                add(source, multiply(q, side.source)),
                add(target, multiply(place, side.target)),
            )

        begin, end = first[side.name], stop[side.name]
        if side.extent == 1 and side.name in "bgi":
            step(begin)
        else:
            nest.loop(begin, end, 1, lambda q: step(q))

    def _run(self, sides: list[Side], first: dict[str, int | ir.Value], stop: dict[str, int | ir.Value]) -> int | None:
        """How many elements these dimensions have in a row on both sides; None if they are apart."""
        count = 1
        for side in reversed(sides):
            begin, end = first[side.name], stop[side.name]
            length = end - begin if isinstance(begin, int) and isinstance(end, int) else None
            if side.name in "bgi" and side.extent == 1:
                length = 1
            if length is None:
                return None
            length = max(length, 0)
            if length == 1:
                continue
            if self._stuffing(side) > 1 or side.source != count or side.target != count:
                return None
            count *= length
        return count

    def _stuffing(self, side: Side) -> int:
        return self.of.axes[int(side.name[1:])].stuffing if side.name.startswith("o") else 1

    def _elements(self, count: int, source: int | ir.Value, target: int | ir.Value) -> None:
        stored = ir.MemRefType(self.source.type).element_type
        lanes = self.lanes
        while lanes > count:
            lanes //= 2
        form = replace(self.form, lanes=lanes)
        vectors, work = Vectors(stored, lanes * form.group), Vectors(self.element, lanes)
        if count == 0:
            return
        if lanes == 1 and stored == self.element:
            nest.store(nest.load(self.source, [source]), self.buffer, [target])
            return

        def move(at: int | ir.Value) -> None:
            value = vectors.load(self.source, [multiply(add(source, at), form.group)])
            work.store(as_lhs(form, run_to_lanes(form, value)), self.buffer, [add(target, at)])

        whole = count // lanes * lanes
        nest.once_or_loop(whole, lanes, move)
        if whole != count:
            move(count - lanes)


def _maximum(a: int, b: int | ir.Value) -> int | ir.Value:
    return max(a, b) if isinstance(b, int) else arith.maxsi(nest.index(a), b)


def _ceildiv(a: int | ir.Value, b: int) -> int | ir.Value:
    if b == 1:
        return a
    return -(-a // b) if isinstance(a, int) else arith.ceildivsi(a, nest.index(b))


def _floordiv(a: int | ir.Value, b: int) -> int | ir.Value:
    if b == 1:
        return a
    return a // b if isinstance(a, int) else arith.floordivsi(a, nest.index(b))
