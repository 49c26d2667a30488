"""Contractions: products of matrices, batched and of any rank, by tiles in shared memory.

block (batch, m0, n0):  acc[4][4] per thread
    for k0 in 0, 16, ..:   shared A[64][16] <- lhs, shared B[16][64] <- rhs   (all threads, then a barrier)
        for k in 0..15:    acc[i][j] = body(A[row i][k], B[k][column j], acc[i][j])
    out <- acc

The body may be any; each element's steps are taken in the order of k, as in the plain loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.mlir import arith, gpu, ir, memref, scf
from stablehlo_py.records import record
from stablehlo_py.targets.gpu.launch import Former, Scope, constant
from stablehlo_py.targets.gpu.nest import Nest, delinearize, less, when

SIDE = 16  # a block is SIDE x SIDE threads
DEPTH = 16  # steps of k per tile
EACH = 4  # at most EACH x EACH outputs a thread: 16 accumulators, 8 reads from shared memory for 16 products


@record
class Group:
    """Loops that are walked as one, the last the fastest."""

    dims: tuple[int, ...]
    extents: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.extents)


@record
class Contraction:
    """The loops of a contraction by their part in it."""

    nest: Nest
    batch: Group
    rows: Group  # of lhs and out
    columns: Group  # of rhs and out
    depth: Group  # summed over

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of a block's tile: smaller where the matrix is."""
        rows, columns = (SIDE * min(EACH, -(-size // SIDE)) for size in (self.rows.size, self.columns.size))
        return rows, columns


def match_contraction(nest: Nest) -> Contraction | None:
    """The contraction that a loop nest is; None for anything else."""
    if nest.inputs != 2 or nest.outputs != 1 or not nest.reduction or not all(nest.reads):
        return None
    if not all(isinstance(v.type, ir.MemRefType) for v in nest.operands):
        return None
    used = []
    for affine in nest.maps:
        if not all(isinstance(e, ir.AffineDimExpr) for e in affine.results):
            return None
        used.append([e.position for e in affine.results])
    lhs, rhs, out = used
    if any(len(set(dims)) != len(dims) for dims in used):
        return None

    def group(dims: Sequence[int]) -> Group:
        return Group(tuple(dims), tuple(nest.extents[d] for d in dims))

    batch = [d for d in out if d in lhs and d in rhs]
    rows = [d for d in out if d in lhs and d not in rhs]
    columns = [d for d in out if d in rhs and d not in lhs]
    depth = [d for d in lhs if d in rhs and d not in out]
    if len(batch) + len(rows) + len(columns) + len(depth) != len(nest.extents) or set(depth) != set(nest.reduction):
        return None
    # the plain loop goes through the reductions in the order of the nest
    return Contraction(nest, group(batch), group(rows), group(columns), group(sorted(depth)))


def emit_contraction(former: Former, nest: Nest) -> bool:
    """A kernel for a contraction that fills at least one tile; False for others."""
    it = match_contraction(nest)
    if it is None or min(it.rows.size, it.columns.size) < SIDE or it.depth.size == 0 or it.batch.size == 0:
        return False
    height, width = it.tile
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    types = [ir.MemRefType(v.type).element_type for v in nest.operands]
    # one column of padding: rows of A start in different banks
    shared = [
        ir.MemRefType.get([height, DEPTH + 1], types[0], memory_space=space),
        ir.MemRefType.get([DEPTH, width], types[1], memory_space=space),
    ]
    blocks = it.batch.size * -(-it.rows.size // height) * -(-it.columns.size // width)
    former.launch(
        [nest.op],
        "contraction",
        grid=(blocks, 1, 1),
        block=(SIDE * SIDE, 1, 1),
        body=lambda scope: _Tile(it, scope).build(),
        shared=shared,
        extra=nest.extra,
    )
    return True


class Block:
    """Where a block of threads stands in a contraction, and how its positions become loop indices."""

    def __init__(self, it: Contraction, scope: Scope, height: int, width: int) -> None:
        self.it, self.scope, self.nest = it, scope, it.nest
        self.height, self.width = height, width
        blocks = [it.batch.size, -(-it.rows.size // height), -(-it.columns.size // width)]
        batch, row, column = delinearize(scope.block, blocks)
        self.batch = dict(zip(it.batch.dims, delinearize(batch, it.batch.extents), strict=True))
        self.row0 = arith.muli(row, constant(height))
        self.column0 = arith.muli(column, constant(width))

    def loops(self, *parts: tuple[Group, ir.Value]) -> list[ir.Value | None]:
        """The indices of all loops where groups stand at the given linear positions, held inside their extents."""
        found: list[ir.Value | None] = [None] * len(self.nest.extents)
        for dim, index in self.batch.items():
            found[dim] = index
        for group, linear in parts:
            inside = arith.minui(linear, constant(group.size - 1))
            for dim, index in zip(group.dims, delinearize(inside, group.extents), strict=True):
                found[dim] = index
        return found

    def output(self, row: ir.Value, column: ir.Value) -> list[ir.Value | None]:
        return self.loops((self.it.rows, row), (self.it.columns, column))

    def store(self, row: ir.Value, column: ir.Value, value: ir.Value) -> None:
        """Store an element of the output if it is inside."""
        inside = arith.andi(less(row, self.it.rows.size), less(column, self.it.columns.size))
        when(inside, lambda: self.nest.store(self.scope, 2, self.output(row, column), value))

    def walks_depth(self, operand: int) -> bool:
        """Whether the summed dimension lies innermost in an operand's memory."""
        results = list(self.nest.maps[operand].results)
        return results[-1].position in self.it.depth.dims


class _Tile(Block):
    """The body of the kernel."""

    def __init__(self, it: Contraction, scope: Scope) -> None:
        super().__init__(it, scope, *it.tile)
        self.y, self.x = delinearize(scope.thread, [SIDE, SIDE])

    def build(self) -> None:
        outputs = [(r, c) for r in range(self.height // SIDE) for c in range(self.width // SIDE)]
        steps, rest = divmod(self.it.depth.size, DEPTH)
        sums = [self.nest.load(self.scope, 2, self.output(self.at_row(r), self.at_column(c))) for r, c in outputs]
        if steps:
            loop = scf.ForOp(constant(0), constant(steps), constant(1), sums)
            with ir.InsertionPoint(loop.body):
                k0 = arith.muli(loop.induction_variable, constant(DEPTH))
                scf.yield_(self.tile(k0, DEPTH, outputs, list(loop.inner_iter_args)))
            sums = list(loop.results_)
        if rest:
            sums = self.tile(constant(steps * DEPTH), rest, outputs, sums)
        for (r, c), value in zip(outputs, sums, strict=True):
            self.store(self.at_row(r), self.at_column(c), value)

    def tile(
        self, k0: ir.Value, depth: int, outputs: Sequence[tuple[int, int]], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Fetch both operands' tiles, then `depth` steps of every output."""
        gpu.barrier()  # the tiles before these may still be read
        self.fetch(0, self.it.rows, self.row0, self.height, k0)
        self.fetch(1, self.it.columns, self.column0, self.width, k0)
        gpu.barrier()
        loop = scf.ForOp(constant(0), constant(depth), constant(1), sums)
        with ir.InsertionPoint(loop.body):
            k, tile_a, tile_b = loop.induction_variable, *self.scope.shared
            lhs = [memref.load(tile_a, [_plus(self.y, r * SIDE), k]) for r in range(self.height // SIDE)]
            rhs = [memref.load(tile_b, [k, _plus(self.x, c * SIDE)]) for c in range(self.width // SIDE)]
            loops: list[ir.Value | None] = [None] * len(self.nest.extents)
            after = [
                self.nest.body(self.scope, [lhs[r], rhs[c], acc], loops)[0]
                for (r, c), acc in zip(outputs, loop.inner_iter_args, strict=True)
            ]
            scf.yield_(after)
        _allow_fma(loop.body)
        return list(loop.results_)

    def fetch(self, operand: int, side: Group, start: ir.Value, length: int, k0: ir.Value) -> None:
        """Copy a tile of an operand, neighbouring threads along its innermost dimension; edges repeat the last element."""
        k_fastest = self.walks_depth(operand)
        shape = [length, DEPTH] if k_fastest else [DEPTH, length]
        for round_ in range(length * DEPTH // (SIDE * SIDE)):
            first, second = delinearize(_plus(self.scope.thread, round_ * SIDE * SIDE), shape)
            along, k = (first, second) if k_fastest else (second, first)
            loops = self.loops((side, arith.addi(start, along)), (self.it.depth, arith.addi(k0, k)))
            value = self.nest.load(self.scope, operand, loops)
            memref.store(value, self.scope.shared[operand], [along, k] if operand == 0 else [k, along])

    def at_row(self, r: int) -> ir.Value:
        return arith.addi(self.row0, _plus(self.y, r * SIDE))

    def at_column(self, c: int) -> ir.Value:
        return arith.addi(self.column0, _plus(self.x, c * SIDE))


def _allow_fma(block: ir.Block) -> None:
    """Products and sums of one dot_general may be fused: it is one op, so nothing of the program's is contracted."""
    contract = ir.Attribute.parse("#arith.fastmath<contract>")
    for view in block.operations:
        if view.operation.name in ("arith.mulf", "arith.addf"):
            view.operation.attributes["fastmath"] = contract


def _plus(value: ir.Value, offset: int) -> ir.Value:
    return arith.addi(value, constant(offset)) if offset else value
