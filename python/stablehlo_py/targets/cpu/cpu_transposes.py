"""Transpositions in square blocks of registers: whole vectors are read along rows, whole cache lines are written.

result[.., s, .., r] = source[.., r, .., s]   ->
for dims before r in source, for r0 by panels (in parallel): for dims behind r in source: for s0 by blocks:
    each block of n of the panel's rows r and n columns s: n vectors in, log2(n) rounds of shuffles, n vectors out

The last blocks of a dimension overlap the ones before them, so that there are no remainders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from stablehlo_py.core.collect import MOVE, operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.register_transpose import transposed
from stablehlo_py.targets.cpu.emit.streaming import LINE, Address, stream_end, streams, strides_of
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.vectors.vector_legality import is_plain
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

LEAST_BYTES = 1 << 12  # below, everything is in the first cache anyway
LEAST_BLOCK = 4  # rows; fewer are not worth shuffles
MOVED_AS = {4: ir.F32Type, 8: ir.F64Type}  # by bytes; as floats, which the fence between shuffles takes as they are
PANEL = 256  # bytes written along each row of the result: runs of lines cost less than single ones, far apart


@record
class Transposition:
    """A linalg.generic that only moves elements; source_dims: the loop of each dimension of the source."""

    op: ir.Operation
    source: ir.Value
    target: ir.Value
    source_dims: list[int]
    shape: list[int]

    @property
    def element(self) -> ir.Type:
        return ir.MemRefType(self.target.type).element_type


class CpuTransposes(Pass):
    """Turn linalg.generic ops on buffers that are transpositions into loops over blocks in registers.

    features: LLVM's names of what the target can do; see features_of.
    """

    name: ClassVar[str] = "cpu-transposes"
    only_with: ClassVar[tuple[str, ...]] = (MOVE,)
    is_trusted: ClassVar[bool] = True
    features: str = ""

    def run(self, op: ir.Operation) -> None:
        cpu = cpu_of(features_of(op, self.features))
        found = [t for t in map(match_transposition, operations_named(op, "linalg.generic")) if t is not None]
        for transposition in found:
            alone = _is_alone(transposition.op)
            with ir.InsertionPoint(transposition.op), transposition.op.location:
                emit(transposition, cpu, alone=alone)
            if alone:
                transposition.op.block.owner.operation.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()
            transposition.op.erase()


def _is_alone(op: ir.Operation) -> bool:
    """Whether nothing else in the kernel loops, so that the parts of its loop are those of the kernel."""
    if op.block.owner.operation.name != "func.func":
        return False
    return not any(o.operation != op and len(o.operation.regions) for o in op.block.operations)


def match_transposition(op: ir.Operation) -> Transposition | None:
    """The transposition that an op is, if the last dimension of the result is not the last of the source."""
    if len(op.operands) != 2 or len(op.regions[0].blocks[0].operations) != 1:
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
    if dims[-1] == rank - 1 or math.prod(ty.shape) * element_bytes(ty.element_type) < LEAST_BYTES:
        return None
    return Transposition(op, source, target, dims, list(ty.shape))


def emit(of: Transposition, cpu: Cpu, *, alone: bool) -> None:
    """The loops of the module's docstring, over blocks of vectors or of single elements."""
    last, across = len(of.shape) - 1, of.source_dims[-1]  # r and s of the docstring
    at = of.source_dims.index(last)
    outside = sorted(of.source_dims[:at])
    inside = [d for d in sorted(of.source_dims[at + 1 :]) if d != across]
    size = element_bytes(of.element)
    n = _block_rows(of, cpu)
    panel = n
    while n > 1 and panel * size < PANEL and 2 * panel <= of.shape[last]:
        panel *= 2
    panel = panel if n > 1 else min(max(LEAST_BLOCK, LINE // size), of.shape[last])
    extents = [of.shape[d] for d in outside]
    blocks = -(-of.shape[last] // panel)
    indices: list[int | ir.Value] = [0] * len(of.shape)

    def step(number: ir.Value) -> None:
        for d, extent in zip(reversed([*outside, last]), reversed([*extents, blocks]), strict=True):
            place = arith.remui(number, nest.index(extent))
            number = arith.divui(number, nest.index(extent))
            indices[d] = _clipped(place, panel, of.shape[last]) if d == last else place
        if n == 1:
            _nest([*inside, across], of.shape, indices, lambda: _move(of, indices, panel))
        elif streams(of.target, cpu) and of.shape[last] * size % LINE == 0:
            aligned = Address.of(of.target, [0] * len(of.shape)).is_aligned(LINE)
            nest.when(aligned, lambda: whole(streaming=True), lambda: whole(streaming=False))
        else:
            whole(streaming=False)

    def whole(*, streaming: bool) -> None:
        _nest(inside, of.shape, indices, lambda: row_of_blocks(streaming))
        if streaming:
            stream_end()

    def row_of_blocks(streaming: bool) -> None:
        first = indices[last]

        def at_block(place: ir.Value) -> None:
            indices[across] = _clipped(place, n, of.shape[across])
            nest.once_or_loop(panel, n, lambda k: along_rows(nest.add(first, k)))

        def along_rows(place: int | ir.Value) -> None:
            indices[last] = place
            _move_block(of, indices, n, streaming)

        nest.loop(0, -(-of.shape[across] // n), 1, lambda place: at_block(place))
        indices[last] = first

    nest.loop(0, math.prod(extents) * blocks, 1, step, parallel=PARALLEL_LOOP if alone else "")


def _clipped(number: ir.Value, size: int, extent: int) -> ir.Value:
    """Where a block of a number starts; the last ends with the dimension."""
    start = arith.muli(number, nest.index(size))
    return arith.minui(start, nest.index(extent - size)) if extent % size else start


def _block_rows(of: Transposition, cpu: Cpu) -> int:
    """The rows and columns of a block in registers; 1 where the dimensions or the elements do not suit one."""
    size = element_bytes(of.element)
    if size > 8 or not all(is_plain(v) for v in (of.source, of.target)):
        return 1
    # a block of bytes is one of 16-byte vectors, which every shuffle suits
    most = min(cpu.lanes(size), cpu.registers) if size > 1 else 16
    while most > min(of.shape[-1], of.shape[of.source_dims[-1]]):
        most //= 2
    return most if most >= LEAST_BLOCK else 1


def _nest(dims: Sequence[int], shape: Sequence[int], indices: list[int | ir.Value], then: Callable[[], None]) -> None:
    """Loops over whole dimensions, outermost first; `indices` gets their variables."""
    if not dims:
        then()
        return

    def body(place: ir.Value) -> None:
        indices[dims[0]] = place
        _nest(dims[1:], shape, indices, then)

    nest.loop(0, shape[dims[0]], 1, body)


def _move(of: Transposition, indices: list[int | ir.Value], count: int) -> None:
    """`count` elements of the result's last dimension, one by one."""
    first = indices[-1]

    def body(place: ir.Value) -> None:
        places = [*indices[:-1], nest.add(first, place)]
        nest.store(nest.load(of.source, [places[d] for d in of.source_dims]), of.target, places)

    nest.loop(0, count, 1, body)


def _move_block(of: Transposition, indices: Sequence[int | ir.Value], n: int, streaming: bool) -> None:
    """n rows of the source from `indices` on, as n rows of the result."""
    size = element_bytes(of.element)
    last, across = len(of.shape) - 1, of.source_dims[-1]
    ty = ir.VectorType.get([n], MOVED_AS[size].get() if size in MOVED_AS else ir.IntegerType.get_signless(8 * size))
    source = Address.of(of.source, [indices[d] for d in of.source_dims])
    target = Address.of(of.target, indices)
    by_row, by_column = strides_of(of.source)[0][of.source_dims.index(last)], strides_of(of.target)[0][across]
    rows = [source.moved(r * by_row).load(ty) for r in range(n)]
    for s, column in enumerate(transposed(rows)):
        target.moved(s * by_column).store(column, streaming=streaming)
