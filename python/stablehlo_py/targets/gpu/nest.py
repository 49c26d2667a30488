"""A linalg.generic read as a loop nest: extents, indices, and its body on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.collect import maker
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import DYNAMIC, arith, ir, memref, scf
from stablehlo_py.targets.gpu.launch import Scope, constant, place


class Nest:
    """The loop nest of a linalg.generic on memrefs.

    extents: iterations per loop. parallel, reduction: the numbers of the loops of each kind. operands: inputs, then
    outputs, each with its map; reads: whether the body uses the operand's element. initial: what the one output
    holds before, where that is the same value everywhere and need not be stored.
    """

    def __init__(self, op: ir.Operation, initial: ir.Value | None = None) -> None:
        self.op, self.initial = op, initial
        self.block = op.regions[0].blocks[0]
        self.operands = list(op.operands)
        self.maps = [ir.AffineMapAttr(a).value for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
        self.outputs = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))[1]
        iterators = [str(i) for i in ir.ArrayAttr(op.attributes["iterator_types"])]
        self.parallel = [d for d, kind in enumerate(iterators) if "parallel" in kind]
        self.reduction = [d for d, kind in enumerate(iterators) if "parallel" not in kind]
        self.extents = self._extents(len(iterators))
        self.reads = [any(True for _ in argument.uses) for argument in self.block.arguments]

    @property
    def inputs(self) -> int:
        return len(self.operands) - self.outputs

    @property
    def extra(self) -> list[ir.Value]:
        """What a kernel uses beyond the operands."""
        return [] if self.initial is None else [self.initial]

    @property
    def fill(self) -> tuple[ir.Value, ir.Value] | None:
        """(buffer, value) of a nest that stores one value from outside in a whole buffer."""
        if self.outputs != 1 or self.reduction or any(self.reads[self.inputs :]) or not self.covers_output:
            return None
        value = self.block.operations[len(self.block.operations) - 1].operands[0]
        if isinstance(value.owner, ir.Block) and value.owner == self.block:
            value = self.operands[list(self.block.arguments).index(value)]
            return None if isinstance(value.type, ir.MemRefType) else (self.operands[-1], value)
        op = maker(value)
        return None if op is not None and op.block == self.block else (self.operands[-1], value)

    @property
    def covers_output(self) -> bool:
        """Whether each element of the one output belongs to exactly one iteration of the parallel loops."""
        results = list(self.maps[-1].results)
        if not all(isinstance(e, ir.AffineDimExpr) for e in results):
            return False
        return self.outputs == 1 and sorted(e.position for e in results) == self.parallel

    @property
    def threads(self) -> int:
        """How many elements the outputs have: one thread may compute each."""
        return math.prod(self.extents[d] for d in self.parallel)

    def _extents(self, rank: int) -> list[int]:
        extents = [-1] * rank
        for operand, affine in zip(self.operands, self.maps, strict=True):
            if not isinstance(operand.type, ir.MemRefType):
                continue
            for size, expression in zip(operand.type.shape, affine.results, strict=True):
                if isinstance(expression, ir.AffineDimExpr):
                    extents[expression.position] = size
        if any(e in (-1, DYNAMIC) for e in extents):
            raise UnsupportedOp(self.op.name, "its loop bounds are not known", target="gpu", where=place(self.op))
        return extents

    def load(self, scope: Scope, number: int, loops: Sequence[ir.Value | None]) -> ir.Value:
        """The element of an operand at the given loop indices; a scalar operand itself."""
        if number == self.inputs and self.initial is not None:
            return scope[self.initial]
        operand = scope[self.operands[number]]
        if not isinstance(operand.type, ir.MemRefType):
            return operand
        return memref.load(operand, indices(self.maps[number], loops))

    def store(self, scope: Scope, number: int, loops: Sequence[ir.Value | None], value: ir.Value) -> None:
        memref.store(value, scope[self.operands[number]], indices(self.maps[number], loops))

    def elements(self, scope: Scope, loops: Sequence[ir.Value | None], which: range) -> list[ir.Value | None]:
        """The elements of the operands that the body reads; None for those it does not."""
        return [self.load(scope, n, loops) if self.reads[n] else None for n in which]

    def body(
        self, scope: Scope, elements: Sequence[ir.Value | None], loops: Sequence[ir.Value | None]
    ) -> list[ir.Value]:
        """Inline the body on scalars; the values it yields, one per output."""
        *ops, end = (view.operation for view in self.block.operations)
        local = self.inline(scope, elements, loops, ops)
        return [local[v] for v in end.operands]

    def inline(
        self,
        scope: Scope,
        elements: Sequence[ir.Value | None],
        loops: Sequence[ir.Value | None],
        ops: Sequence[ir.Operation],
    ) -> Scope:
        """Inline some ops of the body; the scope in which their results are known."""
        local = Scope(dict(scope.values), scope.shared, scope.thread, scope.block)
        for argument, element in zip(self.block.arguments, elements, strict=True):
            if element is not None:
                local.values[argument] = element
        for op in ops:
            if op.name == "linalg.index":
                local.values[op.results[0]] = loops[ir.IntegerAttr(op.attributes["dim"]).value]
            else:
                _index_ops(local.clone(op), loops)
        return local


def _index_ops(op: ir.Operation, loops: Sequence[ir.Value | None]) -> None:
    """Replace linalg.index inside the regions of an inlined op (an scf.if in the body)."""
    for region in op.regions:
        for block in region.blocks:
            for view in list(block.operations):
                inner = view.operation
                if inner.name == "linalg.index":
                    loop = loops[ir.IntegerAttr(inner.attributes["dim"]).value]
                    inner.results[0].replace_all_uses_with(loop)
                    inner.erase()
                else:
                    _index_ops(inner, loops)


# --- indices ---------------------------------------------------------------------------------------------------------


def indices(affine: ir.AffineMap, loops: Sequence[ir.Value | None]) -> list[ir.Value]:
    """The results of an affine map on loop indices."""
    return [_evaluate(e, loops) for e in affine.results]


def _evaluate(expression: ir.AffineExpr, loops: Sequence[ir.Value | None]) -> ir.Value:
    if isinstance(expression, ir.AffineDimExpr):
        return loops[expression.position]
    if isinstance(expression, ir.AffineConstantExpr):
        return constant(expression.value)
    for kind, build in _AFFINE:
        if isinstance(expression, kind):
            return build(_evaluate(expression.lhs, loops), _evaluate(expression.rhs, loops))
    raise UnsupportedOp("linalg.generic", f"the index {expression} is not computed", target="gpu")


_AFFINE: tuple[tuple[type, Callable[[ir.Value, ir.Value], ir.Value]], ...] = (
    (ir.AffineAddExpr, arith.addi),
    (ir.AffineMulExpr, arith.muli),
    (ir.AffineModExpr, arith.remui),
    (ir.AffineFloorDivExpr, arith.floordivsi),
    (ir.AffineCeilDivExpr, arith.ceildivsi),
)


def delinearize(linear: ir.Value, extents: Sequence[int]) -> list[ir.Value]:
    """The indices of the element number `linear` of a row-major space."""
    found: list[ir.Value] = []
    for extent in reversed(extents[1:]):
        if extent == 1:
            found.append(constant(0))
            continue
        size = constant(extent)
        found.append(arith.remui(linear, size))
        linear = arith.divui(linear, size)
    return [linear, *reversed(found)] if extents else []


def for_each(
    extents: Sequence[int],
    carried: Sequence[ir.Value],
    body: Callable[[list[ir.Value], list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A sequential loop nest that hands scalars from step to step."""
    if not extents:
        return list(body([], list(carried)))

    def nest(depth: int, outer: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        if depth == len(extents):
            return list(body(outer, values))
        loop = scf.ForOp(constant(0), constant(extents[depth]), constant(1), values)
        with ir.InsertionPoint(loop.body):
            scf.yield_(nest(depth + 1, [*outer, loop.induction_variable], list(loop.inner_iter_args)))
        return list(loop.results_)

    return nest(0, [], list(carried))


def when(condition: ir.Value, body: Callable[[], None]) -> None:
    """scf.if without results."""
    op = scf.IfOp(condition)
    with ir.InsertionPoint(op.then_block):
        body()
        scf.yield_([])


def less(x: ir.Value, bound: int | ir.Value) -> ir.Value:
    return arith.cmpi(arith.CmpIPredicate.ult, x, constant(bound) if isinstance(bound, int) else bound)
