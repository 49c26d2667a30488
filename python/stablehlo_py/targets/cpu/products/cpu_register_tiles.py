"""Sums of products (convolutions, what is left of dot_general) as loops around a tile of accumulators in registers.

for other dims of rhs: for n0: pack a panel of rhs; for other dims of lhs: for m0:
    acc[r][v] = out[m0 + r, n0 + v];  for k: acc[r][v] += broadcast(lhs[m0 + r, k]) * panel[k, v];  out = acc

m is a parallel loop that only lhs has, n the loop along which rhs and out are contiguous, k all summed loops: for a
convolution the taps and the input features. The order of the additions is that of k, whatever the shape.

Products of bytes are added up as f32, which is exact below 2^24, and each such block is added to out as i32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from stablehlo_py.core.collect import SUM, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.rewire import like
from stablehlo_py.machine.cpu import cpu_of
from stablehlo_py.mlir import arith, ir, memref, vector
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import first_lanes, store_lanes
from stablehlo_py.targets.cpu.features import features_of

LEAST_WORK = 4096  # products below which the plain loops are as good
CONTRACTION = "kernel.contraction"  # marks what an emitter of its own takes
PANEL_REUSE = 3  # tiles that must read a panel for its packing to pay
# How many products of two bytes add up to at most 2**24, so that f32 has every partial sum exactly.
BYTES_IN_BLOCK = {"arith.extsi": 1024, "arith.extui": 256}
WIDENED = 1 << 22  # elements of lhs up to which it is converted as a whole


class CpuRegisterTiles(Pass):
    """Turn linalg.generic ops on buffers that are sums of products of floats into register tiles.

    bytes: of a vector register; 0 for what features_of says.
    """

    name: ClassVar[str] = "cpu-register-tiles"
    only_with: ClassVar[tuple[str, ...]] = (SUM,)
    is_trusted: ClassVar[bool] = True
    bytes: int = 0

    def run(self, op: ir.Operation) -> None:
        size = self.bytes or cpu_of(features_of(op)).vector_bytes
        for product in [p for g in operations_named(op, "linalg.generic") if (p := match_product(g)) is not None]:
            with ir.InsertionPoint(product.op), product.op.location:
                _Emitter(product, size).emit()
            product.op.erase()


# --- what a sum of products is -----------------------------------------------------------------------------------------


@record
class Operand:
    """A buffer, its index expressions over the loops, and the ops that make its element a factor."""

    buffer: ir.Value
    places: list[ir.AffineExpr]
    argument: ir.Value
    chain: list[ir.Operation]
    factor: ir.Value

    def loops(self) -> set[int]:
        return {d for place in self.places for d in _dims_of(place)}


@record
class Product:
    """out[parallel] += lhs * rhs over the summed loops; n: the last loop of rhs and out, m: a loop of lhs and out."""

    op: ir.Operation
    lhs: Operand
    rhs: Operand
    out: Operand
    extents: list[int]
    parallel: list[int]
    summed: list[int]
    m: int
    n: int
    block: int = 0  # of bytes: how many products f32 adds up exactly; else 0

    @property
    def element(self) -> ir.Type:
        """What is multiplied and added up in registers."""
        return ir.F32Type.get() if self.block else ir.MemRefType(self.out.buffer.type).element_type

    @property
    def summed_at_once(self) -> int:
        """How many of the last summed loops are added up in registers before their sum goes to out."""
        if not self.block:
            return len(self.summed)
        count = 0
        while count < len(self.summed) and self._products(count + 1) <= self.block:
            count += 1
        return count

    def _products(self, count: int) -> int:
        return math.prod(self.extents[d] for d in self.summed[len(self.summed) - count :])


def match_product(op: ir.Operation) -> Product | None:
    """The sum of products that a linalg.generic is, if registers help it; None for anything else."""
    buffers = list(op.operands)
    iterators = ["parallel" in str(i) for i in ir.ArrayAttr(op.attributes["iterator_types"])]
    if len(buffers) != 3 or len(op.results) or all(iterators) or CONTRACTION in op.attributes:
        return None
    if not all(isinstance(b.type, ir.MemRefType) and ir.MemRefType(b.type).has_static_shape for b in buffers):
        return None
    maps = [list(ir.AffineMapAttr(a).value.results) for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
    factors = _factors(op.regions[0].blocks[0])
    extents = _extents(len(iterators), buffers, maps)
    out_type = ir.MemRefType(buffers[2].type).element_type
    block = 0 if factors is None else _block_of_bytes(buffers, factors)
    floats = out_type in (ir.F32Type.get(), ir.F64Type.get())
    if factors is None or extents is None or not (floats or block):
        return None
    arguments = list(op.regions[0].blocks[0].arguments)
    first, second = (Operand(b, p, a, *f) for b, p, a, f in zip(buffers, maps, arguments, factors, strict=False))
    out = Operand(buffers[2], maps[2], arguments[2], [], arguments[2])
    parallel = [d for d, p in enumerate(iterators) if p]
    for lhs, rhs in ((first, second), (second, first)):
        found = _loops_of_tile(lhs, rhs, out, extents, parallel)
        if found is not None:
            summed = [d for d, p in enumerate(iterators) if not p]
            made = Product(op, lhs, rhs, out, extents, parallel, summed, *found, block=block)
            return made if made.summed_at_once else None
    return None


def _block_of_bytes(buffers: list[ir.Value], factors: tuple[tuple[list[ir.Operation], ir.Value], ...]) -> int:
    """How many products f32 adds up exactly where both factors are bytes made i32; 0 for other factors."""
    i8, i32 = (ir.IntegerType.get_signless(bits) for bits in (8, 32))
    chains = [chain for chain, _ in factors]
    if any(len(chain) != 1 or chain[0].name not in BYTES_IN_BLOCK for chain in chains):
        return 0
    if [ir.MemRefType(b.type).element_type for b in buffers] != [i8, i8, i32]:
        return 0
    return min(BYTES_IN_BLOCK[chain[0].name] for chain in chains)


def _factors(block: ir.Block) -> tuple[tuple[list[ir.Operation], ir.Value], ...] | None:
    """For each of the two inputs: the ops between its element and the product. None if the body is another one."""
    operations = [o.operation for o in block.operations]
    if len(operations) < 3:
        return None
    *chain, product, total, end = operations
    sum_of_products = (product.name, total.name) in (("arith.mulf", "arith.addf"), ("arith.muli", "arith.addi"))
    if not sum_of_products or end.operands[0] != total.results[0]:
        return None
    acc = block.arguments[2]
    if sorted([total.operands[0] == acc, total.operands[1] == acc]) != [False, True]:
        return None
    if product.results[0] not in list(total.operands) or any(
        len(o.regions) or not o.name.startswith("arith.") for o in chain
    ):
        return None
    owner = {block.arguments[0]: 0, block.arguments[1]: 1}
    chains: tuple[list[ir.Operation], list[ir.Operation]] = ([], [])
    for op in chain:
        sides = {owner[v] for v in op.operands if v in owner}
        if len(sides) != 1 or acc in list(op.operands):
            return None
        side = sides.pop()
        owner[op.results[0]] = side
        chains[side].append(op)
    sides = [owner.get(v) for v in product.operands]
    if sorted(sides, key=str) != [0, 1]:
        return None
    return tuple((chains[side], product.operands[sides.index(side)]) for side in (0, 1))


def _extents(count: int, buffers: Sequence[ir.Value], maps: Sequence[Sequence[ir.AffineExpr]]) -> list[int] | None:
    extents = [0] * count
    for buffer, places in zip(buffers, maps, strict=True):
        for size, place in zip(ir.MemRefType(buffer.type).shape, places, strict=True):
            if isinstance(place, ir.AffineDimExpr):
                extents[place.position] = size
    return extents if all(extents) else None


def _loops_of_tile(
    lhs: Operand, rhs: Operand, out: Operand, extents: list[int], parallel: list[int]
) -> tuple[int, int] | None:
    """(m, n) if rhs and out are contiguous along one loop that lhs does not have."""
    if math.prod(extents) < LEAST_WORK or not rhs.places or not out.places:
        return None
    if any(ir.MemRefType(o.buffer.type).layout != _identity(len(o.places)) for o in (rhs, out)):
        return None
    if not all(isinstance(place, ir.AffineDimExpr) for place in out.places):
        return None
    last, n = rhs.places[-1], out.places[-1].position
    if not isinstance(last, ir.AffineDimExpr) or last.position != n or n not in parallel or n in lhs.loops():
        return None
    if any(n in _dims_of(place) for place in rhs.places[:-1]) or extents[n] < 4:
        return None
    rows = [d for d in parallel if d in lhs.loops() and d not in rhs.loops() and extents[d] > 1]
    if not rows:
        return None
    return max(rows, key=lambda d: (min(extents[d], 16), d)), n


def _identity(rank: int) -> ir.Attribute:
    return ir.AffineMapAttr.get(ir.AffineMap.get_identity(rank))


def _dims_of(place: ir.AffineExpr) -> set[int]:
    if isinstance(place, ir.AffineDimExpr):
        return {place.position}
    if isinstance(place, ir.AffineConstantExpr):
        return set()
    binary = ir.AffineBinaryExpr(place)
    return _dims_of(binary.lhs) | _dims_of(binary.rhs)


# --- the loops ---------------------------------------------------------------------------------------------------------

Loops = dict[int, ir.Value]  # the index of each loop around


@record
class Tile:
    """rows x vectors accumulators at (m0, n0); `last`: elements of the last vector, if not all."""

    m0: ir.Value
    n0: ir.Value
    rows: int
    vectors: int
    last: int


class _Emitter:
    def __init__(self, product: Product, register_bytes: int) -> None:
        self.of = product
        self.lanes = register_bytes // (8 if product.element == ir.F64Type.get() else 4)
        registers = 32 if register_bytes == 64 else 16
        columns = -(-product.extents[product.n] // self.lanes)
        self.rows, self.vectors = _tile_shape(product.extents[product.m], columns, registers)
        self.panel: ir.Value | None = None
        self.widened: ir.Value | None = None

    def emit(self) -> None:
        of = self.of
        if of.block:
            self.widened = self._widen(of.lhs)
        right = [d for d in of.parallel if d in of.rhs.loops() and d != of.n]
        left = [d for d in of.parallel if d not in right and d not in (of.m, of.n)]
        tiles = math.prod(of.extents[d] for d in left) * -(-of.extents[of.m] // self.rows)
        if tiles >= PANEL_REUSE or of.rhs.chain:
            shape = [*(of.extents[d] for d in of.summed), self.vectors * self.lanes]
            ty = ir.MemRefType.get(shape, of.element, loc=of.op.location)
            self.panel = memref.alloc(ty, [], [], alignment=64)

        def columns(loops: Loops) -> None:
            self._steps(of.n, self.vectors * self.lanes, loops, lambda n0, size: self._columns(left, loops, n0, size))

        self._nest(right, {}, columns)

    def _columns(self, left: list[int], loops: Loops, n0: ir.Value, size: int) -> None:
        """All tiles of `size` columns from n0."""
        vectors, last = -(-size // self.lanes), size % self.lanes
        if self.panel is not None:
            self._nest(self.of.summed, loops, lambda inner: self._pack(inner, Tile(n0, n0, 0, vectors, last)))

        def rows(inner: Loops) -> None:
            self._steps(
                self.of.m, self.rows, inner, lambda m0, count: self._tile(inner, Tile(m0, n0, count, vectors, last))
            )

        self._nest(left, loops, rows)

    def _steps(self, loop: int, step: int, loops: Loops, body: Callable[[ir.Value, int], None]) -> None:
        """body(start, size) for each whole step of a loop, then for what is left."""
        extent = self.of.extents[loop]
        whole = extent // step * step
        if whole == step:
            body(_index(0), step)
        elif whole:
            nest.loop(0, whole, step, lambda start: body(start, step))
        if whole != extent:
            body(_index(whole), extent - whole)

    def _nest(self, dims: Sequence[int], loops: Loops, body: Callable[[Loops], None]) -> None:
        """Loops over dims around the body; those of one step are not loops."""
        self._carrying(dims, loops, [], lambda inner, _values: (body(inner), [])[1])

    def _carrying(
        self,
        dims: Sequence[int],
        loops: Loops,
        values: list[ir.Value],
        body: Callable[[Loops, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        if not dims:
            return body(loops, values)
        d, *rest = dims
        if self.of.extents[d] == 1:
            return self._carrying(rest, {**loops, d: _index(0)}, values, body)

        def step(at: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            return self._carrying(rest, {**loops, d: at}, list(carried), body)

        return nest.loop(0, self.of.extents[d], 1, step, values)

    def _pack(self, loops: Loops, tile: Tile) -> None:
        """One row of the panel: the factors of rhs at the summed loops and all columns of the tile."""
        at = [loops[d] for d in self.of.summed]
        for v in range(tile.vectors):
            vector.store(self._right(loops, tile, v), self.panel, [*at, _index(v * self.lanes)])

    def _tile(self, loops: Loops, tile: Tile) -> None:
        of, lanes = self.of, self.lanes

        def place(r: int, v: int) -> list[ir.Value]:
            return self._places(of.out, {**loops, of.m: _plus(tile.m0, r), of.n: _plus(tile.n0, v * lanes)})

        places = [[place(r, v) for v in range(tile.vectors)] for r in range(tile.rows)]
        start = [
            self._load(of.out.buffer, places[r][v], tile, v) for r in range(tile.rows) for v in range(tile.vectors)
        ]
        at_once = len(of.summed) - of.summed_at_once

        def step(inner: Loops, accumulators: list[ir.Value]) -> list[ir.Value]:
            if self.panel is None:
                columns = [self._right(inner, tile, v) for v in range(tile.vectors)]
            else:
                at = [inner[d] for d in of.summed]
                ty = ir.VectorType.get([lanes], of.element)
                columns = [vector.load(ty, self.panel, [*at, _index(v * lanes)]) for v in range(tile.vectors)]
            new = []
            for r in range(tile.rows):
                row = self._left({**inner, of.m: _plus(tile.m0, r)})
                for v in range(tile.vectors):
                    new.append(vector.fma(row, columns[v], accumulators[r * tile.vectors + v]))
            return new

        def block(inner: Loops, totals: list[ir.Value]) -> list[ir.Value]:
            if not of.block:
                return self._carrying(of.summed, inner, totals, step)
            zero = self._splat(arith.constant(of.element, 0.0))
            sums = self._carrying(of.summed[at_once:], inner, [zero] * len(totals), step)
            ty = totals[0].type
            return [arith.addi(total, arith.fptosi(ty, x)) for total, x in zip(totals, sums, strict=True)]

        results = self._carrying(of.summed[:at_once], loops, start, block)
        for r in range(tile.rows):
            for v in range(tile.vectors):
                self._store(results[r * tile.vectors + v], places[r][v], tile, v)

    # --- elements

    def _left(self, loops: Loops) -> ir.Value:
        """A factor of lhs, in every lane."""
        operand = self.of.lhs
        if self.widened is not None:
            element = memref.load(self.widened, self._places(operand, loops))
            return vector.broadcast(ir.VectorType.get([self.lanes], self.of.element), element)
        element = memref.load(operand.buffer, self._places(operand, loops))
        values = {operand.argument: element}
        for op in operand.chain:
            clone = op.clone()
            for i, value in enumerate(op.operands):
                if value in values:
                    clone.operands[i] = values[value]
            values[op.results[0]] = clone.results[0]
        factor = values[operand.factor]
        if self.of.block:
            factor = arith.sitofp(self.of.element, factor)
        return vector.broadcast(ir.VectorType.get([self.lanes], self.of.element), factor)

    def _widen(self, operand: Operand) -> ir.Value | None:
        """The buffer of bytes as f32, so that the innermost loop converts nothing; None where it is large or strided."""
        ty = ir.MemRefType(operand.buffer.type)
        count = math.prod(ty.shape)
        if ty.layout != _identity(ty.rank) or count > WIDENED or ty.rank == 0:
            return None
        wide = nest.scratch(ty.shape, self.of.element)
        source, target = (_flat(buffer, count) for buffer in (operand.buffer, wide))
        convert = operand.chain[0].name

        def some(at: ir.Value, mask: ir.Value | None) -> None:
            bytes_ = ir.VectorType.get([self.lanes], ty.element_type)
            if mask is None:
                read = vector.load(bytes_, source, [at])
            else:
                zero = self._splat(arith.constant(ty.element_type, 0))
                read = vector.maskedload(bytes_, source, [at], mask, zero)
            words = ir.VectorType.get([self.lanes], ir.IntegerType.get_signless(32))
            number = ir.Operation.create(convert, [words], [read]).results[0]
            floats = arith.sitofp(ir.VectorType.get([self.lanes], self.of.element), number)
            if mask is None:
                vector.store(floats, target, [at])
            else:
                store_lanes(floats, target, [at], mask)

        whole = count // self.lanes * self.lanes
        if whole:
            nest.loop(0, whole, self.lanes, lambda at: some(at, None))
        if whole != count:
            some(_index(whole), first_lanes(self.lanes, count - whole))
        return wide

    def _right(self, loops: Loops, tile: Tile, v: int) -> ir.Value:
        """Factors of rhs: vector v of the tile's columns."""
        operand = self.of.rhs
        places = self._places(operand, {**loops, self.of.n: _plus(tile.n0, v * self.lanes)})
        values = {operand.argument: self._load(operand.buffer, places, tile, v)}
        for op in operand.chain:
            operands = [values[x] if x in values else self._splat(x) for x in op.operands]
            ty = ir.VectorType.get([self.lanes], op.results[0].type)
            values[op.results[0]] = like(op, operands, ty).results[0]
        factor = values[operand.factor]
        return arith.sitofp(ir.VectorType.get([self.lanes], self.of.element), factor) if self.of.block else factor

    def _splat(self, value: ir.Value) -> ir.Value:
        return vector.broadcast(ir.VectorType.get([self.lanes], value.type), value)

    def _load(self, buffer: ir.Value, places: list[ir.Value], tile: Tile, v: int) -> ir.Value:
        ty = ir.VectorType.get([self.lanes], ir.MemRefType(buffer.type).element_type)
        if not self._is_cut(tile, v):
            return vector.load(ty, buffer, places)
        kind = ir.MemRefType(buffer.type).element_type
        is_float = isinstance(kind, ir.F16Type | ir.BF16Type | ir.F32Type | ir.F64Type)
        zero = self._splat(arith.constant(kind, 0.0 if is_float else 0))
        return vector.maskedload(ty, buffer, places, self._mask(tile), zero)

    def _store(self, value: ir.Value, places: list[ir.Value], tile: Tile, v: int) -> None:
        if self._is_cut(tile, v):
            store_lanes(value, self.of.out.buffer, places, self._mask(tile))
        else:
            vector.store(value, self.of.out.buffer, places)

    def _is_cut(self, tile: Tile, v: int) -> bool:
        return bool(tile.last) and v == tile.vectors - 1

    def _mask(self, tile: Tile) -> ir.Value:
        return first_lanes(self.lanes, tile.last)

    def _places(self, operand: Operand, loops: Loops) -> list[ir.Value]:
        return [_value_of(place, loops) for place in operand.places]


def _tile_shape(rows: int, columns: int, registers: int) -> tuple[int, int]:
    """(rows, vectors) of the tile for `columns` vectors in all: equal shares of the rows, and of the columns if it can.

    Beside rows * vectors accumulators, a register for each vector of rhs and one for lhs.
    """
    most = 8 if registers == 32 else 6
    height = -(-rows // -(-rows // most))
    width = max(1, min(4, columns, (registers - 1) // (height + 1)))
    return height, next((v for v in range(width, width // 2, -1) if columns % v == 0), width)


def _flat(buffer: ir.Value, count: int) -> ir.Value:
    """A contiguous buffer as one dimension."""
    ty = ir.MemRefType(buffer.type)
    if ty.rank == 1:
        return buffer
    groups = [list(range(ty.rank))]
    result = ir.MemRefType.get([count], ty.element_type, loc=ir.Location.current)
    return memref.collapse_shape(result, buffer, groups)


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)


def _plus(value: ir.Value, offset: int) -> ir.Value:
    return value if offset == 0 else arith.addi(value, _index(offset))


def _value_of(place: ir.AffineExpr, loops: Loops) -> ir.Value:
    if isinstance(place, ir.AffineDimExpr):
        return loops[place.position]
    if isinstance(place, ir.AffineConstantExpr):
        return _index(place.value)
    binary = ir.AffineBinaryExpr(place)
    left, right = _value_of(binary.lhs, loops), _value_of(binary.rhs, loops)
    return arith.muli(left, right) if isinstance(place, ir.AffineMulExpr) else arith.addi(left, right)
