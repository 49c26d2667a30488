"""Contractions of f16 and bf16 into f32 on tensor cores: mma.sync m16n8k16, four warps, each 32 x 32 outputs.

block (batch, m0, n0), 128 threads, warps 2 x 2:
    for k0 in 0, 32, ..:   shared A[64][32] <- lhs, shared B[64][32] <- rhs transposed, zero beyond the end of k
        for k in 0, 16:    acc[2][4] = mma(A rows, B columns, acc)
    out <- acc

A lane holds of each 16 x 8 result: rows g and g + 8, columns 2q and 2q + 1, where lane = 4g + q. The products are
exact; the sums round otherwise than the plain loop's.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.collect import made_by
from stablehlo_py.mlir import arith, gpu, ir, llvm, memref, scf, vector
from stablehlo_py.targets.gpu.contraction import Block, Contraction, Group, match_contraction
from stablehlo_py.targets.gpu.launch import Former, Scope, constant
from stablehlo_py.targets.gpu.nest import Nest, delinearize, less

TILE = 64  # rows and columns of a block
DEPTH = 32  # steps of k per tile
ROW = DEPTH + 8  # in shared memory: rows start 20 words apart, so the lanes of a fragment read 32 different banks
THREADS = 128
M, N, K = 16, 8, 16
ROWS, COLUMNS = 32 // M, 32 // N  # mma tiles of a warp


def emit_tensor_cores(former: Former, nest: Nest) -> bool:
    """A kernel for a product of 16-bit floats that are summed in f32; False for others."""
    it, kind = match_contraction(nest), operand_kind(nest)
    if it is None or kind is None or min(it.rows.size, it.columns.size, it.depth.size) < M or it.batch.size == 0:
        return False
    space = ir.Attribute.parse("#gpu.address_space<workgroup>")
    element = ir.MemRefType(nest.operands[0].type).element_type
    tile = ir.MemRefType.get([TILE, ROW], element, memory_space=space)
    blocks = it.batch.size * -(-it.rows.size // TILE) * -(-it.columns.size // TILE)
    former.launch(
        [nest.op],
        "tensorcores",
        grid=(blocks, 1, 1),
        block=(THREADS, 1, 1),
        body=lambda scope: _Warps(it, scope, kind).build(),
        shared=[tile, tile],
        extra=nest.extra,
    )
    return True


def operand_kind(nest: Nest) -> str | None:
    """f16 or bf16 where the body is  acc + widened lhs * widened rhs  in f32; else None."""
    if nest.inputs != 2 or nest.outputs != 1:
        return None
    lhs, rhs, acc = nest.block.arguments
    total = made_by(nest.block.operations[len(nest.block.operations) - 1].operands[0], "arith.addf")
    if total is None or not isinstance(acc.type, ir.F32Type):
        return None
    operands = list(total.operands)
    if acc not in operands:
        return None
    product = made_by(operands[1 - operands.index(acc)], "arith.mulf")
    if product is None:
        return None
    kinds = {_widened(product.operands[0], lhs), _widened(product.operands[1], rhs)}
    return kinds.pop() if len(kinds) == 1 else None


def _widened(value: ir.Value, source: ir.Value) -> str | None:
    """How an f32 comes from an element: f16 by extension, bf16 as the upper half of the bits."""
    extended = made_by(value, "arith.extf")
    if extended is not None and extended.operands[0] == source:
        return str(source.type) if str(source.type) in ("f16", "bf16") else None
    cast = made_by(value, "arith.bitcast")
    shifted = cast and made_by(cast.operands[0], "arith.shli")
    bits = shifted and made_by(shifted.operands[0], "arith.extui")
    by = shifted and made_by(shifted.operands[1], "arith.constant")
    if not bits or not by or bits.operands[0] != source or str(source.type) != "i16":
        return None
    return "bf16" if ir.IntegerAttr(by.attributes["value"]).value == 16 else None


class _Warps(Block):
    """The body of the kernel."""

    def __init__(self, it: Contraction, scope: Scope, kind: str) -> None:
        super().__init__(it, scope, TILE, TILE)
        self.kind = kind
        lane = arith.remui(scope.thread, constant(32))
        self.group, self.quad = delinearize(lane, [8, 4])
        warp_row, warp_column = delinearize(arith.divui(scope.thread, constant(32)), [2, 2])
        self.warp_row = arith.muli(warp_row, constant(ROWS * M))
        self.warp_column = arith.muli(warp_column, constant(COLUMNS * N))
        self.pair = arith.muli(self.quad, constant(2))

    def build(self) -> None:
        places = [self.place(r, c, i) for r in range(ROWS) for c in range(COLUMNS) for i in range(4)]
        start = [self.nest.load(self.scope, 2, self.output(row, column)) for row, column in places]
        loop = scf.ForOp(constant(0), constant(-(-self.it.depth.size // DEPTH)), constant(1), start)
        with ir.InsertionPoint(loop.body):
            scf.yield_(self.step(loop.induction_variable, list(loop.inner_iter_args)))
        for (row, column), value in zip(places, loop.results_, strict=True):
            self.store(row, column, value)

    def place(self, r: int, c: int, i: int) -> tuple[ir.Value, ir.Value]:
        """Row and column of accumulator i of the mma tile (r, c)."""
        row = _sum(self.row0, self.warp_row, self.group, r * M + 8 * (i // 2))
        return row, _sum(self.column0, self.warp_column, self.pair, c * N + i % 2)

    def step(self, number: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
        """One tile of k: fetch both operands, then the mma of all tiles."""
        k0 = arith.muli(number, constant(DEPTH))
        gpu.barrier()  # the tiles before these may still be read
        self.fetch(0, self.it.rows, self.row0, k0)
        self.fetch(1, self.it.columns, self.column0, k0)
        gpu.barrier()
        for k in range(0, DEPTH, K):
            a, b = self.scope.shared
            lhs = [
                [self.fragment(a, self.warp_row, r * M + up, k + right) for right in (0, 8) for up in (0, 8)]
                for r in range(ROWS)
            ]
            rhs = [[self.fragment(b, self.warp_column, c * N, k + down) for down in (0, 8)] for c in range(COLUMNS)]
            for r in range(ROWS):
                for c in range(COLUMNS):
                    at = 4 * (r * COLUMNS + c)
                    sums[at : at + 4] = self.mma(lhs[r], rhs[c], sums[at : at + 4])
        return sums

    def fetch(self, operand: int, side: Group, start: ir.Value, k0: ir.Value) -> None:
        """Copy a tile of an operand to shared memory as [row or column][k]; zero beyond the end of k."""
        k_fastest = self.walks_depth(operand)
        shared = self.scope.shared[operand]
        loop = scf.ForOp(self.scope.thread, constant(TILE * DEPTH), constant(THREADS))
        with ir.InsertionPoint(loop.body):
            shape = [TILE, DEPTH] if k_fastest else [DEPTH, TILE]
            first, second = delinearize(loop.induction_variable, shape)
            along, k = (first, second) if k_fastest else (second, first)
            depth = arith.addi(k0, k)
            value = self.nest.load(
                self.scope, operand, self.loops((side, arith.addi(start, along)), (self.it.depth, depth))
            )
            if self.it.depth.size % DEPTH:
                value = arith.select(less(depth, self.it.depth.size), value, _zero(value.type))
            memref.store(value, shared, [along, k])
            scf.yield_([])

    def fragment(self, shared: ir.Value, start: ir.Value, along: int, k: int) -> ir.Value:
        """Two neighbours in k as one register: a vector of f16, or an i32 that holds two bf16."""
        element = ir.MemRefType(shared.type).element_type
        pair = ir.VectorType.get([2], element)
        at = [_sum(start, self.group, along), _sum(self.pair, k)]
        value = vector.LoadOp(pair, shared, at, alignment=4).result
        if self.kind == "f16":
            return value
        i32 = ir.IntegerType.get_signless(32)
        return vector.extract(vector.bitcast(ir.VectorType.get([1], i32), value), [], [0])

    def mma(self, a: Sequence[ir.Value], b: Sequence[ir.Value], c: Sequence[ir.Value]) -> list[ir.Value]:
        f32 = ir.F32Type.get()
        attributes = {
            "shape": f"#nvvm.shape<m = {M}, n = {N}, k = {K}>",
            "layoutA": "#nvvm.mma_layout<row>",
            "layoutB": "#nvvm.mma_layout<col>",
            "multiplicandAPtxType": f"#nvvm.mma_type<{self.kind}>",
            "multiplicandBPtxType": f"#nvvm.mma_type<{self.kind}>",
        }
        parsed = {name: ir.Attribute.parse(text) for name, text in attributes.items()}
        parsed["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([len(a), len(b), len(c)])
        result = ir.Type.parse("!llvm.struct<(f32, f32, f32, f32)>")
        op = ir.Operation.create("nvvm.mma.sync", results=[result], operands=[*a, *b, *c], attributes=parsed)
        return [llvm.extractvalue(f32, op.results[0], [i]) for i in range(4)]


def _sum(*terms: ir.Value | int) -> ir.Value:
    total, offset = None, 0
    for term in terms:
        if isinstance(term, int):
            offset += term
        else:
            total = term if total is None else arith.addi(total, term)
    if total is None:
        return constant(offset)
    return arith.addi(total, constant(offset)) if offset else total


def _zero(ty: ir.Type) -> ir.Value:
    return arith.constant(ty, 0.0 if isinstance(ty, ir.FloatType) else 0)
