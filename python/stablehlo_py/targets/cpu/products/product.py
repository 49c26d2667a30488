"""Matrix products as register tiles over packed operands.

    for each block of k:
      for each block of rows:                       its tiles of A are packed
        for each panel of NR columns:               packed where it is first used
          for each tile of MR rows:                 C tile = sum over k of A column x B row, all in registers

The tile is MR x NR sums in vector registers; one step of k loads NR lanes of B and broadcasts MR lanes of A. Where
registers are few, the first tiles leave a row to the next, so that the rows come out even. Where an element of C is written
once, and from its sum alone, the last panel goes as far back as makes it whole, and so does the last tile: what two of them
compute has the same bits, and no edge needs code of its own. A kernel of nothing but a product does
panels begin .. end, or tiles of rows where there are more rows than columns: a thread packs its share of one operand, and
all of the other once. With many of both, the panels are packed by a launch of their own, and shared by all who then do tiles
of rows. Panels that are too many for the second-level cache are asked for beside the tiles of the panel before, where
registers are many. With few rows a panel is used right after it is packed, and never again: it is packed row by row beside
the tiles of the panel before, so that nothing waits for memory. What is summed for one element of C depends on k alone,
neither on its place nor on the cuts: blocks of ascending k, each summed up from zero, added in ascending order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from stablehlo_py.later import Later
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import LINE, strides_of
from stablehlo_py.targets.cpu.products import packing, skinny
from stablehlo_py.targets.cpu.products.packing import Index
from stablehlo_py.targets.cpu.products.product_forms import SMALL_INT_BLOCK_K, form_of
from stablehlo_py.targets.cpu.products.register_tile import emit_tile
from stablehlo_py.targets.cpu.products.tile_shape import round_up, tile_shape
from stablehlo_py.transforms.kernels.kernel_parallel import GRAIN_COLUMNS
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes
from stablehlo_py.transforms.kernels.kernels_to_memref import SHARED
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP
from stablehlo_py.transforms.simplify.panels import PANEL

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.emit import matrix_tiles as _matrix_tiles
    from stablehlo_py.targets.cpu.products import matrix_tile as _matrix_tile
    from stablehlo_py.targets.cpu.products.epilogue import Epilogue
else:  # of some products
    _matrix_tile = Later("stablehlo_py.targets.cpu.products.matrix_tile")
    _matrix_tiles = Later("stablehlo_py.targets.cpu.emit.matrix_tiles")

BLOCK_K = 1024  # lanes along k in a block: a panel of it is 256 KiB at most, a quarter of a second-level cache or less
WIDEST = 4  # vectors in a row of a tile
A_SHARE = 4  # of the second-level cache's bytes to those of the rows of A that are packed at a time
FEW_BYTES = 512 << 10  # of rows that are few; half of a second-level cache where that is more
B_BYTES = 4 << 20  # of panels of B that wait for the next block of rows
NEAR_BYTES = 128 << 10  # of panels that are used right after they are packed: pieces of rows long enough to be foreseen
SHARED_BYTES = 2 << 20  # of panels that threads share: fewer stay in the cache of the core that packed them
GRAIN_VECTORS, GRAIN_TILES = 48, 64  # beside which packing all rows, or all columns, once more is a thirtieth or so
# Of panels that matrix tiles read: they stay in half of a second-level cache of 2 MiB, which all CPUs with tiles have, while
# one row of tiles after the other goes over them, each of which is packed when its turn comes.
TILES_B_BYTES = 1 << 20
TILES_GAIN = 8  # how many times as fast as vectors matrix tiles are, roughly: what is packed counts so much more
WAYS = 16  # of a second-level cache: Intel's and AMD's have 8 to 20
SPLIT = 4  # panels below which rows are shared among threads, if there are more of them

Range = tuple[Index, Index]


class Product:
    """One product: sizes, blocks, and the loops."""

    # Where the loops around are: the element of the batch, by label, the first k of the block and how many there are, in
    # elements and in lanes, and whether it is the first block or the last.
    at_batch: dict[str, Index]
    at_k: Index
    depth: Index
    steps: Index
    first: bool | ir.Value
    last: bool | ir.Value
    shares_panels: bool = False  # the kernel runs in phases; see `round`
    ahead: tuple[Index, Index]  # the slot and the first column of the panel that is packed ahead
    following: Index  # the slot of the panel that is read next
    tiles_beside: Index  # tiles of the block of rows, beside which it is asked for

    def __init__(
        self,
        a: ir.Value,
        b: ir.Value,
        c: ir.Value,
        labels: list[str],
        cpu: Cpu,
        *,
        accumulate: bool,
        epilogue: Epilogue | None,
        function: ir.Operation,
    ) -> None:
        self.function = function
        self.a, self.b, self.c, self.epilogue = a, b, c, epilogue
        self.a_labels, self.b_labels, self.c_labels, self.element = labels
        self.accumulate = accumulate
        sizes: dict[str, int] = {}
        for value, text in zip((a, b, c), labels, strict=False):
            sizes.update(zip(text, ir.MemRefType(value.type).shape, strict=True))
        self.batch, self.m, self.n, self.k = (sizes.get(x, 1) for x in "bmnk")
        # dimensions of the batch that lie apart, see `joined` of contractions.py
        self.apart = {x: size for x, size in sorted(sizes.items()) if x.isdigit()}
        self.is_packed = self.b_labels == "pkn"  # rhs, before the kernel: (n / PANEL, k, PANEL)
        self.source = ir.MemRefType(a.type).element_type
        self.result = ir.MemRefType(c.type).element_type
        has_tiles = cpu.bf16_tiles if self.element == "bf16" else cpu.int8_tiles and self.element in SMALL_INT_BLOCK_K
        form = _matrix_tile.suited(self.element, cpu, self.m, self.n, self.k) if has_tiles else None
        self.form = form = form or form_of(self.element, cpu, accumulates=accumulate)
        self.lanes, self.group = form.lanes, form.group
        self.registers, self.masks, self.l2 = cpu.registers, cpu.masks, cpu.l2
        self.readers: list[str] = []  # functions that read a part of a vector
        self.vectors = Vectors(form.packed, self.lanes)
        self.sums = Vectors(form.sums, self.lanes)
        if form.tiles:
            (self.mr, self.width), self.short = _matrix_tile.block(self.m, self.n), 0
        else:
            widest = PANEL // self.lanes if self.is_packed else WIDEST  # vectors in a row of the tile
            columns, cut = -(-self.n // self.lanes), "" if self.batch > 1 else "m" if self.m > self.n else "n"
            self.mr, self.width = tile_shape(self.m, columns, cpu.registers, min(widest, WIDEST), cut)
            self.short = -(-self.m // self.mr) * self.mr - self.m if cpu.registers < 32 else 0
        self.nr = self.width * self.lanes
        self.panels, self.tiles = -(-self.n // self.nr), -(-(self.m + self.short) // self.mr)
        # on 16 registers a step of k is at most 12 multiply-adds, two a cycle: what is done beside them is felt
        self.steps_are_short = cpu.registers < 32
        longest = SMALL_INT_BLOCK_K.get(self.element, BLOCK_K) if self.group == 1 else BLOCK_K * self.group
        blocks = -(-self.k // longest)
        self.kc = min(self.k, round_up(-(-self.k // blocks), self.lanes * self.group))
        self.blocks = -(-self.k // self.kc)
        # what is computed twice may be written twice if it is neither added to nor put into anything
        repeats = not accumulate and epilogue is None and self.blocks == 1 and not self.is_packed
        self.repeats_rows, self.repeats_columns = repeats and self.m > self.mr, repeats and self.n > self.nr
        self.cuts_rows = self.m % self.mr > 0 and not self.short and not self.repeats_rows
        self.cuts_columns = self.n % self.nr > 0 and not self.repeats_columns
        self.packed_steps = round_up(-(-self.kc // self.group), self.lanes)  # lanes along k of a packed block
        block_bytes = self.packed_steps * form.bytes
        # few rows are packed as a whole; then panels are used right after they are packed, and never again
        most = FEW_BYTES if form.tiles else max(FEW_BYTES, cpu.l2 // 2)
        self.just_in_time = (self.tiles * self.mr - self.short) * block_bytes <= most
        few = 1 if form.tiles else max(1, cpu.l2 // A_SHARE // (block_bytes * self.mr))
        self.block_tiles = self.tiles if self.just_in_time else few
        self.by_rows = self.m > self.n or (self.panels < SPLIT and self.tiles > self.panels)
        room = TILES_B_BYTES if form.tiles else NEAR_BYTES if self.just_in_time else B_BYTES
        self.chunk_panels = min(self.panels, max(1, room // (block_bytes * self.nr)))
        # each panel is packed row by row while the tiles of the one before are summed up
        self.packs_ahead = (
            self.just_in_time
            and self.group == 1
            and not (self.is_packed or self.by_rows or form.is_small_float or form.offsets)
            and self.b_labels[-1] == "n"
            and self.tiles > 1
        )
        if self.packs_ahead:
            self.chunk_panels = 1
        # a panel is not in the second-level cache any more when the next block of rows comes to it
        self.asks_for_panels = (
            not self.just_in_time
            and not self.steps_are_short
            and not (self.is_packed or form.tiles)
            and self.chunk_panels * block_bytes * self.nr > cpu.l2 // A_SHARE
        )
        self.a_stride = self.packed_steps + 64 // form.bytes  # rows apart by a cache line more than 4 KiB
        self.packs_rows = form.tiles or self.a_labels[-1] == "k"

    @property
    def shares_sets(self) -> bool:
        """Whether a line of each row of rhs is more than the sets of the second-level cache hold that rows come to."""
        if "k" not in self.b_labels:
            return False
        between = strides_of(self.b)[0][self.b_labels.index("k")] * element_bytes(self.source)
        sets = self.l2 // (LINE * WAYS)
        return between % LINE == 0 and sets // math.gcd(between // LINE, sets) * WAYS < self.kc

    @property
    def steps_of_one(self) -> int:
        """Steps into which the work of one batch element can be cut."""
        if skinny.suits(self):
            return skinny.tiles(self)
        return self.tiles if self.by_rows else self.panels

    @property
    def extent(self) -> int:
        """Steps into which the work can be cut."""
        if self.shares_panels:
            return self.rounds * self.steps_of_round
        return self.batch * self.steps_of_one

    @property
    def work(self) -> int:
        """Instructions, roughly; of one launch."""
        total = 2 * self.batch * self.m * self.panels * self.width * self.k // self.group
        if self.form.tiles:
            total = _matrix_tile.work(self)
        return total // self.rounds if self.shares_panels else total

    @property
    def grain(self) -> int:
        """Steps for which packing what all steps of one batch element read is little."""
        if self.shares_panels:
            return max(2, self.block_tiles // 2)
        if self.form.tiles:
            return min(self.steps_of_one, _matrix_tile.grain(self))
        if skinny.suits(self):
            return -(-GRAIN_COLUMNS // skinny.tile_columns(self))
        return min(self.steps_of_one, GRAIN_TILES if self.by_rows else GRAIN_VECTORS // self.width)

    # --- panels that all threads share: each round of some panels and a block of k first packs them, then has all tiles

    @property
    def may_share_panels(self) -> bool:
        """Whether there are so many rows and columns that to pack all of either in each thread would be felt."""
        if self.batch > 1 or self.is_packed or self.just_in_time or skinny.suits(self):
            return False
        if self.group > 1 and not self.form.tiles:
            return False
        least = SHARED_BYTES // TILES_GAIN if self.form.tiles else SHARED_BYTES
        return self.panels * self.nr * self.packed_steps * self.form.bytes >= least

    @property
    def rounds(self) -> int:
        return -(-self.panels // self.chunk_panels) * self.blocks

    @property
    def steps_of_round(self) -> int:
        return self.chunk_panels + self.tiles

    @property
    def phases(self) -> list[tuple[int, int]]:
        """The launches: begin and end of each."""
        found = []
        for number in range(self.rounds):
            start = number * self.steps_of_round
            panels = min(self.chunk_panels, self.panels - number // self.blocks * self.chunk_panels)
            found += [(start, start + panels), (start + self.chunk_panels, start + self.steps_of_round)]
        return found

    def round(self, begin: ir.Value, end: ir.Value) -> None:
        """The steps begin .. end of one phase."""
        number = arith.divui(begin, nest.index(self.steps_of_round))
        low = nest.subtract(begin, multiply(number, self.steps_of_round))
        high = add(low, nest.subtract(end, begin))
        block = arith.remui(number, nest.index(self.blocks)) if self.blocks > 1 else 0
        first = multiply(arith.divui(number, nest.index(self.blocks)), self.chunk_panels)
        behind = nest.minimum(add(first, self.chunk_panels), self.panels)
        self.at_block(multiply(block, self.kc))

        def tiles() -> None:
            t0, t1 = (nest.subtract(step, self.chunk_panels) for step in (low, high))
            self.rows((t0, t1), (first, behind))

        is_packing = arith.cmpi(arith.CmpIPredicate.slt, nest.index(low), nest.index(self.chunk_panels))
        nest.when(is_packing, lambda: packing.pack_panels(self, add(first, low), add(first, high), first), tiles)

    # --- the loops over chunks and blocks

    def emit(self, begin: ir.Value, end: ir.Value) -> None:
        """The steps begin .. end of the product."""
        if not skinny.suits(self):
            self.make_buffers()
        if self.form.tiles:
            _matrix_tiles.configure()
        self.all_batches(begin, end)
        if self.form.tiles:
            _matrix_tiles.release()

    def all_batches(self, begin: ir.Value, end: ir.Value) -> None:
        """The steps begin .. end, for each element of the batch that they belong to."""
        one = (lambda low, high: skinny.emit_axpy(self, low, high)) if skinny.suits(self) else self.region
        if self.batch == 1:
            self.enter(0)
            (self.round if self.shares_panels else one)(begin, end)
            return
        each = self.steps_of_one

        def batch(b: ir.Value) -> None:
            self.enter(b)
            start = arith.muli(b, nest.index(each))
            low = arith.maxsi(arith.subi(begin, start), nest.index(0))
            one(low, arith.minsi(arith.subi(end, start), nest.index(each)))

        first = arith.divui(begin, nest.index(each))
        nest.loop(first, arith.ceildivui(end, nest.index(each)), 1, batch)

    def make_buffers(self) -> None:
        """What is packed, noted, and finished row by row."""
        form = self.form
        if self.is_packed:
            self.packed_b = nest.flat(self.b)
        else:
            slots = 2 if self.packs_ahead else self.chunk_panels
            self.packed_b = nest.scratch([slots * self.packed_steps * self.nr], form.packed)
            if self.shares_panels:
                self.packed_b.owner.operation.attributes[SHARED] = ir.UnitAttr.get()
        per_tile = self.mr * (self.a_stride if self.packs_rows else self.packed_steps)
        # a tile of lhs as (k, m) is written in whole vectors
        self.packed_a = nest.scratch([self.block_tiles * per_tile + self.lanes], form.packed)
        self.tile_of_c = nest.scratch([self.mr * self.nr], form.sums)
        self.noted_a = nest.scratch([1], ir.IntegerType.get_signless(32))
        self.noted_b = nest.scratch([self.chunk_panels * self.nr], ir.IntegerType.get_signless(32))
        if self.shares_panels and form.is_small_float:
            self.noted_b.owner.operation.attributes[SHARED] = ir.UnitAttr.get()

    def each_of_batch(self, body: Callable[[], None]) -> None:
        """The body once for each element of the batch, each apart from the others."""

        def batch(b: Index) -> None:
            self.enter(b)
            body()

        if self.batch == 1:
            batch(0)
        else:
            nest.loop(0, self.batch, 1, batch, parallel=PARALLEL_LOOP)

    def region(self, begin: ir.Value, end: ir.Value) -> None:
        """Tiles of rows or panels of columns begin .. end of one product."""
        tiles, panels = ((begin, end), (0, self.panels)) if self.by_rows else ((0, self.tiles), (begin, end))
        if self.just_in_time or self.chunk_panels == self.panels:
            self.chunk(tiles, panels)
            return
        step = self.chunk_panels
        nest.loop(*panels, step, lambda s: self.chunk(tiles, (s, nest.minimum(add(s, step), panels[1]))))

    def chunk(self, tiles: Range, panels: Range) -> None:
        """These tiles and panels over all of k."""

        def block(p: Index) -> None:
            self.at_block(p)
            if not self.just_in_time:
                packing.pack_panels(self, *panels)
            self.rows(tiles, panels)

        nest.once_or_loop(self.k, self.kc, block)

    def at_block(self, p: Index) -> None:
        """The block of k from p is the one that follows."""
        self.at_k = p
        self.depth = nest.minimum(self.kc, nest.subtract(self.k, p))
        self.steps = nest.ceil_divided(self.depth, self.group)
        self.first, self.last = nest.equal(p, 0), nest.equal(p, (self.blocks - 1) * self.kc)

    def rows(self, tiles: Range, panels: Range) -> None:
        """Tiles of rows over all panels, in blocks of nearly one size: a small one would read all panels for little."""
        first, behind = tiles
        size: Index = self.block_tiles
        if not self.just_in_time:
            count = nest.subtract(behind, first)
            size = nest.ceil_divided(count, nest.maximum(nest.ceil_divided(count, self.block_tiles), 1))

        def block(t: Index) -> None:
            self.block_of_rows(t, nest.minimum(add(t, size), behind), panels)

        nest.once_or_loop(behind, size, block, start=first)

    def block_of_rows(self, t0: Index, t1: Index, panels: Range) -> None:
        """Tiles t0 .. t1 of rows over all panels."""
        self.tiles_beside = nest.subtract(t1, t0)
        packing.pack_lhs(self, t0, t1)

        def tiles_of(s: ir.Value, slot: Index) -> None:
            j, start = self.first_column(s), self.first_row(t0)

            def tile(t: Index) -> None:
                i = self.first_row(t)
                place = nest.subtract(t, t0), nest.subtract(i, start), i, slot, j, self.rows_of(t)
                (_matrix_tile.emit_tile if self.form.tiles else emit_tile)(self, *place)

            nest.once_or_loop(t1, 1, tile, start=t0)

        if not self.just_in_time:

            def packed(s: ir.Value) -> None:
                slot = nest.subtract(s, panels[0])
                if self.asks_for_panels:  # behind the last one comes the first, for the next rows
                    is_last = arith.cmpi(arith.CmpIPredicate.eq, nest.index(add(s, 1)), nest.index(panels[1]))
                    self.following = arith.select(is_last, nest.index(0), nest.index(add(slot, 1)))
                tiles_of(s, slot)

            nest.loop(*panels, 1, packed)
            return

        if self.packs_ahead:
            packing.pack_rhs(self, self.slot_ahead(panels[0]), self.first_column(panels[0]))

            def one(s: ir.Value) -> None:
                following = nest.minimum(add(s, 1), nest.subtract(panels[1], 1))
                self.ahead = self.slot_ahead(add(s, 1)), self.first_column(following)
                tiles_of(s, self.slot_ahead(s))

            nest.loop(*panels, 1, one)
            return

        def some(s0: Index) -> None:
            s1 = nest.minimum(add(s0, self.chunk_panels), panels[1])
            packing.pack_panels(self, s0, s1)
            nest.loop(s0, s1, 1, lambda s: tiles_of(s, nest.subtract(s, s0)))

        nest.once_or_loop(panels[1], self.chunk_panels, some, start=panels[0])

    def slot_ahead(self, s: Index) -> Index:
        """Where panels that are packed ahead stand: in two places by turns."""
        return s % 2 if isinstance(s, int) else arith.remui(s, nest.index(2))

    def first_row(self, t: Index) -> Index:
        """Where a tile begins."""
        row = multiply(t, self.mr)
        if self.short:
            return nest.subtract(row, nest.minimum(t, self.short))
        return nest.minimum(row, self.m - self.mr) if self.repeats_rows and self.m % self.mr else row

    def last_row(self, t: Index) -> Index:
        """Where the tiles before tile t end."""
        return nest.minimum(add(self.first_row(nest.subtract(t, 1)), self.mr), self.m)

    def first_column(self, s: Index) -> Index:
        """Where a panel begins."""
        column = multiply(s, self.nr)
        return nest.minimum(column, self.n - self.nr) if self.repeats_columns and self.n % self.nr else column

    def rows_of(self, t: Index) -> Index:
        """How many rows of a tile count: the first tiles compute the first row of the next as well, and may leave it."""
        if not self.short or self.repeats_rows:
            return self.mr
        return add(nest.minimum(nest.maximum(nest.subtract(t, self.short - 1), 0), 1), self.mr - 1)

    def enter(self, b: Index) -> None:
        """What follows is of element b of the batch."""
        self.at_batch, rest = {"b": b}, b
        for label, size in reversed(self.apart.items()):
            rest, self.at_batch[label] = (0, rest) if label == "0" else nest.divided(rest, size)

    def at(self, labels: str, **where: Index) -> list[Index]:
        """Indices of an operand by the labels of its dimensions."""
        where.update(self.at_batch)
        return [where[x] for x in labels]
