"""Innermost loops over contiguous elements as loops over vectors.

for j in a .. b: s(j)   ->   for j in a .. b' by unroll * lanes: S(j), S(j + lanes), ..;   the rest

The rest is masked where the target has masks, else the loop as it was. Reductions keep `unroll` vectors of partial
results, which are put together in one order: the shape of a loop decides about its bits, not where it was cut.
Flat loops that the executor splits are cut at whole blocks, so that no part but the last has a rest.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from stablehlo_py.core.collect import operations_named
from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, ir, scf, vector
from stablehlo_py.targets.cpu import nest
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.innermost import VIEWS, Innermost, Reduction, base_of, innermost, is_plain
from stablehlo_py.targets.cpu.ordered_floats import Order, order_of
from stablehlo_py.targets.cpu.streaming import LINE, Address, buffer_bytes, stream_end, streams
from stablehlo_py.transforms.hlo_form_kernels import KERNEL
from stablehlo_py.transforms.kernel_parallel import EXTENT, RANGE, i64
from stablehlo_py.transforms.kernel_scratch import element_bytes

BLOCK = 1024  # steps of a split flat loop that stay together: a multiple of every unrolled vector
SMALL_BLOCK = 256  # of one that is too short for MANY_BLOCKS
MANY_BLOCKS = 64
ROWS = 8  # that are taken at once where each updates the same places: memory sees one update instead
FEW_STEPS = 8  # a loop of so few steps is not worth another pass of LLVM over the kernel
LEAST_AHEAD = 1 << 20  # bytes of a buffer that is read ahead: smaller ones stay in the cache of a core
MOST_AHEAD = 1 << 14  # bytes: a row that is longer would not find its place in the first cache
NEUTRAL = {
    "arith.addi": 0,
    "arith.muli": 1,
    "arith.andi": -1,
    "arith.ori": 0,
    "arith.xori": 0,
    "arith.addf": -0.0,
    "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"),
    "arith.minimumf": float("inf"),
}


@dataclass(frozen=True)
class CpuVectorize(Pass):
    """Rewrite innermost loops over contiguous elements as loops over vectors.

    features: LLVM's names of what the target can do; the host's when empty.
    """

    name: ClassVar[str] = "cpu-vectorize"
    features: str = ""

    def run(self, op: ir.Operation) -> None:
        cpu = cpu_of(features_of(op, self.features))
        for function in op.regions[0].blocks[0].operations:
            if KERNEL in function.operation.attributes and nest.VECTOR_CODE not in function.operation.attributes:
                vectorize(function.operation, cpu)


def vectorize(function: ir.Operation, cpu: Cpu) -> None:
    """Rewrite the innermost loops of a kernel; mark it when no scalar loop of weight is left."""
    loops = [op for op in operations_named(function, "scf.for") if not _loops_inside(op)]
    found, left = [], bool(operations_named(function, "scf.while", "scf.parallel"))
    for op in loops:
        loop, steps = innermost(op), _steps(op)
        if loop is not None and _worth(loop, steps, cpu):
            found.append(loop)
        else:
            left |= steps is None or steps > FEW_STEPS
    block = function.regions[0].blocks[0]
    past = {b for b in block.arguments if isinstance(b.type, ir.MemRefType) and streams(b, cpu) and _only_written(b)}
    ahead = _reads_ahead(found)
    cut = _cut_at_blocks(function, found)
    streaming = False
    for loop in found:
        op = loop.op
        rows = _rows_around(loop)
        aligned = loop.variable in cut or _constant(op.operands[0]) == 0
        if rows is not None:
            _rows_at_once(loop, rows, cpu, cut)
            continue
        with ir.InsertionPoint(op), op.location:
            vectors = _Vectors(loop, cpu, cut, past if aligned else (), ahead)
            streaming |= bool(vectors.past)
            results = vectors.emit()
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()
    if streaming:
        with ir.InsertionPoint(block.operations[len(block.operations) - 1]), function.location:
            stream_end()
    if found and not left:
        function.attributes[nest.VECTOR_CODE] = ir.UnitAttr.get()


def _rows_at_once(loop: Innermost, rows: Rows, cpu: Cpu, cut: Mapping[ir.Value, int]) -> None:
    """for i: for j: s(i, j)   ->   for i by ROWS: for j: s(i, j), s(i + 1, j), ..;   the rows that are left, one by one"""
    whole = rows.count // ROWS * ROWS
    ahead = {
        op.results[0]: ROWS * _stride(op, rows.variable)
        for op in loop.body
        if op.name == "memref.load" and rows.variable in list(op.operands)[1:] and _is_far(op.operands[0])
    }

    def block_of(first: ir.Value, count: int) -> None:
        taken = [(rows.variable, nest.index(nest.add(first, r))) for r in range(count)]
        _Vectors(loop, cpu, cut, rows=taken, ahead=ahead).emit()

    with ir.InsertionPoint(rows.op), rows.op.location:
        nest.loop(0, whole, ROWS, lambda first: block_of(first, ROWS))
        if whole != rows.count:
            nest.loop(whole, rows.count, 1, lambda first: block_of(first, 1))
    rows.op.erase()


def _only_written(buffer: ir.Value) -> bool:
    """Whether a kernel stores to a buffer or a view of it and does nothing else with it."""
    uses = [use.owner.operation for use in buffer.uses]
    return bool(uses) and all(
        op.name == "memref.store" or (op.name in VIEWS and all(_only_written(v) for v in op.results)) for op in uses
    )


def _reads_ahead(loops: Sequence[Innermost]) -> dict[ir.Value, int]:
    """Which loads ask for what is so many bytes behind them: the next row.

    The loops of a row find it in the cache but for the first, which waits for memory while nothing is computed. So the
    busiest of them asks for the row that comes next.
    """
    busiest: dict[tuple[ir.Value, ir.Value], tuple[Innermost, ir.Value, int]] = {}
    for loop in loops:
        parent = loop.op.parent
        if parent is None or parent.operation.name != "scf.for":
            continue
        row = parent.regions[0].blocks[0].arguments[0]
        for op in loop.body:
            if op.name != "memref.load" or row not in list(op.operands)[1:]:
                continue
            buffer = op.operands[0]
            if not _is_far(buffer):
                continue
            before = busiest.get((buffer, row))
            if before is None or loop.work < before[0].work:
                busiest[buffer, row] = (loop, op.results[0], min(_stride(op, row), MOST_AHEAD))
    return {load: distance for _, load, distance in busiest.values()}


def _is_far(buffer: ir.Value) -> bool:
    """Whether a buffer comes from further away than the cache of a core; views that skip something do not count."""
    return is_plain(buffer) and buffer_bytes(buffer) >= LEAST_AHEAD


def _stride(load: ir.Operation, row: ir.Value) -> int:
    """Bytes from what a load reads to what it reads in the next row."""
    strides, _ = ir.MemRefType(load.operands[0].type).get_strides_and_offset()
    return strides[list(load.operands).index(row) - 1] * element_bytes(load.results[0].type)


def _loops_inside(op: ir.Operation) -> bool:
    return any(inner != op for inner in operations_named(op, "scf.for", "scf.while", "scf.parallel"))


def _steps(op: ir.Operation) -> int | None:
    low, high, step = (_constant(v) for v in list(op.operands)[:3])
    return None if low is None or high is None or step != 1 else high - low


def _constant(value: ir.Value) -> int | None:
    if isinstance(value.owner, ir.Block) or value.owner.operation.name != "arith.constant":
        return None
    attribute = value.owner.operation.attributes["value"]
    return ir.IntegerAttr(attribute).value if isinstance(attribute, ir.IntegerAttr) else None


def _worth(loop: Innermost, steps: int | None, cpu: Cpu) -> bool:
    if _constant(loop.op.operands[2]) != 1 or not loop.sizes or _counts_lanes(loop):
        return False
    lanes = _lanes(loop, cpu)
    return lanes > 1 and (steps is None or steps >= (lanes // 4 if cpu.masks else lanes))


def _counts_lanes(loop: Innermost) -> bool:
    """Whether one is added to what is in the lanes.

    LLVM subtracts a register of ones for it, made anew in each step from what was in it, so that one step waits for the one
    before it: a random number generator took twice the time. Its own vectoriser does not make such code.
    """
    operations = [view.operation for view in loop.op.regions[0].blocks[0].operations]
    sums = [op for op in operations if op.name == "arith.addi" and not isinstance(op.results[0].type, ir.IndexType)]
    return any(_constant(v) == 1 for op in sums for v in op.operands)


def _lanes(loop: Innermost, cpu: Cpu) -> int:
    return cpu.lanes(max(loop.sizes))


def _unroll(loop: Innermost) -> int:
    """Vectors a step: enough for the latency of sums, and for the loop's own overhead to vanish."""
    if loop.reductions:
        return 4 if loop.work <= 12 else 2
    return 4 if loop.work <= 6 else 2 if loop.work <= 12 else 1


def _cut_at_blocks(function: ir.Operation, loops: Sequence[Innermost]) -> dict[ir.Value, int]:
    """Let begin and end of a kernel count blocks from now on, where they bound nothing but these loops.

    The variables of the loops that run over blocks now, with the steps of all of them.
    """
    bounds = list(function.regions[0].blocks[0].arguments)[-2:]
    if EXTENT not in function.attributes or RANGE in function.attributes:
        return {}
    bounded = [loop for loop in loops if list(loop.op.operands)[:2] == bounds]
    if not bounded or any(len(list(v.uses)) != len(bounded) for v in bounds):
        return {}
    extent = ir.IntegerAttr(function.attributes[EXTENT]).value
    block = BLOCK if extent >= MANY_BLOCKS * BLOCK else SMALL_BLOCK
    function.attributes[EXTENT] = i64(-(-extent // block))
    with ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]), function.location:
        low = arith.muli(bounds[0], nest.index(block))
        high = arith.minsi(arith.muli(bounds[1], nest.index(block)), nest.index(extent))
    for loop in bounded:
        loop.op.operands[0], loop.op.operands[1] = low, high
    return {loop.variable: extent for loop in bounded}


@dataclass(frozen=True)
class Rows:
    """A loop over rows that does nothing but run the innermost loop, which updates the same places in each."""

    op: ir.Operation
    count: int

    @property
    def variable(self) -> ir.Value:
        return self.op.regions[0].blocks[0].arguments[0]


def _rows_around(loop: Innermost) -> Rows | None:
    """The loop of which several steps can be taken at once: what they update stays in registers in between."""
    parent = loop.op.parent
    if parent is None or parent.operation.name != "scf.for" or loop.reductions:
        return None
    parent = parent.operation
    count, block = _steps(parent), parent.regions[0].blocks[0]
    if count is None or count < ROWS or len(parent.operands) != 3 or len(block.operations) != 2:
        return None
    if _constant(parent.operands[0]) != 0:
        return None
    row = block.arguments[0]
    stores = [op for op in loop.body if op.name == "memref.store"]
    loads = [op for op in loop.body if op.name == "memref.load"]
    updated = [(op.operands[1], list(op.operands)[2:]) for op in stores]
    if not stores or any(row in indices for _, indices in updated):
        return None
    if not any((op.operands[0], list(op.operands)[1:]) in updated for op in loads):
        return None
    # what depends on the row must be found by its number alone
    own = {id_of(op) for op in loop.body if op.name == "memref.load"}
    users = [use.owner.operation for use in row.uses]
    return Rows(parent, count) if all(id_of(op) in own for op in users) else None


def _running_orders(loop: Innermost, cpu: Cpu) -> dict[ir.Value, Order]:
    """The order of each maximum or minimum kept in memory: by what is loaded, and by the result that is stored."""
    found: dict[ir.Value, Order] = {}
    loads = {op.results[0]: op for op in loop.body if op.name == "memref.load"}
    for store in loop.body:
        value = store.operands[0] if store.name == "memref.store" else None
        if value is None or isinstance(value.owner, ir.Block):
            continue
        order = order_of(value.owner.operation, cpu)
        before = [v for v in value.owner.operation.operands if v in loads and len(list(v.uses)) == 1]
        same = [v for v in before if list(loads[v].operands) == list(store.operands)[1:]]
        if order is not None and len(same) == 1 and len(list(value.uses)) == 1:
            found[value] = found[same[0]] = order
    return found


def id_of(op: ir.Operation) -> ir.Value:
    """What an op with results is known by."""
    return op.results[0]


class _Vectors:
    """The vectors of one loop: what is the same in all steps in front of it, then the loop, then the rest."""

    def __init__(
        self,
        loop: Innermost,
        cpu: Cpu,
        cut: Mapping[ir.Value, int],
        past: Collection[ir.Value] = (),
        ahead: Mapping[ir.Value, int] = types.MappingProxyType({}),
        rows: Sequence[tuple[ir.Value, ir.Value]] = (),
    ) -> None:
        self.loop, self.cpu, self.ahead = loop, cpu, ahead
        self.total = cut.get(loop.variable)  # steps, where the loop runs over blocks of them
        self.running = _running_orders(loop, cpu) if rows else {}
        self.rows = rows  # what the variable of the loop around stands for, in each of the rows taken at once
        self.lanes, self.unroll = _lanes(loop, cpu), _unroll(loop) if not rows else 2
        self.step = self.lanes * self.unroll
        self.scalars: dict[ir.Value, ir.Value] = {}  # uniform values of the body, moved in front of the loop
        self.splats: dict[ir.Value, ir.Value] = {}
        self.orders = {r: order for r in loop.reductions if (order := order_of(r.op, cpu)) is not None}
        self.past = [op.operands[1] for op in loop.body if op.name == "memref.store" and self._streams(op, past)]
        self.streaming = False

    def _streams(self, store: ir.Operation, past: Collection[ir.Value]) -> bool:
        """Whether all vectors of a store stand at multiples of their size in an aligned buffer, as those of the first row."""
        buffer, indices = store.operands[1], list(store.operands)[2:]
        if base_of(buffer) not in past or not is_plain(buffer) or indices[-1] != self.loop.variable:
            return False
        size = element_bytes(ir.MemRefType(buffer.type).element_type)
        strides, _ = ir.MemRefType(buffer.type).get_strides_and_offset()
        whole = self.lanes * size
        return whole >= 32 and all(n * size % whole == 0 for n in strides[:-1])

    def emit(self) -> list[ir.Value]:
        op = self.loop.op
        low, high = op.operands[0], op.operands[1]
        for uniform in self.loop.uniform:
            made = _clone(uniform, [self.scalars.get(v, v) for v in uniform.operands])
            self.scalars.update(zip(uniform.results, made.results, strict=True))
        self._splat_uniform_operands()
        steps = _steps(op)
        if steps is not None:
            middle: int | ir.Value = (_constant(low) or 0) + steps // self.step * self.step
            has_rest = steps % self.step != 0
        elif self.total is not None and self.total % self.step == 0:
            middle, has_rest = high, False
        else:
            rest = arith.remui(arith.subi(high, low), nest.index(self.step))
            middle, has_rest = arith.subi(high, rest), True
        starts = [self._neutral(r) for r in self.loop.reductions for _ in range(self.unroll)]
        partial = starts
        if steps is None or steps >= self.step:
            partial = self._streaming_main(low, middle, starts) if self.past else self._main(low, middle, starts)
        if has_rest and self.cpu.masks:
            partial = self._masked_rest(middle, high, partial, steps)
        inits = list(op.operands)[3:]
        results = [self._together(r, partial, k, inits[k]) for k, r in enumerate(self.loop.reductions)]
        if has_rest and not self.cpu.masks:
            results = self._scalar_rest(middle, high, results)
        return results

    # --- loops

    def _main(self, low: ir.Value, middle: int | ir.Value, starts: Sequence[ir.Value]) -> list[ir.Value]:
        def body(place: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            done: list[list[ir.Value]] = []
            for u in range(self.unroll):
                first = nest.index(nest.add(place, u * self.lanes))
                done.append(self._once(first, carried[u :: self.unroll], None, number=u))
            return [done[u][k] for k in range(len(self.loop.reductions)) for u in range(self.unroll)]

        return nest.loop(low, middle, self.step, body, starts)

    def _streaming_main(self, low: ir.Value, middle: int | ir.Value, starts: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop with stores past the caches where the buffers are aligned for it, as those of the runtime are."""
        aligned = [Address.of(buffer).is_aligned(self.cpu.vector_bytes) for buffer in self.past]
        choice = scf.IfOp(functools.reduce(arith.andi, aligned), [v.type for v in starts], has_else=True)
        for block, self.streaming in ((choice.then_block, True), (choice.else_block, False)):
            with ir.InsertionPoint(block):
                scf.yield_(self._main(low, middle, starts))
        return list(choice.results)

    def _masked_rest(
        self, middle: int | ir.Value, high: ir.Value, partial: Sequence[ir.Value], steps: int | None
    ) -> list[ir.Value]:
        """What is left, by vectors of which the last is not full; it goes to the first partial results."""
        first, others = list(partial[:: self.unroll]), [v for i, v in enumerate(partial) if i % self.unroll]

        def body(place: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            return self._once(place, carried, self._mask(arith.subi(high, place)))

        if steps is not None and steps % self.step <= self.lanes:
            first = self._once(nest.index(middle), first, self._mask(steps % self.step))
        else:
            first = nest.loop(middle, high, self.lanes, body, first)
        rest = iter(others)
        return [v for start in first for v in (start, *(next(rest) for _ in range(self.unroll - 1)))]

    def _scalar_rest(self, middle: int | ir.Value, high: ir.Value, results: Sequence[ir.Value]) -> list[ir.Value]:
        """The loop as it was for the steps that are left; with several rows, once for each."""
        first = nest.index(middle)
        for row, value in self.rows or ((None, None),):
            clone = self.loop.op.clone().operation
            for place, operand in enumerate((first, high)):
                clone.operands[place] = operand
            for k, result in enumerate(results):
                clone.operands[3 + k] = result
            if row is not None:
                _replace(clone, row, value)
            results = list(clone.results)
        return list(results)

    def _mask(self, count: int | ir.Value) -> ir.Value:
        """The first `count` lanes."""
        if isinstance(count, int):
            return nest.first_lanes(self.lanes, count)
        ty = ir.IntegerType.get_signless(32)
        bound = vector.broadcast(self._vector(ty), arith.index_cast(ty, count))
        return arith.cmpi(arith.CmpIPredicate.slt, self._lane_numbers(ty), bound)

    # --- one vector

    def _once(
        self, place: ir.Value, carried: Sequence[ir.Value], mask: ir.Value | None, number: int = 0
    ) -> list[ir.Value]:
        """The body for the elements from `place` on; the partial results after it."""
        scalars = dict(self.scalars)
        scalars[self.loop.variable] = place
        lanes: dict[ir.Value, ir.Value] = {}
        updated: dict[ir.Value, ir.Value] = {}  # by buffer: the lanes to store, where there are several rows
        by_order = [r.op for r in self.orders]
        before = {r.carried: value for r, value in zip(self.loop.reductions, carried, strict=True)}

        def lane(value: ir.Value) -> ir.Value:
            if value in before:
                return before[value]
            if value in self.loop.linear and value not in lanes:
                lanes[value] = self._from_linear(scalars[value], value.type)
            return lanes[value] if value in lanes else self._splat(value)

        def places(op: ir.Operation, first: int) -> tuple[ir.Value, list[ir.Value]]:
            return op.operands[first], [scalars.get(i, i) for i in list(op.operands)[first + 1 :]]

        def body(*, last: bool) -> None:
            for op in self.loop.body:
                if op in by_order:
                    continue
                if op.name == "memref.load" and op.operands[0] in updated:
                    lanes[op.results[0]] = updated[op.operands[0]]
                elif op.name == "memref.load":
                    buffer, indices = places(op, 0)
                    lanes[op.results[0]] = self._load(buffer, indices, op.results[0].type, mask)
                    if (
                        op.results[0] in self.ahead
                        and number * self.lanes * element_bytes(op.results[0].type) % LINE == 0
                    ):
                        Address.of(buffer).at(indices).prefetch(self.ahead[op.results[0]])
                    if (order := self.running.get(op.results[0])) is not None:
                        lanes[op.results[0]] = order.keys_of(lanes[op.results[0]])
                elif op.name != "memref.store" and (order := self.running.get(op.results[0])) is not None:
                    keys, other = sorted(op.operands, key=lambda v: v not in self.running)
                    lanes[op.results[0]] = order.join_keys(lane(keys), order.keys_of(lane(other)))
                elif op.name == "memref.store" and not last:
                    updated[op.operands[1]] = lane(op.operands[0])
                elif op.name == "memref.store" and (order := self.running.get(op.operands[0])) is not None:
                    buffer, indices = places(op, 1)
                    self._store(order.float_of(lane(op.operands[0])), buffer, indices, mask)
                elif op.name == "memref.store":
                    buffer, indices = places(op, 1)
                    self._store(lane(op.operands[0]), buffer, indices, mask)
                elif op.results[0] in self.loop.linear:
                    scalars[op.results[0]] = _clone(op, [scalars.get(v, v) for v in op.operands]).results[0]
                elif op.name == "arith.index_cast" and op.operands[0] in self.loop.linear:
                    ty = op.results[0].type
                    lanes[op.results[0]] = self._from_linear(arith.index_cast(ty, scalars[op.operands[0]]), ty)
                else:
                    made = _clone(op, [lane(v) for v in op.operands], [self._vector(op.results[0].type)])
                    lanes[op.results[0]] = made.results[0]

        for r, (row, value) in enumerate(self.rows):
            scalars[row] = value
            body(last=r == len(self.rows) - 1)
        if not self.rows:
            body(last=True)
        after = [
            self.orders[r].join_keys(old, self.orders[r].keys_of(lane(r.element)))
            if r in self.orders
            else lanes[r.op.results[0]]
            for r, old in zip(self.loop.reductions, carried, strict=True)
        ]
        if mask is None:
            return after
        return [arith.select(mask, new, old) for new, old in zip(after, carried, strict=True)]

    def _load(self, buffer: ir.Value, indices: list[ir.Value], ty: ir.Type, mask: ir.Value | None) -> ir.Value:
        if mask is None:
            return vector.load(self._vector(ty), buffer, indices)
        return vector.maskedload(self._vector(ty), buffer, indices, mask, self._constant(ty, 0))

    def _store(self, value: ir.Value, buffer: ir.Value, indices: list[ir.Value], mask: ir.Value | None) -> None:
        if mask is not None:
            nest.store_lanes(value, buffer, indices, mask)
        elif self.streaming and buffer in self.past:
            whole = self.lanes * element_bytes(ir.MemRefType(buffer.type).element_type)
            vector.store(value, buffer, indices, nontemporal=True, alignment=whole)
        else:
            vector.store(value, buffer, indices)

    # --- values of all lanes

    def _vector(self, ty: ir.Type) -> ir.VectorType:
        return ir.VectorType.get([self.lanes], ty)

    def _splat_uniform_operands(self) -> None:
        """In front of the loop, so that the body finds them made."""
        for op in self.loop.body:
            values = list(op.operands)
            if op.name == "memref.load" or (op.results and op.results[0] in self.loop.linear):
                continue
            for value in values[:1] if op.name == "memref.store" else values:
                if self.loop.is_uniform(value):
                    self._splat(value)

    def _splat(self, value: ir.Value) -> ir.Value:
        if value not in self.splats:
            scalar = self.scalars.get(value, value)
            owner = scalar.owner
            if not isinstance(owner, ir.Block) and owner.operation.name == "arith.constant":
                ty = self._vector(value.type)
                splat = ir.DenseElementsAttr.get_splat(ty, owner.operation.attributes["value"])
                self.splats[value] = arith.ConstantOp(ty, splat).result
            else:
                self.splats[value] = vector.broadcast(self._vector(value.type), scalar)
        return self.splats[value]

    def _from_linear(self, first: ir.Value, ty: ir.Type) -> ir.Value:
        return arith.addi(vector.broadcast(self._vector(ty), first), self._lane_numbers(ty))

    def _lane_numbers(self, ty: ir.Type) -> ir.Value:
        vectors = self._vector(ty)
        numbers = ir.DenseElementsAttr.get([ir.IntegerAttr.get(ty, i) for i in range(self.lanes)], vectors)
        return arith.ConstantOp(vectors, numbers).result

    def _constant(self, ty: ir.Type, value: float | int) -> ir.Value:
        vectors = self._vector(ty)
        number = ir.FloatAttr.get(ty, value) if isinstance(ty, ir.FloatType) else ir.IntegerAttr.get(ty, int(value))
        return arith.ConstantOp(vectors, ir.DenseElementsAttr.get_splat(vectors, number)).result

    # --- reductions

    def _neutral(self, of: Reduction) -> ir.Value:
        ty, name = of.carried.type, of.op.name
        if of in self.orders:
            return self._constant(self.orders[of].integer, self.orders[of].neutral)
        if name in NEUTRAL:
            return self._constant(ty, NEUTRAL[name])
        width = ir.IntegerType(ty).width
        least, most = {
            "arith.maxsi": (-(1 << (width - 1)), 0),
            "arith.minsi": ((1 << (width - 1)) - 1, 0),
            "arith.maxui": (0, 0),
            "arith.minui": (-1, 0),
        }[name]
        return self._constant(ty, least + most)

    def _together(self, of: Reduction, partial: Sequence[ir.Value], number: int, init: ir.Value) -> ir.Value:
        """The partial results of all lanes and the start as one scalar: by halves, always in one order."""
        values = list(partial[number * self.unroll : (number + 1) * self.unroll])
        order = self.orders.get(of)

        def join(a: ir.Value, b: ir.Value) -> ir.Value:
            return order.join_keys(a, b) if order else _clone(of.op, [a, b], [a.type]).results[0]

        while len(values) > 1:
            values = [join(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
        value, lanes = values[0], self.lanes
        while lanes > 1:
            lanes //= 2
            low = vector.ShuffleOp(value, value, list(range(lanes))).result
            high = vector.ShuffleOp(value, value, list(range(lanes, 2 * lanes))).result
            value = join(low, high)
        scalar = vector.ExtractOp(value, [], [0]).result
        if order:
            scalar = order.float_of(scalar)
        return _clone(of.op, [init, scalar]).results[0]


def _replace(loop: ir.Operation, old: ir.Value, new: ir.Value) -> None:
    """Let the body of a loop use another value."""
    for op in loop.regions[0].blocks[0].operations:
        for place, operand in enumerate(op.operands):
            if operand == old:
                op.operands[place] = new


def _clone(op: ir.Operation, operands: Sequence[ir.Value], types: Sequence[ir.Type] | None = None) -> ir.Operation:
    """The op on other operands, and with results of other types; what it has of attributes stays."""
    attributes = {name: op.attributes[name] for name in op.attributes}
    return ir.Operation.create(
        op.name,
        results=[r.type for r in op.results] if types is None else list(types),
        operands=list(operands),
        attributes=attributes,
        loc=op.location,
    )
