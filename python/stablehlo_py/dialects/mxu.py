"""The mxu dialect: a matrix unit, its memories and its transfers, as ops.

Three levels live in it. On tensors: `contract` (one canonical product), `pad` and `unpad` (the physical shape of an array in
its tiled layout), `tiled_contract` (a product whose block sizes are chosen). A `kernel` is the boundary: tensors outside,
buffers (`!mxu.ref`) in a memory space inside. In a kernel: allocations, loops, transfers, and what the units do.

A kernel reads as a sequential program. `buffers = 2` on an allocation lets the transfer for the next step run while the
last one is still in use; it changes when things happen, never what is computed.

(No `from __future__ import annotations` here: the bindings read the fields' types from the class as objects.)
"""

# How ext declares dialects is unknown to the type checker.
# pyright: reportGeneralTypeIssues=false, reportCallIssue=false

import math
from collections.abc import Sequence
from typing import Any

from stablehlo_py.core.types import TensorType
from stablehlo_py.mlir import ext, ir

SPACES = ("hbm", "cmem", "vmem", "smem")


class Mxu(ext.Dialect, name="mxu"):
    """The dialect: its types, attributes and ops are the classes below."""


class TiledAttr(Mxu.Attribute, name="tiled"):
    """A tiled layout as XLA spells it: `T(8,128)(2,1)` is tiles of 8x128, two rows packed into a 32-bit word."""

    text: ir.StringAttr


class RefType(Mxu.Type, name="ref"):
    """A buffer: the tensor that it holds, its memory space, and its layout there."""

    tensor: ir.TypeAttr
    space: ir.StringAttr
    layout: TiledAttr


class SemaphoreType(Mxu.Type, name="semaphore"):
    """Counts transfers that have come to their end."""


class WeightsType(Mxu.Type, name="weights"):
    """What a matrix unit holds after a push: a tile of weights."""

    tensor: ir.TypeAttr


# --- on tensors -------------------------------------------------------------------------------------------------------


class ContractOp(Mxu.Operation, name="contract", traits=[ext.Pure]):
    """[b,m,k] x [b,k,n] -> [b,m,n]; lhs_t and rhs_t say that an operand comes as [b,k,m] or [b,n,k].

    A right operand with a batch of 1 is the same for all of b.
    """

    lhs: ext.Operand[ir.RankedTensorType]
    rhs: ext.Operand[ir.RankedTensorType]
    lhs_t: ir.IntegerAttr
    rhs_t: ir.IntegerAttr
    passes: ir.IntegerAttr
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        return _verify_product(self)


class PadOp(Mxu.Operation, name="pad", traits=[ext.Pure]):
    """An array in its physical shape: whole tiles; what is behind the logical shape is not defined."""

    value: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        small, large = _shape(self.value.type), _shape(self.out.type)
        if len(small) != len(large) or any(a > b for a, b in zip(small, large, strict=True)):
            return _error(self, f"pads {small} to {large}: no dimension may shrink")
        return True


class UnpadOp(Mxu.Operation, name="unpad", traits=[ext.Pure]):
    """The logical part of an array in its physical shape."""

    value: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        large, small = _shape(self.value.type), _shape(self.out.type)
        if len(small) != len(large) or any(a > b for a, b in zip(small, large, strict=True)):
            return _error(self, f"unpads {large} to {small}: no dimension may grow")
        return True


class BitcastOp(Mxu.Operation, name="bitcast", traits=[ext.Pure]):
    """An array in whole tiles seen with other leading dimensions: the same bytes in the same order."""

    value: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        before, after = _shape(self.value.type), _shape(self.out.type)
        same = math.prod(before) == math.prod(after) and before[-1:] == after[-1:]
        return same or _error(self, f"sees {before} as {after}: the lanes must stay as they are")


class LaidOutOp(Mxu.Operation, name="laid_out", traits=[ext.Pure]):
    """An argument or a result of the program whose last but one dimension is the minor one, seen as it lies."""

    value: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        before, after = _shape(self.value.type), _shape(self.out.type)
        turned = len(before) >= 2 and after == (*before[:-2], before[-1], before[-2])
        return turned or _error(self, f"sees {before} as {after}; the two inner dimensions change places")


class PrefetchStartOp(Mxu.Operation, name="prefetch_start"):
    """Start to bring an array from HBM to `space`, at `offset` there; kernels run meanwhile. The result is on its way.

    shared: each core brings only its share, the part that the kernel which takes it reads there.
    """

    value: ext.Operand[ir.RankedTensorType]
    space: ir.StringAttr
    offset: ir.IntegerAttr
    shared: ir.IntegerAttr
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        return self.out.type == self.value.type or _error(self, f"brings {self.value.type} as {self.out.type}")


class PrefetchWaitOp(Mxu.Operation, name="prefetch_wait"):
    """The array that a prefetch_start has brought."""

    value: ext.Operand[ir.RankedTensorType]
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        return self.out.type == self.value.type or _error(self, f"brings {self.value.type} as {self.out.type}")


class TiledContractOp(Mxu.Operation, name="tiled_contract", traits=[ext.Pure]):
    """A contract on padded operands with its plan: blocks [m, n, k], the logical sizes, where operands are at the start."""

    lhs: ext.Operand[ir.RankedTensorType]
    rhs: ext.Operand[ir.RankedTensorType]
    lhs_t: ir.IntegerAttr
    rhs_t: ir.IntegerAttr
    passes: ir.IntegerAttr
    logical: ir.ArrayAttr
    blocks: ir.ArrayAttr
    spaces: ir.ArrayAttr
    split: ir.StringAttr
    order: ir.StringAttr
    estimate: ir.FloatAttr
    chip: ir.StringAttr
    out: ext.Result[ir.RankedTensorType]

    def verify_invariants(self) -> bool:
        if len(self.logical) != 4 or len(self.blocks) != 3 or len(self.spaces) != 2:
            return _error(self, "needs logical = [b, m, n, k], blocks = [m, n, k] and spaces = [lhs, rhs]")
        if any(integer(b) <= 0 for b in self.blocks):
            return _error(self, f"blocks {self.blocks} must be positive")
        return True


class FusionOp(Mxu.Operation, name="fusion", traits=[ir.NoTerminatorTrait]):
    """Ops that become one kernel; the region takes values from outside and ends with the yield of the result."""

    out: ext.Result[ir.RankedTensorType]
    body: ext.Region

    def verify_region_invariants(self) -> bool:
        operations = [op.operation for op in self.body.blocks[0].operations]
        if not operations or operations[-1].name != "mxu.yield":
            return _error(self, "ends without mxu.yield")
        return operations[-1].operands[0].type == self.out.type or _error(self, "yields another type than its result's")


class YieldOp(Mxu.Operation, name="yield"):
    value: ext.Operand[ir.RankedTensorType]


# --- a kernel and its structure ---------------------------------------------------------------------------------------


MAX_INPUTS = 8


class KernelOp(Mxu.Operation, name="kernel", traits=[ir.IsIsolatedFromAboveTrait, ir.NoTerminatorTrait]):
    """A program of one chip; its block takes a ref for each input and then one for the output.

    logical: the sizes of each of these refs that hold defined elements; what is behind them is padding.
    An attribute `offset` says where a result in fast memory lies there.
    """

    in0: ext.Operand[ir.RankedTensorType]
    label: ir.StringAttr
    chip: ir.StringAttr
    logical: ir.ArrayAttr
    out: ext.Result[ir.RankedTensorType]
    body: ext.Region
    # One field each: the members of a variadic operand would all need the same type (IRDL unifies their constraint).
    in1: ext.Operand[ir.RankedTensorType] | None = None
    in2: ext.Operand[ir.RankedTensorType] | None = None
    in3: ext.Operand[ir.RankedTensorType] | None = None
    in4: ext.Operand[ir.RankedTensorType] | None = None
    in5: ext.Operand[ir.RankedTensorType] | None = None
    in6: ext.Operand[ir.RankedTensorType] | None = None
    in7: ext.Operand[ir.RankedTensorType] | None = None

    def verify_region_invariants(self) -> bool:
        from stablehlo_py.dialects.mxu_verify import check_kernel

        problem = check_kernel(self.operation)
        return problem is None or _fail(*problem)


class CoreSplitOp(Mxu.Operation, name="core_split", traits=[ir.NoTerminatorTrait]):
    """The body runs on each of `cores` cores; its argument is the core's number."""

    cores: ir.IntegerAttr
    body: ext.Region


class BarrierOp(Mxu.Operation, name="barrier"):
    """All cores have come here."""


class LoopOp(Mxu.Operation, name="loop", traits=[ir.NoTerminatorTrait]):
    """A nest of loops from 0 to bounds, the last innermost; the block takes an index for each."""

    bounds: ir.ArrayAttr
    body: ext.Region

    def verify_invariants(self) -> bool:
        if any(integer(b) < 1 for b in self.bounds):
            return _error(self, f"bounds {self.bounds} must be positive")
        return True


class AllocOp(Mxu.Operation, name="alloc"):
    """A buffer at a fixed offset of its space, `buffers` times over: each step of a loop takes the next."""

    label: ir.StringAttr
    offset: ir.IntegerAttr
    buffers: ir.IntegerAttr
    out: ext.Result[RefType]


class SemaphoreOp(Mxu.Operation, name="make_semaphore"):
    out: ext.Result[SemaphoreType]


# --- transfers --------------------------------------------------------------------------------------------------------


class DmaStartOp(Mxu.Operation, name="dma_start"):
    """Start to move a block between spaces; `map` gives from the indices the block of the larger ref.

    What lies outside the larger ref is neither read nor written, and is undefined in the smaller one. A transfer of the
    block that the buffer already holds, in the step before, moves nothing.
    """

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]
    semaphore: ext.Operand[SemaphoreType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    map: ir.AffineMapAttr


class DmaStridedOp(Mxu.Operation, name="dma_strided"):
    """Start to move `count` = [rows, lanes] elements between a larger ref and the rows of a buffer from row `at` on.

    map: from the indices the first element of each dimension of the larger ref. The buffer's lanes run along its last
    dimension, from a whole register on; the buffer's rows run along `dim`, `step` elements apart (a step of 0 repeats one row).
    """

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]
    semaphore: ext.Operand[SemaphoreType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    map: ir.AffineMapAttr
    dim: ir.IntegerAttr
    step: ir.IntegerAttr
    count: ir.ArrayAttr
    at: ir.IntegerAttr


class ViewOp(Mxu.Operation, name="view"):
    """The block of a ref in VMEM that `map` gives from the indices; nothing moves."""

    source: ext.Operand[RefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    map: ir.AffineMapAttr
    out: ext.Result[RefType]


class DmaWaitOp(Mxu.Operation, name="dma_wait"):
    """Wait for the transfers that were started on a semaphore."""

    semaphore: ext.Operand[SemaphoreType]


# --- what the units do ------------------------------------------------------------------------------------------------


class FillOp(Mxu.Operation, name="fill"):
    """Set all elements (vector unit)."""

    target: ext.Operand[RefType]
    value: ir.FloatAttr


class MaskOp(Mxu.Operation, name="mask"):
    """Set to zero what lies behind `limit` along `dim`, counted from the start of the block that `map` gives."""

    target: ext.Operand[RefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    dim: ir.IntegerAttr
    limit: ir.IntegerAttr
    map: ir.AffineMapAttr


class PushOp(Mxu.Operation, name="push"):
    """Load tile [k, n] of a block into a matrix unit; transposed: the block is [n, k] and is turned on the way."""

    source: ext.Operand[RefType]
    k: ext.Operand[ir.IndexType]
    n: ext.Operand[ir.IndexType]
    transposed: ir.IntegerAttr
    out: ext.Result[WeightsType]


class MatmulOp(Mxu.Operation, name="matmul"):
    """acc[:, n] += lhs[:, k] . weights, all rows of the block streamed through; products summed, then one f32 addition."""

    lhs: ext.Operand[RefType]
    weights: ext.Operand[WeightsType]
    acc: ext.Operand[RefType]
    k: ext.Operand[ir.IndexType]
    n: ext.Operand[ir.IndexType]
    passes: ir.IntegerAttr


class PopOp(Mxu.Operation, name="pop"):
    """Take the accumulators out, rounded to the element type of the target (vector unit)."""

    acc: ext.Operand[RefType]
    target: ext.Operand[RefType]


class TransposeOp(Mxu.Operation, name="transpose"):
    """Turn a block (cross-lane unit)."""

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]


class RelayoutOp(Mxu.Operation, name="relayout"):
    """The same elements in another tiled layout (cross-lane unit)."""

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]


class PlaceOp(Mxu.Operation, name="place"):
    """target[:, to + to_step * i] = source[:, from + from_step * i] for i < count; other lanes stay (cross-lane unit).

    lanes: [to, to_step, from, from_step, count].
    """

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]
    lanes: ir.ArrayAttr

    def verify_invariants(self) -> bool:
        return len(self.lanes) == 5 or _error(self, "needs lanes = [to, to_step, from, from_step, count]")


class ReadIndexOp(Mxu.Operation, name="read_index"):
    """An integer of a ref in SMEM as an index, not below 0 and not above `limit` (scalar unit)."""

    source: ext.Operand[RefType]
    indices: Sequence[ext.Operand[ir.IndexType]]
    map: ir.AffineMapAttr
    limit: ir.IntegerAttr
    out: ext.Result[ir.IndexType]


class VectorOp(Mxu.Operation, name="vector"):
    """target[...] = function(arguments...), elementwise (vector unit).

    arguments: for each argument the number of a source, or a float that stands for itself. A source of one row is repeated
    for all rows, and one of a single register's lanes, which all hold the same, for all lanes.
    """

    target: ext.Operand[RefType]
    function: ir.StringAttr
    arguments: ir.ArrayAttr
    first: ext.Operand[RefType] | None = None
    second: ext.Operand[RefType] | None = None
    third: ext.Operand[RefType] | None = None


class ReduceOp(Mxu.Operation, name="reduce"):
    """Reduce the first `limit` elements of each row; all lanes of the target's row hold the result (cross-lane unit)."""

    source: ext.Operand[RefType]
    target: ext.Operand[RefType]
    function: ir.StringAttr
    limit: ir.IntegerAttr


# --- reading it -------------------------------------------------------------------------------------------------------


def load(context: ir.Context) -> None:
    """Make the dialect known to `context`; a second call does nothing."""
    if context.is_dialect_loaded("mxu"):
        return
    with context, ir.Location.unknown():
        Mxu.load()


def integer(attribute: ir.Attribute) -> int:
    return int(ir.IntegerAttr(attribute).value)


def stored_bytes(ty: TensorType) -> int:
    """Bytes of an array in a memory of the chip: a boolean takes one."""
    return ty.size * (8 if ty.element.is_bool else ty.element.bits) // 8


def ref_tensor(ty: ir.Type) -> ir.RankedTensorType:
    """The tensor type that a ref holds."""
    return ir.RankedTensorType(ir.TypeAttr(RefType(ty).tensor).value)


def ref_space(ty: ir.Type) -> str:
    return ir.StringAttr(RefType(ty).space).value


def ref_layout(ty: ir.Type) -> str:
    return ir.StringAttr(TiledAttr(RefType(ty).layout).text).value


def _shape(ty: ir.Type) -> tuple[int, ...]:
    return tuple(ir.RankedTensorType(ty).shape)


def _error(op: Any, message: str) -> bool:  # Any: each op class of ext
    return _fail(op.operation, message)


def _fail(operation: ir.Operation, message: str) -> bool:
    operation.location.emit_error(f"{operation.name} {message}")
    return False


def _verify_product(op: ContractOp) -> bool:
    lhs, rhs, out = _shape(op.lhs.type), _shape(op.rhs.type), _shape(op.out.type)
    if not len(lhs) == len(rhs) == len(out) == 3:
        return _error(op, f"takes operands of rank 3, not {lhs} and {rhs} to {out}")
    m, k = lhs[1:] if not integer(op.lhs_t) else lhs[:0:-1]
    k2, n = rhs[1:] if not integer(op.rhs_t) else rhs[:0:-1]
    if k != k2:
        return _error(op, f"contracts {k} with {k2} elements")
    if lhs[0] != out[0] or rhs[0] not in (1, out[0]) or out[1:] != (m, n):
        return _error(op, f"of {lhs} and {rhs} gives ({lhs[0]}, {m}, {n}), not {out}")
    return True
