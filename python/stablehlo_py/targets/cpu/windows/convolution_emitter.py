"""The loops of a convolution as register tiles, without a transposed or padded copy of anything but small parts.

    for each step (a part of batch, groups, the first axis, the lanes):       parallel
      copy the part of the image that it reads, with its zeros                if there are zeros
      for some panels of lanes, for each block of the sums:
        pack the panels' part of the kernel                                   if it is not contiguous, or large
        for each panel, for all other loops over the result, for each tile:
          tile = what it was + sum over taps and features of the block, all in registers

Extents that are no multiple of a part end with a part that overlaps the one before: it computes the same bits again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.records import replace
from stablehlo_py.targets.cpu.emit import nest, streaming
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import fence
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.products.product_forms import Form, multiply_add, widened
from stablehlo_py.targets.cpu.windows.convolution_image import PaddedImage
from stablehlo_py.targets.cpu.windows.convolution_panels import KernelPanels
from stablehlo_py.targets.cpu.windows.convolution_plan import (
    CONVERTED,
    UNROLLED,
    Plan,
    Split,
    Tile,
    in_blocks,
    merged,
    parallel_loops,
    summed_loops,
)
from stablehlo_py.targets.cpu.windows.convolution_rows import RowPlaces
from stablehlo_py.targets.cpu.windows.convolutions import Geometry, Loop
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

PANEL_REUSE = 3  # tiles that must read a panel for its packing to pay
Index = int | ir.Value
Places = tuple[Index, Index, Index, Index]  # in the image, in the kernel, in the result, in the sums that are kept


def emit(
    geometry: Geometry,
    form: Form,
    plan: Plan,
    buffers: tuple[ir.Value, ir.Value, ir.Value],
    *,
    padded: bool,
    cpu: Cpu,
) -> None:
    """The whole kernel: image, kernel and result are `buffers`; padded: the image is copied."""
    _Emitter(geometry, form, plan.tile, plan.split, buffers, padded=padded, cpu=cpu).emit()


class _Emitter:
    """starts: what the tile's sums begin with, for each of its vectors."""

    def __init__(
        self,
        geometry: Geometry,
        form: Form,
        tile: Tile,
        split: Split,
        buffers: tuple[ir.Value, ir.Value, ir.Value],
        *,
        padded: bool,
        cpu: Cpu,
    ) -> None:
        self.whole, self.split, self.form = geometry, split, replace(form, lanes=tile.lanes)
        self.x, self.w, self.out = buffers
        self.element = form.packed
        self.vectors = Vectors(self.element, tile.lanes)
        self.image = PaddedImage(geometry, split, tile, self.x, self.form) if padded else None
        self.starts = [self.vectors.zero()] * tile.vectors
        self.of = self.image.geometry if self.image else geometry
        loops = {loop.name: loop for loop in parallel_loops(self.of)}
        row_loops = tuple(loops.get(loop.name, loop) for loop in tile.row_loops)
        self.tile = replace(tile, row_loops=row_loops, lane=loops[tile.lane.name])
        self.outer = [loop for name, loop in loops.items() if name not in (*tile.row_names, tile.lane.name)]
        self.counts: dict[str, Index] = {}  # steps of the loops in this phase, where that is not all of their extent
        uneven = {f"o{n}" for n, a in enumerate(self.of.axes) if a.phases and not a.phases.are_even}
        self.rows = RowPlaces(self.tile, split, self.counts, uneven)
        self.summed = summed_loops(self.of, self.tile.lane)
        phased = any(axis.phases for axis in self.of.axes)
        self.panels: KernelPanels | None = None
        self.panel: Index = 0  # which of those packed together
        self.blocks: list[Loop] = []
        self.block: tuple[Index, int] = (0, 1)  # number of this one, and how many there are
        self.slots: dict[str, int] = {}  # elements from one step of a loop to the next in the sums that are kept
        if not self._packs():
            return
        if self._adds_in_blocks(phased):
            # A panel may be read from the second-level cache. What tiles share of an image whose features are apart may not:
            # a line for each step or two, for a few elements of it.
            most = cpu.l2 // 8 if self.of.loops["i"].x == 1 else cpu.l1 * 3 // 4
            self.blocks, self.summed = in_blocks(merged(self.summed), most // (tile.vectors * tile.lanes * form.bytes))
        self.panels = KernelPanels(
            self.w,
            self.form,
            self.tile,
            self.summed,
            self.counts,
            between=self.of.loops["i"].w // form.group,
            panels=split.sizes["lanes"],
            most_bytes=cpu.l2 // 4,
        )
        if self.blocks:
            self._keep_sums(self.panels.together)

    def _packs(self) -> bool:
        tile = self.tile
        if self.form.element in CONVERTED and tile.lane.w:
            return True
        if tile.lane.w == 0 or tile.used < tile.lanes:
            return tile.lane.w != 0 and tile.lane.w != 1
        tiles = math.prod(self.split.extent(loop) for loop in self.outer if loop.w == 0)
        tiles *= -(-self.rows.extent // tile.rows)
        return tile.lane.w != 1 or (tiles >= PANEL_REUSE and tile.row.w == 0)

    def _adds_in_blocks(self, phased: bool) -> bool:
        """Whether the sums of all tiles of a panel may be kept while a part of it after the other is added to them."""
        return not phased and not self.form.offsets and self.tile.used == self.tile.lanes

    def _keep_sums(self, panels: int) -> None:
        """Give the sums over some blocks a place each, tile by tile in the order of the loops around."""
        tile = self.tile
        size = -(-self.rows.extent // tile.rows) * tile.rows * tile.vectors * tile.lanes
        for loop in reversed([loop for loop in self.outer if not loop.w]):
            self.slots[loop.name] = size
            size *= self.split.extent(loop)
        self.slots["panel"] = size
        self.partial = nest.scratch([panels * size], self.form.sums)

    def emit(self) -> None:
        if self.split.steps == 1:
            self._step({"b": 0, "g": 0, "o0": 0}, 0)
            return

        def step(number: ir.Value) -> None:
            starts: dict[str, Index] = {}
            rest: Index = number
            for name in ("lanes", "o0", "g", "b"):
                count, size = self.split.counts[name], self.split.sizes[name]
                if count == 1:
                    starts[name] = 0
                    continue
                last = rest is not number and math.prod(self.split.counts[n] for n in _after(name)) == 1
                at = rest if last or count == self.split.steps else arith.remsi(nest.index(rest), nest.index(count))
                rest = rest if last else arith.divsi(nest.index(rest), nest.index(count))
                extent = self._whole_extent(name)
                starts[name] = nest.minimum(multiply(at, size), extent - size) if extent % size else multiply(at, size)
            self._step(starts, starts.pop("lanes"))

        nest.loop(0, self.split.steps, 1, step, parallel=PARALLEL_LOOP)

    def _whole_extent(self, name: str) -> int:
        if name == "lanes":
            return -(-self.tile.lane.extent // self.tile.width)
        return self.whole.axes[0].places if name == "o0" else self.whole.loops[name].extent

    def _step(self, starts: dict[str, Index], panel: Index) -> None:
        """One step: the parts of b, g and o0 that begin at `starts`, and its panels from `panel` on."""
        x: Index = 0
        w: Index = self.of.first_tap
        out: Index = 0
        for loop in parallel_loops(self.of):
            start = starts.get(loop.name, 0)
            out, w = add(out, multiply(start, loop.o)), add(w, multiply(start, loop.w))
            if self.image is None:
                x = add(x, multiply(start, loop.x))
        if self.image is None:
            x = add(x, -sum(axis.before * axis.x for axis in self.of.axes))
        else:
            self.image.fill(starts)
        self.first_row = starts.get("o0", 0)
        self._phases(0, (x, w, out), panel)

    def _phases(self, n: int, at: tuple[Index, Index, Index], panel: Index) -> None:
        """The panels once for each class of results that have the same taps."""
        if n == len(self.of.axes):
            self.rows.fill()
            self._panels(*at, panel)
            return
        axis = self.of.axes[n]
        phases = axis.phases
        if phases is None:
            self._phases(n + 1, at, panel)
            return

        def phase(p: ir.Value) -> None:
            count = phases.count
            first = arith.remui(nest.index(nest.subtract(phases.before % count + count, p)), nest.index(count))
            taps = arith.divui(nest.index(nest.subtract(phases.taps + count - 1, first)), nest.index(count))
            behind = add(add(p, first), count * phases.front - phases.before)
            skipped = arith.divui(nest.index(behind), nest.index(count))
            self.counts[f"t{n}"] = taps
            if not phases.are_even:
                places = arith.divui(nest.index(nest.subtract(phases.places + count - 1, p)), nest.index(count))
                left = places if n else nest.minimum(self.split.sizes["o0"], nest.subtract(places, self.first_row))
                self.counts[f"o{n}"] = left
            x, w, out = at
            moved = (multiply(skipped, axis.x), multiply(first, phases.w), multiply(p, phases.o))
            self._phases(n + 1, (add(x, moved[0]), add(w, moved[1]), add(out, moved[2])), panel)

        nest.loop(0, phases.count, 1, lambda p: phase(p))

    def _panels(self, x: Index, w: Index, out: Index, first: Index) -> None:
        """The panels of a step, those packed together after each other."""
        count = self.split.sizes["lanes"]
        together = 1 if self.panels is None else self.panels.together
        along_kernel = [loop for loop in self.outer if loop.w]

        def some(number: Index) -> None:
            left = nest.minimum(together, nest.subtract(count, number)) if count % together else together

            def block(at: Places) -> None:
                self._block(at, add(first, number), left)

            self._nest(along_kernel, (x, w, out, 0), lambda at: self._in_blocks(self.blocks, 0, at, block))

        nest.once_or_loop(count, together, some)

    def _block(self, at: Places, first: Index, count: Index) -> None:
        """One block of the sums of `count` panels."""
        x, w, out, _ = at
        lane, width = self.tile.lane, self.tile.width
        others = [loop for loop in self.outer if not loop.w]

        def lanes_of(n: Index) -> Index:
            start = multiply(add(first, n), width)
            return nest.minimum(start, lane.extent - width) if lane.extent % width else start

        if self.panels is not None:
            self.panels.pack(lambda n: add(w, multiply(lanes_of(n), lane.w)), count)
            if self.form.offsets:
                self.starts = self.panels.offset_sums()

        def panel(n: Index) -> None:
            self.panel, start = n, lanes_of(n)
            moved = (
                add(x, multiply(start, lane.x)),
                add(w, multiply(start, lane.w)),
                add(out, multiply(start, lane.o)),
                multiply(n, self.slots.get("panel", 0)),
            )
            self._nest(others, moved, self._rows)

        if isinstance(count, int) and count == 1:
            panel(0)
        else:
            nest.loop(0, count, 1, lambda n: panel(n))

    def _in_blocks(self, loops: Sequence[Loop], number: Index, at: Places, body: Callable[[Places], None]) -> None:
        """The body for each block of the sums, in their order."""
        if not loops:
            self.block = number, math.prod(loop.extent for loop in self.blocks)
            body(at)
            return
        loop, *rest = loops
        count = math.prod(inner.extent for inner in rest)
        nest.loop(
            0,
            loop.extent,
            1,
            lambda n: self._in_blocks(rest, add(number, multiply(n, count)), self._moved(at, loop, n), body),
        )

    def _nest(self, loops: Sequence[Loop], at: Places, body: Callable[[Places], None]) -> None:
        """The body for all steps of the loops."""
        if not loops:
            body(at)
            return
        loop, *rest = loops
        extent = self.counts.get(loop.name, self.split.extent(loop))
        if isinstance(extent, int) and extent == 1:
            self._nest(rest, at, body)
        else:
            nest.loop(0, extent, 1, lambda n: self._nest(rest, self._moved(at, loop, n), body))

    def _moved(self, at: Places, loop: Loop, n: Index) -> Places:
        x, w, out, kept = at
        slot = self.slots.get(loop.name, 0)
        return (
            add(x, multiply(n, loop.x)),
            add(w, multiply(n, loop.w)),
            add(out, multiply(n, loop.o)),
            add(kept, multiply(n, slot)),
        )

    # --- the register tile

    def _rows(self, at: Places) -> None:
        """All tiles along the rows."""
        x, w, out, kept = at
        tile, extent = self.tile, self.rows.extent

        def rows(first: Index) -> None:
            slot = add(kept, multiply(first, tile.vectors * tile.lanes))
            limit = self.rows.limit
            if extent % tile.rows or not isinstance(limit, int):
                first = nest.minimum(first, nest.subtract(limit, tile.rows))
            image = self.rows.of_image(Address.of(self.x_buffer, [x]), first)
            if self.panels is None:
                kernel = Address.of(self.w, [add(w, multiply(first, tile.row.w))])
            else:
                kernel = Address.of(self.panels.buffer, [multiply(self.panel, self.panels.size)])
            self._tile(image, kernel, slot, self.rows.of_result(Address.of(self.out, [out]), first))

        nest.once_or_loop(extent, tile.rows, rows)

    def _tile(self, image: list[Address], kernel: Address, slot: Index, out: list[Address]) -> None:
        """image, out: where each row of the tile begins; slot: where its sums over earlier blocks are."""
        tile = self.tile
        width = tile.vectors * tile.lanes
        summed, from_panel = self.summed, self.panels is not None
        if from_panel:
            stride = width
            packed = []
            for loop in reversed(summed):
                packed.insert(0, replace(loop, w=stride))
                stride *= loop.extent
            summed = packed
        loops = merged(summed, self.counts)
        rows, vectors = range(tile.rows), range(tile.vectors)

        def step(image: list[Address], kernel: Address, sums: list[ir.Value]) -> list[ir.Value]:
            at_row = 0 if from_panel else tile.row.w
            types = [ir.MemRefType(buffer.type).element_type for buffer in (self.x_buffer, self.w_buffer)]
            left = [self._operand(row, types[0], tile.lane.x, False) for row in image]
            right = [
                self._operand(kernel.moved(r * at_row), types[1], tile.lane.w, from_panel)
                for r in (rows if at_row else range(1))
            ]
            new = []
            for r in rows:
                for v in vectors:
                    a, b = left[min(r, len(left) - 1)], right[min(r, len(right) - 1)]
                    total = sums[r * tile.vectors + v]
                    new.append(multiply_add(self.form, a[min(v, len(a) - 1)], b[min(v, len(b) - 1)], total))
            return new

        if not self.blocks:
            self._store(self._sum(loops, image, kernel, self.starts * tile.rows, step), out)
            return
        number, count = self.block
        partial = [Address.of(self.partial, [slot]).moved(n * tile.lanes) for n in range(tile.rows * tile.vectors)]
        is_first, is_last = nest.equal(number, 0), nest.equal(number, count - 1)
        earlier = [place.load(self.vectors.type) for place in partial]
        starts = [arith.select(is_first, self.vectors.zero(), total) for total in earlier]
        sums = self._sum(loops, image, kernel, starts, step)

        def keep() -> None:
            for place, total in zip(partial, sums, strict=True):
                place.store(total)

        nest.when(is_last, lambda: self._store(sums, out), keep)

    def _store(self, sums: list[ir.Value], out: list[Address]) -> None:
        tile = self.tile
        if tile.is_turned:
            self._store_turned(sums, out)
            return
        mask = self.vectors.mask(tile.used) if tile.used < tile.lanes else None
        for r in range(tile.rows):
            for v, offset in enumerate(tile.lane_offsets):
                out[r].moved(offset).store(sums[r * tile.vectors + v], mask)

    @property
    def x_buffer(self) -> ir.Value:
        return self.x if self.image is None else self.image.buffer

    @property
    def w_buffer(self) -> ir.Value:
        return self.w if self.panels is None else self.panels.buffer

    def _sum(
        self,
        loops: Sequence[Loop],
        image: list[Address],
        kernel: Address,
        sums: list[ir.Value],
        step: Callable[[list[Address], Address, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        if not loops:
            return step(image, kernel, sums)
        loop, *rest = loops
        count = self.counts.get(loop.name, loop.extent)

        def moved(n: Index) -> tuple[list[Address], Address]:
            by = streaming.as_offset(multiply(n, loop.x))
            return [row.moved(by) for row in image], kernel.moved(multiply(n, loop.w))

        if not rest and isinstance(count, int) and count <= UNROLLED:
            for n in range(loop.extent):
                sums = step(*moved(n), sums)
            return sums

        def body(n: ir.Value, *inner: ir.Value) -> list[ir.Value]:
            return self._sum(rest, *moved(n), list(inner), step)

        return nest.loop(0, count, 1, body, sums)

    def _operand(self, first: Address, stored: ir.Type, along_lanes: int, from_panel: bool) -> list[ir.Value]:
        """What one row of the tile multiplies: a vector for each of its vectors, or one for all."""
        tile = self.tile
        if not along_lanes:
            spread = first.spread(ir.VectorType.get([tile.lanes], stored))
            return [spread if stored == self.element else widened(self.form, spread)]
        offsets = [v * tile.lanes for v in range(tile.vectors)] if from_panel else tile.lane_offsets
        mask = self.vectors.mask(tile.used) if tile.used < tile.lanes and not from_panel else None
        return [first.moved(offset).load(self.vectors.type, mask) for offset in offsets]

    def _store_turned(self, sums: list[ir.Value], out: list[Address]) -> None:
        """The tile transposed: for each lane, its rows side by side."""
        tile = self.tile
        for v, offset in enumerate(tile.lane_offsets):
            columns = _turned([sums[r * tile.vectors + v] for r in range(tile.rows)], tile.lanes)
            for lane in range(tile.used):
                by = (offset + lane) * tile.lane.o
                if self.rows.are_neighbours:
                    out[0].moved(by).store(columns[lane])
                    continue
                for r in range(tile.rows):
                    element = vector.extract(columns[lane], [], [r])
                    out[r].moved(by).store(vector.broadcast(ir.VectorType.get([1], element.type), element))


def _after(name: str) -> list[str]:
    order = ["lanes", "o0", "g", "b"]
    return order[order.index(name) + 1 :]


def _turned(rows: list[ir.Value], lanes: int) -> list[ir.Value]:
    """For each lane the vector of its elements in the rows, whose number is a power of two up to that of the lanes."""
    count = len(rows)
    low = [i // 2 + (lanes if i % 2 else 0) for i in range(lanes)]
    high = [lanes // 2 + i for i in low]
    block, done = list(rows), 1
    while done < count:
        half = count // 2
        block = [vector.shuffle(block[i], block[i + half], m) for i in range(half) for m in (low, high)]
        done *= 2
        block = [fence(value) for value in block] if done == 4 < count else block
    return [vector.shuffle(part, part, list(range(at, at + count))) for part in block for at in range(0, lanes, count)]
