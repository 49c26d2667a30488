"""Matrix products as register tiles over packed operands.

    for each chunk of columns:                        parallel
      for each block of k:
        pack the block's columns of B into panels of NR columns, k outermost
        for each block of rows:
          pack its rows of A
          for each panel, for each MR rows:  C tile = sum over k of A column x B row, all in registers

The tile is MR x NR accumulators in vector registers; one step of k loads NR columns of B and broadcasts MR elements of
A. With few rows, each panel is packed right before it is used, so that it is still in the first-level cache. Edges: a
last panel of fewer columns with masked stores, a last tile of fewer rows; packed panels are filled up with zeros.
The order of additions over k is ascending in blocks that depend on k alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.collect import operations_where
from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.targets.cpu import nest, skinny
from stablehlo_py.targets.cpu.contractions import CONTRACTION
from stablehlo_py.targets.cpu.epilogue import Epilogue, epilogue_of
from stablehlo_py.targets.cpu.nest import Vectors, add, multiply
from stablehlo_py.transforms.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.lower_groups import PARALLEL_LOOP

BLOCK_K = 512  # a panel of it is 64 KiB of f32: with a tile of A it fits the second-level cache many times
# How many products of bytes add up to at most 2**24, so that f32 has every partial sum exactly.
SMALL_INT_BLOCK_K = {"i8": 1024, "ui8": 256}
A_BYTES = 256 << 10  # of the rows of A packed at a time
CHUNK_N = 512  # columns that one step of the parallel loop does at most
SPLIT = 8  # steps of the parallel loop, so that 2, 4 or 8 threads have equal shares
SPLIT_WORK = 1 << 21  # multiplications from which splitting pays


@dataclass(frozen=True)
class CpuEmitContractions(Pass):
    """Replace marked contractions on buffers by loops over packed register tiles."""

    name: ClassVar[str] = "cpu-emit-contractions"
    features: str = ""  # LLVM's feature names; the host's when empty

    def run(self, op: ir.Operation) -> None:
        from stablehlo_py.targets.cpu.codegen import host

        cpu = cpu_of(self.features or host()[1])
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes:
                found = operations_where(function.operation, lambda inner: CONTRACTION in inner.attributes)
                for generic in found:
                    emit(generic, cpu)
                if found and not _has_linalg(function.operation):
                    function.operation.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()


def _has_linalg(function: ir.Operation) -> bool:
    return any(o.operation.name.startswith("linalg.") for o in function.regions[0].blocks[0].operations)


def emit(generic: ir.Operation, cpu: Cpu) -> None:
    """Replace one contraction, and the fill with zeros before it."""
    a, b, c = generic.operands
    labels = [ir.StringAttr(x).value for x in generic.attributes[CONTRACTION]]
    fill, epilogue = _zero_fill_of(c, generic), epilogue_of(generic)
    # where what follows the product stands, all that it reads is there already
    place = generic if epilogue is None else epilogue.op
    with ir.InsertionPoint(place), generic.location:
        Product(a, b, c, labels, cpu, accumulate=fill is None, epilogue=epilogue).emit()
    generic.erase()
    if epilogue is not None:
        epilogue.op.erase()
    if fill is not None:
        fill.erase()
    if not isinstance(c.owner, ir.Block) and not any(True for _ in c.uses):
        c.owner.operation.erase()


def _zero_fill_of(target: ir.Value, generic: ir.Operation) -> ir.Operation | None:
    """The linalg.fill by zero of the same buffer right before the contraction, if nothing reads it in between."""
    block = generic.block
    operations = [o.operation for o in block.operations]
    for op in reversed(operations[: operations.index(generic)]):
        if op.name == "linalg.fill" and op.operands[1] == target:
            return op
        if target in list(op.operands) and op.name not in ("memref.collapse_shape", "memref.expand_shape"):
            return None
    return None


class Product:
    """One product: sizes, blocks, and the loops."""

    # Where the loops around are: the element of the batch, the first k of the block, how many there are, and whether
    # it is the first block or the last.
    at_batch: int | ir.Value
    at_k: int | ir.Value
    depth: int | ir.Value
    first: bool | ir.Value
    last: bool | ir.Value

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
    ) -> None:
        self.a, self.b, self.c, self.epilogue = a, b, c, epilogue
        self.a_labels, self.b_labels, self.c_labels, self.element = labels
        self.accumulate = accumulate
        sizes: dict[str, int] = {}
        for value, text in zip((a, b, c), labels, strict=False):
            sizes.update(zip(text, ir.MemRefType(value.type).shape, strict=True))
        self.batch, self.m, self.n, self.k = (sizes.get(x, 1) for x in "bmnk")
        self.source = ir.MemRefType(a.type).element_type
        self.result = ir.MemRefType(c.type).element_type
        double = isinstance(self.result, ir.F64Type)
        self.work = ir.F64Type.get() if double else ir.F32Type.get()  # what is packed and multiplied
        self.lanes = cpu.lanes(8 if double else 4)
        self.vectors = Vectors(self.work, self.lanes)
        self.width = min(2, -(-self.n // self.lanes))  # vectors in a row of the tile
        self.mr = min(self.m, (8 if cpu.registers >= 32 else 6 if self.width == 2 else 8) * (2 // self.width))
        self.nr = self.width * self.lanes
        self.registers = cpu.registers
        self.is_integer = self.element in SMALL_INT_BLOCK_K
        longest = SMALL_INT_BLOCK_K.get(self.element, BLOCK_K)
        blocks = -(-self.k // longest)
        self.kc = min(self.k, _round_up(-(-self.k // blocks), self.lanes))
        self.blocks = -(-self.k // self.kc)
        rows = max(self.mr, A_BYTES // (self.kc * (8 if double else 4)) // self.mr * self.mr)
        self.mc = self.m if self.m <= rows else rows
        self.few_rows = self.m <= self.mc

    # --- the loops over chunks and blocks

    def emit(self) -> None:
        if skinny.suits(self):
            self._batches(lambda: skinny.emit_batch(self))
            return
        chunk = self._chunk()
        panels = 1 if self.few_rows else -(-min(chunk, self.n) // self.nr)
        depth = _round_up(self.kc, self.lanes)
        pad = 64 // (8 if isinstance(self.work, ir.F64Type) else 4)  # rows apart by a cache line more than 4 KiB
        self.packed_b = nest.scratch([panels, depth, self.nr], self.work)
        if self.a_labels[-1] == "k":
            self.packed_a = nest.scratch([self.mc, depth + pad], self.work)
        else:
            self.packed_a = nest.scratch([-(-self.mc // self.mr), depth, self.mr], self.work)

        def whole() -> None:
            if chunk >= self.n:
                self.columns(0, self.n)
            else:
                nest.loop(
                    0,
                    self.n,
                    chunk,
                    lambda j: self.columns(j, nest.minimum(chunk, nest.subtract(self.n, j))),
                    parallel=PARALLEL_LOOP,
                )

        self._batches(whole)

    def _batches(self, body: Callable[[], None]) -> None:
        """The body once for each element of the batch."""

        def batch(b: int | ir.Value) -> None:
            self.at_batch = b
            body()

        if self.batch == 1:
            batch(0)
        else:
            nest.loop(0, self.batch, 1, lambda b: batch(b), parallel=PARALLEL_LOOP)

    def _chunk(self) -> int:
        """Columns of one chunk: whole panels, and several chunks where the work is worth splitting."""
        wanted = SPLIT if self.batch == 1 and self.m * self.n * self.k >= SPLIT_WORK else 1
        chunks = max(-(-self.n // CHUNK_N), min(wanted, self.n // self.nr), 1)
        return _round_up(-(-self.n // chunks), self.nr)

    def columns(self, j0: int | ir.Value, count: int | ir.Value) -> None:
        """All of C in columns j0 .. j0 + count."""

        def block(p: int | ir.Value) -> None:
            self.at_k = p
            self.depth = nest.minimum(self.kc, nest.subtract(self.k, p))
            self.first, self.last = nest.equal(p, 0), nest.equal(p, (self.blocks - 1) * self.kc)
            if self.few_rows:
                self.pack_a(0, self.m)
                self.panels(j0, count, pack_and_use)
                return
            self.panels(j0, count, lambda slot, j, edge: self.pack_b(slot, j, edge))
            nest.loop(0, self.m, self.mc, lambda i: rows(i))

        def pack_and_use(_: int | ir.Value, j: int | ir.Value, edge: int) -> None:
            self.pack_b(0, j, edge)
            self.rows(0, self.m, 0, j, edge)

        def rows(i: ir.Value) -> None:
            here = nest.minimum(self.mc, nest.subtract(self.m, i))
            self.pack_a(i, here)
            self.panels(j0, count, lambda slot, j, edge: self.rows(i, here, slot, j, edge))

        if self.blocks == 1:
            block(0)
        else:
            nest.loop(0, self.k, self.kc, lambda p: block(p))

    def panels(self, j0: int | ir.Value, count: int | ir.Value, body) -> None:  # type: ignore[no-untyped-def]
        """body(slot, first column, columns of an edge panel or 0) for each panel of a chunk."""
        edge = self.n % self.nr
        if isinstance(count, int):
            full = count // self.nr
            if full == 1:
                body(0, j0, 0)
            elif full:
                nest.loop(0, full, 1, lambda s: body(s, add(j0, multiply(s, self.nr)), 0))
            if edge and count % self.nr:
                body(full, add(j0, full * self.nr), edge)
            return
        full_panels = arith.divsi(nest.index(count), nest.index(self.nr))
        nest.loop(0, full_panels, 1, lambda s: body(s, add(j0, multiply(s, self.nr)), 0))
        if edge:
            done = multiply(full_panels, self.nr)
            remains = arith.cmpi(arith.CmpIPredicate.slt, nest.index(done), nest.index(count))
            nest.when(remains, lambda: body(full_panels, add(j0, done), edge))

    def rows(
        self, i0: int | ir.Value, count: int | ir.Value, slot: int | ir.Value, j: int | ir.Value, edge: int
    ) -> None:
        """All tiles of one panel in rows i0 .. i0 + count of the packed block of A."""
        rest = self.m % self.mr
        if isinstance(count, int):
            full = count // self.mr
            if full == 1:
                self.tile(i0, 0, 0, self.mr, slot, j, edge)
            elif full:
                nest.loop(0, full, 1, lambda t: self.tile(i0, t, multiply(t, self.mr), self.mr, slot, j, edge))
            if rest:
                self.tile(i0, full, full * self.mr, rest, slot, j, edge)
            return
        full_tiles = arith.divsi(nest.index(count), nest.index(self.mr))
        nest.loop(0, full_tiles, 1, lambda t: self.tile(i0, t, multiply(t, self.mr), self.mr, slot, j, edge))
        if rest:
            done = multiply(full_tiles, self.mr)
            remains = arith.cmpi(arith.CmpIPredicate.slt, nest.index(done), nest.index(count))
            nest.when(remains, lambda: self.tile(i0, full_tiles, done, rest, slot, j, edge))

    # --- packing

    def at(self, labels: str, **where: int | ir.Value) -> list[int | ir.Value]:
        """Indices of an operand by the labels of its dimensions."""
        where["b"] = self.at_batch
        return [where[x] for x in labels]

    def pack_b(self, slot: int | ir.Value, j: int | ir.Value, edge: int) -> None:
        """One panel: rows of NR columns, one for each k; columns past the edge are zeros."""
        vectors = -(-edge // self.lanes) if edge else self.width
        if self.b_labels[-1] == "n":

            def row(k: ir.Value) -> None:
                for w in range(vectors):
                    where = self.at(self.b_labels, k=add(k, self.at_k), n=add(j, w * self.lanes))
                    value = self.fetch(self.b, where, _lanes_of(edge, w, self.lanes))
                    self.vectors.store(value, self.packed_b, [slot, k, w * self.lanes])

            nest.loop(0, self.depth, 1, row)
            return

        def square(k: ir.Value) -> None:
            inside = self.depth if isinstance(self.depth, ir.Value) else None
            count = (
                nest.minimum(self.lanes, nest.subtract(self.depth, k))
                if inside is not None or self.kc % self.lanes
                else 0
            )
            for w in range(vectors):
                taken = _lanes_of(edge, w, self.lanes) or self.lanes
                rows = [
                    self.fetch(self.b, self.at(self.b_labels, k=add(k, self.at_k), n=add(j, w * self.lanes + r)), count)
                    if r < taken
                    else self.vectors.zero()
                    for r in range(self.lanes)
                ]
                for r, column in enumerate(nest.transpose(rows, self.vectors)):
                    self.vectors.store(column, self.packed_b, [slot, add(k, r), w * self.lanes])

        nest.loop(0, self.depth, self.lanes, square)

    def pack_a(self, i0: int | ir.Value, count: int | ir.Value) -> None:
        """Rows of a block of A, or tiles of MR rows where m is contiguous in memory."""
        if self.a_labels[-1] == "k":
            exact = isinstance(self.depth, int) and self.depth % self.lanes == 0

            def row(i: ir.Value) -> None:
                def part(k: ir.Value) -> None:
                    left = 0 if exact else nest.minimum(self.lanes, nest.subtract(self.depth, k))
                    where = self.at(self.a_labels, m=add(i, i0), k=add(k, self.at_k))
                    self.vectors.store(self.fetch(self.a, where, left), self.packed_a, [i, k])

                nest.loop(0, self.depth, self.lanes, part)

            nest.loop(0, count, 1, row)
            return

        def tile(t: ir.Value) -> None:
            start = multiply(t, self.mr)
            height = nest.minimum(self.mr, nest.subtract(count, start))

            def column(k: ir.Value) -> None:
                def element(r: ir.Value) -> None:
                    where = self.at(self.a_labels, m=add(add(start, r), i0), k=add(k, self.at_k))
                    nest.store(self.convert(nest.load(self.a, where)), self.packed_a, [t, k, r])

                nest.loop(0, height, 1, element)

            nest.loop(0, self.depth, 1, column)

        tiles = arith.ceildivsi(nest.index(count), nest.index(self.mr))
        nest.loop(0, tiles, 1, tile)

    def fetch(self, source: ir.Value, where: list[int | ir.Value], count: int | ir.Value) -> ir.Value:
        """A vector of an operand in working form; `count` lanes of it, 0 for all."""
        stored = Vectors(self.source, self.lanes)
        whole = isinstance(count, int) and count == 0
        return self.convert(stored.load(source, where) if whole else stored.masked_load(source, where, count))

    def convert(self, value: ir.Value) -> ir.Value:
        """An operand's element or vector in the type that is multiplied."""
        if self.source == self.work:
            return value
        many = isinstance(value.type, ir.VectorType)

        def like(element: ir.Type) -> ir.Type:
            return ir.VectorType.get([self.lanes], element) if many else element

        if self.element in ("i8", "ui8"):
            return (arith.sitofp if self.element == "i8" else arith.uitofp)(like(self.work), value)
        if self.element == "f16":
            return arith.extf(like(self.work), value)
        i32 = ir.IntegerType.get_signless(32)
        bits = arith.extui(like(i32), value)  # bf16, stored as its bits: the upper half of an f32
        sixteen = arith.constant(i32, 16)
        shift = vector.broadcast(like(i32), sixteen) if many else sixteen
        return arith.bitcast(like(self.work), arith.shli(bits, shift))

    # --- the register tile

    def tile(
        self,
        i0: int | ir.Value,
        t: int | ir.Value,
        i: int | ir.Value,
        height: int,
        slot: int | ir.Value,
        j: int | ir.Value,
        edge: int,
    ) -> None:
        """`height` rows of C from row i0 + i, the columns of one panel from column j."""
        width = -(-edge // self.lanes) if edge else self.width
        places = [(r, w) for r in range(height) for w in range(width)]
        integer = self.is_integer
        begin = [self.vectors.zero() if integer else self.start(i0, i, r, j, w, edge) for r, w in places]

        def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
            row = [self.vectors.load(self.packed_b, [slot, k, w * self.lanes]) for w in range(width)]
            results = []
            for r in range(height):
                where = [add(i, r), k] if self.a_labels[-1] == "k" else [t, k, r]
                factor = self.vectors.splat(nest.load(self.packed_a, where))
                for w in range(width):
                    results.append(vector.fma(factor, row[w], sums[r * width + w]))
            return results

        sums = nest.loop(0, self.depth, 1, step, begin)
        if integer:
            whole = [arith.fptosi(Vectors(self.result, self.lanes).type, total) for total in sums]
            sums = [
                arith.addi(total, self.start(i0, i, r, j, w, edge)) for (r, w), total in zip(places, whole, strict=True)
            ]

        def put(target: ir.Value, element: ir.Type, values: Sequence[ir.Value]) -> None:
            stored = Vectors(element, self.lanes)
            for (r, w), value in zip(places, values, strict=True):
                lanes = _lanes_of(edge, w, self.lanes)
                where = self.at(self.c_labels, m=add(add(i0, i), r), n=add(j, w * self.lanes))
                if lanes:
                    stored.masked_store(value, target, where, lanes)
                else:
                    stored.store(value, target, where)

        after = self.epilogue
        if after is None:
            put(self.c, self.result, sums)
        else:
            nest.when(
                self.last,
                lambda: put(after.target, after.element, [after.apply(total, self.lanes) for total in sums]),
                lambda: put(self.c, self.result, sums),
            )

    def start(self, i0: int | ir.Value, i: int | ir.Value, r: int, j: int | ir.Value, w: int, edge: int) -> ir.Value:
        """What a tile's vector starts from: zero in the first block of k, what is in C after it."""
        stored = Vectors(self.result, self.lanes)
        if self.first is True and not self.accumulate:
            return stored.zero()
        where = self.at(self.c_labels, m=add(add(i0, i), r), n=add(j, w * self.lanes))
        lanes = _lanes_of(edge, w, self.lanes)
        before = stored.masked_load(self.c, where, lanes) if lanes else stored.load(self.c, where)
        if self.accumulate or self.first is False:
            return before
        return arith.select(self.first, stored.zero(), before)


def _lanes_of(edge: int, w: int, lanes: int) -> int:
    """How many lanes of vector `w` an edge panel of `edge` columns has; 0 means all."""
    return max(edge - w * lanes, 0) if edge and edge - w * lanes < lanes else 0


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
