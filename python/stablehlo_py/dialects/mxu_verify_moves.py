"""The rules for ops that move elements: strided transfers, lanes placed among others, indices read from SMEM."""

from __future__ import annotations

from stablehlo_py.core.types import TensorType
from stablehlo_py.dialects import mxu
from stablehlo_py.machine.tpu import Chip
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, record


class Broken(Exception):
    def __init__(self, operation: ir.Operation, message: str) -> None:
        super().__init__(message)
        self.operation, self.message = operation, message


@record(frozen=False)
class State:
    """What is known of one buffer at a point of the program."""

    arriving: ir.Value | None = None  # the semaphore of a transfer into it that nobody waited for
    leaving: ir.Value | None = None  # and out of it
    undefined: dict[int, int] = field(default_factory=dict)  # dimension -> size behind which padding may be undefined
    written: bool = False
    filled: bool = False  # an accumulator that was set and not yet popped


class MoveRules:
    """The part of the walk over a kernel (mxu_verify) that knows these ops."""

    chip: Chip
    logical: dict[ir.Value, tuple[int, ...]]
    last_index: dict[ir.Value, int]  # the largest value of each index
    started: set[ir.Value]

    def tensor(self, value: ir.Value) -> TensorType:
        raise NotImplementedError

    def state(self, value: ir.Value) -> State:
        raise NotImplementedError

    def read(self, op: ir.Operation, value: ir.Value) -> None:
        raise NotImplementedError

    def write(self, op: ir.Operation, value: ir.Value) -> None:
        raise NotImplementedError

    def check_map(self, op: ir.Operation, indices: int, rank: int) -> None:
        raise NotImplementedError

    def dma_strided(self, op: ir.Operation) -> None:
        source, target, semaphore, *indices = op.operands
        if (source in self.logical) == (target in self.logical):
            raise Broken(op, "must move rows between an argument of the kernel and a buffer")
        inward = source in self.logical
        large, small = (source, target) if inward else (target, source)
        whole, block = self.tensor(large), self.tensor(small)
        if whole.element != block.element:
            raise Broken(op, f"moves {self.tensor(source).element} to {self.tensor(target).element}")
        self.check_map(op, len(indices), whole.rank)
        self.check_box(op, large, small, indices)
        self.started.add(semaphore)
        if inward:
            self.write_rows(op, small)
            self.state(small).arriving = semaphore
        else:
            self.read(op, small)
            self.state(small).leaving = semaphore

    def check_box(self, op: ir.Operation, large: ir.Value, small: ir.Value, indices: list[ir.Value]) -> None:
        """The rows lie in the buffer and among the defined ones of the larger ref; lanes come in whole registers."""
        dim, step, at = (mxu.integer(op.attributes[name]) for name in ("dim", "step", "at"))
        rows, lanes = (mxu.integer(c) for c in op.attributes["count"])
        shape, block, sizes = self.tensor(large).shape, self.tensor(small).shape, self.logical[large]
        if not 0 <= dim < len(shape) - 1:
            raise Broken(op, f"has rows along dimension {dim} of {self.tensor(large)}; its last one has the lanes")
        if rows < 1 or at < 0 or at + rows > block[0] or not 1 <= lanes <= block[1]:
            raise Broken(op, f"moves {rows} rows from {at} on and {lanes} lanes of a block of {self.tensor(small)}")
        firsts = linear_forms(ir.AffineMapAttr(op.attributes["map"]).value)
        if firsts is None:
            raise Broken(op, "has a map that is not linear")
        lane = firsts[-1]
        if any(c % self.chip.lanes for c in (lane.constant, *lane.factors)):
            raise Broken(op, f"starts at a lane that is no multiple of {self.chip.lanes}")
        last = [self.last_index[index] for index in indices]
        for d, form in enumerate(firsts):
            low, high = form.bounds(last)
            if d == dim:
                low, high = low + min(0, step * (rows - 1)), high + max(0, step * (rows - 1))
            if d == len(shape) - 1:
                high += lanes - 1
            end = sizes[d] if d < len(shape) - 1 else shape[d]
            if low < 0 or high >= end:
                raise Broken(op, f"moves elements {low} to {high} of dimension {d}, which has {end}")

    def write_rows(self, op: ir.Operation, small: ir.Value) -> None:
        """Other transfers may be on their way into other rows of the same buffer."""
        state = self.state(small)
        if state.leaving is not None:
            raise Broken(op, "writes to a buffer before the wait for the transfer out of it")
        state.written = True
        state.undefined = {}

    def place(self, op: ir.Operation) -> None:
        source, target = op.operands
        self.read(op, source)
        to, to_step, start, step, count = (mxu.integer(a) for a in op.attributes["lanes"])
        for value, first, by in ((target, to, to_step), (source, start, step)):
            ends = (first, first + by * (count - 1))
            if min(ends) < 0 or max(ends) >= self.tensor(value).shape[1]:
                raise Broken(op, f"takes lanes {min(ends)} to {max(ends)} of a block of {self.tensor(value)}")
        a, b = self.tensor(source), self.tensor(target)
        if a.element != b.element or a.shape[0] != b.shape[0]:
            raise Broken(op, f"places lanes of {a} into {b}")
        self.write(op, target)

    def read_index(self, op: ir.Operation) -> None:
        source, *indices = op.operands
        if mxu.ref_space(source.type) != "smem":
            raise Broken(op, f"reads an index from {mxu.ref_space(source.type)}; the scalar unit reads SMEM only")
        if not self.tensor(source).element.is_integer:
            raise Broken(op, f"reads an index from {self.tensor(source)}")
        self.check_map(op, len(indices), self.tensor(source).rank)
        self.last_index[op.results[0]] = mxu.integer(op.attributes["limit"])


@record
class LinearForm:
    """constant + sum of factors[i] * index i."""

    constant: int
    factors: tuple[int, ...]

    def bounds(self, last: list[int]) -> tuple[int, int]:
        """The least and the largest value, for indices from 0 to last."""
        ends = [f * n for f, n in zip(self.factors, last, strict=True)]
        return self.constant + sum(min(0, e) for e in ends), self.constant + sum(max(0, e) for e in ends)


def linear_forms(map: ir.AffineMap) -> list[LinearForm] | None:
    """The results of an affine map as linear forms; None where it has divisions or symbols."""
    forms = [_linear(expression, map.n_dims) for expression in map.results]
    return None if None in forms else forms  # type: ignore[return-value]


def _linear(expression: ir.AffineExpr, dims: int) -> LinearForm | None:
    if isinstance(expression, ir.AffineConstantExpr):
        return LinearForm(ir.AffineConstantExpr(expression).value, (0,) * dims)
    if isinstance(expression, ir.AffineDimExpr):
        position = ir.AffineDimExpr(expression).position
        return LinearForm(0, tuple(int(d == position) for d in range(dims)))
    if not isinstance(expression, ir.AffineAddExpr | ir.AffineMulExpr):
        return None
    binary = ir.AffineBinaryExpr(expression)
    lhs, rhs = _linear(binary.lhs, dims), _linear(binary.rhs, dims)
    if lhs is None or rhs is None:
        return None
    if isinstance(expression, ir.AffineAddExpr):
        factors = tuple(a + b for a, b in zip(lhs.factors, rhs.factors, strict=True))
        return LinearForm(lhs.constant + rhs.constant, factors)
    form, by = (lhs, rhs.constant) if not any(rhs.factors) else (rhs, lhs.constant)
    return LinearForm(form.constant * by, tuple(f * by for f in form.factors))
