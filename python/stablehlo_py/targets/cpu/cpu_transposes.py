"""Transpositions in the order of cache lines: each line of the result is written whole, from a few rows read along.

result[.., s, .., r] = source[.., r, .., s]   ->
for dims before r in source: for r0 in steps of a line: for dims behind r in source, s last: for r in r0 .. r0 + line
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.passes import Pass
from stablehlo_py.mlir import arith, ir, memref, scf
from stablehlo_py.transforms.kernel_scratch import element_bytes

LINE = 64  # bytes
LEAST_BYTES = 1 << 12  # below, everything is in the first cache anyway


@dataclass(frozen=True)
class Transposition:
    """A linalg.generic that only moves elements; source_dims: the loop of each dimension of the source."""

    op: ir.Operation
    source: ir.Value
    target: ir.Value
    source_dims: list[int]
    shape: list[int]


@dataclass(frozen=True)
class CpuTransposes(Pass):
    """Turn linalg.generic ops on buffers that are transpositions into loops that write whole cache lines."""

    name: ClassVar[str] = "cpu-transposes"

    def run(self, op: ir.Operation) -> None:
        found: list[Transposition] = []

        def visit(inner: ir.Operation) -> ir.WalkResult:
            transposition = match_transposition(inner)
            if transposition is not None:
                found.append(transposition)
            return ir.WalkResult.ADVANCE

        op.walk(visit)
        for transposition in found:
            with ir.InsertionPoint(transposition.op), transposition.op.location:
                emit(transposition)
            transposition.op.erase()


def match_transposition(op: ir.Operation) -> Transposition | None:
    """The transposition that an op is, if the last dimension of the result is not the last of the source."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.regions[0].blocks[0].operations) != 1:
        return None
    block = op.regions[0].blocks[0]
    if block.operations[0].operands[0] != block.arguments[0]:
        return None
    source, target = op.operands
    if not all(isinstance(v.type, ir.MemRefType) and ir.MemRefType(v.type).has_static_shape for v in op.operands):
        return None
    reads, writes = (ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"]))
    rank = writes.n_dims
    if rank < 2 or writes != ir.AffineMap.get_identity(rank) or not reads.is_permutation:
        return None
    dims = [ir.AffineDimExpr(e).position for e in reads.results]
    ty = ir.MemRefType(target.type)
    size = element_bytes(ty.element_type)
    for extent in ty.shape:
        size *= extent
    return (
        None if dims[-1] == rank - 1 or size < LEAST_BYTES else Transposition(op, source, target, dims, list(ty.shape))
    )


def emit(of: Transposition) -> None:
    """The loops of the module's docstring."""
    last = len(of.shape) - 1
    line = max(4, LINE // element_bytes(ir.MemRefType(of.target.type).element_type))
    at = of.source_dims.index(last)
    outside, inside = sorted(of.source_dims[:at]), sorted(of.source_dims[at + 1 : -1])
    contiguous = [of.source_dims[-1]]
    indices: list[ir.Value] = [_index(0)] * len(of.shape)

    def nest(dims: list[int], depth: int, then: Callable[[], None]) -> None:
        if depth == len(dims):
            then()
            return
        loop = scf.ForOp(_index(0), _index(of.shape[dims[depth]]), _index(1))
        with ir.InsertionPoint(loop.body):
            indices[dims[depth]] = loop.induction_variable
            nest(dims, depth + 1, then)
            scf.yield_([])

    def move(start: ir.Value, count: int) -> None:
        loop = scf.ForOp(_index(0), _index(count), _index(1))
        with ir.InsertionPoint(loop.body):
            indices[last] = arith.addi(start, loop.induction_variable)
            value = memref.load(of.source, [indices[d] for d in of.source_dims])
            memref.store(value, of.target, list(indices))
            scf.yield_([])

    def lines() -> None:
        whole = of.shape[last] // line * line
        if whole:
            loop = scf.ForOp(_index(0), _index(whole), _index(line))
            with ir.InsertionPoint(loop.body):
                nest([*inside, *contiguous], 0, lambda: move(loop.induction_variable, line))
                scf.yield_([])
        if whole != of.shape[last]:
            nest([*inside, *contiguous], 0, lambda: move(_index(whole), of.shape[last] - whole))

    nest(outside, 0, lines)


def _index(value: int) -> ir.Value:
    return arith.constant(ir.IndexType.get(), value)
