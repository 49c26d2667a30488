"""The body of a loop on one vector: each of its ops once, on lanes.

What is the same in all vectors is made in front of the loop: uniform values and their splats, the addresses of step 0. The
ops themselves are read once into a list of `_Do`, since a body is written for every vector of a step and for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.core.collect import made_by, maker
from stablehlo_py.core.rewire import like
from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.ops.llvm_ops import is_ldexp
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.avx512_floats import has_instructions, scaled
from stablehlo_py.targets.cpu.emit.ordered_floats import Keys, Numbers, order_of
from stablehlo_py.targets.cpu.emit.streaming import LINE, Address
from stablehlo_py.targets.cpu.vectors.vector_halves import Words
from stablehlo_py.targets.cpu.vectors.vector_legality import PARTS, part_of
from stablehlo_py.targets.cpu.vectors.vector_plan import Plan, row_stride
from stablehlo_py.targets.cpu.vectors.vector_reductions import Lanes, State
from stablehlo_py.transforms.kernels.kernel_parallel import constant
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

Pair = tuple[ir.Value, ...]  # vectors of the real and the imaginary parts, or what a maximum is kept as from row to row


@record(frozen=False)
class Now:
    """One vector while its ops are written. values: by slot; place: the step of its first lane; behind: steps before it."""

    values: list[ir.Value | Pair | None]
    place: int | ir.Value
    here: Sequence[Address]  # of all accesses, at the first vector of the step
    behind: int
    mask: ir.Value | None
    row: int = 0
    is_last_row: bool = True
    half: int | None = None  # of the words that two vectors share, see `vector_halves`

    def lanes(self, slot: int) -> ir.Value:
        value = self.values[slot]
        assert value is not None and not isinstance(value, tuple)
        return value

    def pair(self, slot: int) -> Pair:
        value = self.values[slot]
        assert isinstance(value, tuple)
        return value


_Do = Callable[[Now], None]


class Body:
    """Ops are inserted where it is made for what stands in front of the loop, where it is called for the rest.

    row: what the variable of the loop around stands for in the first of the rows taken at once; count: how many there are.
    """

    def __init__(self, plan: Plan, cpu: Cpu, row: ir.Value | None = None, count: int = 1) -> None:
        self.plan, self.loop, self.count = plan, plan.loop, count
        vectors = None if plan.steps is None else plan.steps // plan.lanes
        self.reductions = [Lanes(r, plan.lanes, vectors, cpu) for r in self.loop.reductions]
        self.past: list[Address] = []
        self.is_streaming: bool | ir.Value = False  # whether what goes past the caches may
        self._row = row
        self._types: dict[ir.Type, ir.VectorType] = {}
        self._slots: dict[ir.Value, int] = {}
        self._values: list[ir.Value | Pair | None] = []  # by slot; those of the vector itself are None
        self._splats: dict[ir.Attribute, int] = {}
        self._numbers: dict[ir.Type, ir.Value] = {}
        self._places: dict[tuple[ir.Value, ...], int] = {}
        self._addresses: list[Address] = []
        self._shifts: dict[ir.Value, ir.Value | None] = {self.loop.variable: None}  # linear values in step 0
        self._running = self._running_orders(cpu) if row is not None else {}
        self._stored: dict[ir.Value, int] = {}  # by buffer: the slot that holds what the row before stored
        self._carried = [self._new_slot(r.carried) for r in self.loop.reductions]
        self._do: list[_Do] = []
        self._do_early: list[_Do] = []  # what is done a step ahead
        early = frozenset[ir.Value]() if plan.early is None else plan.early.values
        joined = {r.of.op.results[0] for r in self.reductions if r.order}
        for op in self.loop.body:
            if not (op.results and op.results[0] in joined):
                self._read(op)
                if any(v in early for v in op.results):
                    self._do_early.append(self._do.pop())
        self._crossing = [] if plan.early is None else [self._slots[v] for v in plan.early.carried]
        self._elements = [self._slot(r.element) for r in self.loop.reductions]
        self._after = [self._slots.get(r.op.results[0], -1) for r in self.loop.reductions]

    # --- one vector

    def addresses_at(self, place: int | ir.Value) -> list[Address]:
        """Where the elements of a step are."""
        if isinstance(place, ir.Value):
            place = arith.index_cast(ir.IntegerType.get_signless(64), place)
        return [address.moved(place) for address in self._addresses]

    def write(
        self,
        place: int | ir.Value,
        here: Sequence[Address],
        behind: int,
        carried: Sequence[ir.Value],
        mask: ir.Value | None = None,
    ) -> list[ir.Value]:
        """The ops for `lanes` elements, so many `behind` place; the states of all reductions after them."""
        return self.write_all(place, here, [(behind, carried)], mask)[0]

    def write_all(
        self,
        place: int | ir.Value,
        here: Sequence[Address],
        vectors: Sequence[tuple[int, Sequence[ir.Value]]],
        mask: ir.Value | None = None,
    ) -> list[list[ir.Value]]:
        """The same for several vectors, by what is behind and what is carried: each op for all of them before the next."""
        nows = self._shared([self._now(place, here, behind, carried, mask) for behind, carried in vectors])
        for row in range(self.count):
            for do in (*self._do_early, *self._do):
                for now in nows:
                    now.row, now.is_last_row = row, row == self.count - 1
                    do(now)
        return [self._after_one(now, carried, mask) for now, (_, carried) in zip(nows, vectors, strict=True)]

    def write_early(self, place: int | ir.Value, behind: Sequence[int]) -> list[ir.Value]:
        """What is done a step ahead, for vectors so many `behind` place: of one after the other what the rest uses."""
        here = self.addresses_at(place)
        nows = self._shared([self._now(place, here, b, (), None) for b in behind])
        for do in self._do_early:
            for now in nows:
                do(now)
        return [now.lanes(slot) for now in nows for slot in self._crossing]

    def write_late(
        self,
        place: int | ir.Value,
        here: Sequence[Address],
        vectors: Sequence[tuple[int, Sequence[ir.Value]]],
        early: Sequence[ir.Value],
    ) -> list[list[ir.Value]]:
        """The rest, as `write_all` has it all. early: what `write_early` gave for this place."""
        nows = self._shared([self._now(place, here, behind, carried, None) for behind, carried in vectors])
        done = iter(early)
        for now in nows:
            for slot in self._crossing:
                now.values[slot] = next(done)
        for do in self._do:
            for now in nows:
                do(now)
        return [self._after_one(now, carried, None) for now, (_, carried) in zip(nows, vectors, strict=True)]

    def _now(
        self,
        place: int | ir.Value,
        here: Sequence[Address],
        behind: int,
        carried: Sequence[ir.Value],
        mask: ir.Value | None,
    ) -> Now:
        at = nest.add(place, behind) if self._numbers else place
        now = Now(list(self._values), at, here, behind, mask)
        for slot, state in zip(self._carried, self.states_of(carried) if carried else (), strict=bool(carried)):
            now.values[slot] = state[0]
        return now

    def _shared(self, nows: list[Now]) -> list[Now]:
        """Let each two vectors share words, where they do and none is alone."""
        if self.plan.halves and len(nows) % 2 == 0:
            for number, now in enumerate(nows):
                now.half = number % 2
        return nows

    def _after_one(self, now: Now, carried: Sequence[ir.Value], mask: ir.Value | None) -> list[ir.Value]:
        after: list[ir.Value] = []
        for r, state, element, slot in zip(
            self.reductions, self.states_of(carried), self._elements, self._after, strict=True
        ):
            after += r.with_floats(state, now.lanes(element)) if r.order else [now.lanes(slot)]
        if mask is None:
            return after
        return [arith.select(mask, new, old) for new, old in zip(after, carried, strict=True)]

    def states_of(self, values: Sequence[ir.Value]) -> list[State]:
        """The states of the reductions that stand one behind the other."""
        rest = iter(values)
        return [[next(rest) for _ in range(r.width)] for r in self.reductions]

    # --- reading the body

    def _read(self, op: ir.Operation) -> None:
        result = op.results[0] if op.results else None
        if result is not None and result in self.loop.linear:
            operands = [self._at_step_0(v) if v in self.loop.linear else v for v in op.operands]
            self._shifts[result] = like(op, operands, result.type).results[0]
        elif op.name == "memref.load":
            self._do.append(self._load(op))
        elif op.name == "memref.store":
            self._do.append(self._store(op))
        elif op.name == "arith.index_cast" and op.operands[0] in self.loop.linear:
            self._count_from(op.operands[0], op.results[0])
        elif (running := self._running.get(op.results[0])) is not None:
            self._do.append(self._join_running(op, running))
        elif op.name in PARTS or (result is not None and isinstance(result.type, ir.ComplexType)):
            self._do.append(self._on_parts(op))
        else:
            self._do.append(self._on_lanes(op))

    def _at_step_0(self, linear: ir.Value) -> ir.Value:
        return self._shifts[linear] or nest.index(0)

    def _on_lanes(self, op: ir.Operation) -> _Do:
        name, ty = op.name, [self._vector(op.results[0].type)]
        attributes = {key: op.attributes[key] for key in op.attributes} or None
        operands = [self._slot(v) for v in op.operands]
        slot = self._new_slot(op.results[0])

        scales = is_ldexp(op) and isinstance(op.operands[1].type, ir.FloatType)  # see float_exponents

        def do(now: Now) -> None:
            lanes = [now.lanes(s) for s in operands]
            if scales:
                now.values[slot] = scaled(*lanes)
                return
            now.values[slot] = ir.Operation.create(name, results=ty, operands=lanes, attributes=attributes).results[0]

        return do

    def _on_parts(self, op: ir.Operation) -> _Do:
        """A complex number put together, taken apart, or one of two of them."""
        name, operands = op.name, [self._slot(v) for v in op.operands]
        slot = self._new_slot(op.results[0])

        def do(now: Now) -> None:
            if name == "complex.create":
                now.values[slot] = now.lanes(operands[0]), now.lanes(operands[1])
            elif name == "arith.select":
                choice, (a, b), (c, d) = now.lanes(operands[0]), now.pair(operands[1]), now.pair(operands[2])
                now.values[slot] = arith.select(choice, a, c), arith.select(choice, b, d)
            else:
                now.values[slot] = now.pair(operands[0])[name == "complex.im"]

        return do

    def _load(self, op: ir.Operation) -> _Do:
        buffer, result = op.operands[0], op.results[0]
        access, ty = self._access(buffer, list(op.operands)[1:]), self._vector(part_of(result.type))
        by_row = self._row_stride(op)
        running, ahead = self._running.get(result), (self.plan.ahead or {}).get(result)
        stored, slot = self._stored_slot(buffer), self._new_slot(result)
        size, is_complex = element_bytes(result.type), isinstance(result.type, ir.ComplexType)
        words = Words(self.plan.lanes)

        def do(now: Now) -> None:
            if stored is not None and now.values[stored] is not None:
                now.values[slot] = now.values[stored]
                return
            here = now.here[access].moved(now.behind + now.row * by_row)
            if now.half is not None:
                lanes = words.load(here, now.half)
            else:
                lanes = here.load_pair(ty) if is_complex else here.load(ty, now.mask)
            if ahead is not None and now.behind * size % LINE == 0:
                here.prefetch(ahead)
            now.values[slot] = running.of(lanes) if running and not isinstance(lanes, tuple) else lanes

        return do

    def _store(self, op: ir.Operation) -> _Do:
        value, buffer = op.operands[0], op.operands[1]
        access, source = self._access(buffer, list(op.operands)[2:]), self._slot(value)
        running, is_past = self._running.get(value), buffer in self.plan.past
        if is_past:
            self.past.append(self._addresses[access])
        stored = self._stored_slot(buffer)
        words = Words(self.plan.lanes)

        def do(now: Now) -> None:
            lanes = now.values[source]
            assert lanes is not None
            if now.half == 0:
                words.keep(lanes)
                return
            if not now.is_last_row:
                assert stored is not None
                now.values[stored] = lanes
                return
            here = now.here[access].moved(now.behind)

            def store(*, streaming: bool) -> None:
                if now.half is not None:
                    words.store(here, lanes, streaming=streaming)
                elif not isinstance(lanes, tuple):
                    here.store(lanes, now.mask, streaming=streaming)
                elif running:
                    here.store(running.floats(lanes), now.mask, streaming=streaming)
                else:
                    here.store_pair(*lanes, streaming=streaming)

            may_stream = self.is_streaming if is_past and now.mask is None else False
            nest.when(may_stream, lambda: store(streaming=True), lambda: store(streaming=False))

        return do

    def _stored_slot(self, buffer: ir.Value) -> int | None:
        """Where rows leave to the next what they would store."""
        if self.count == 1:
            return None
        if buffer not in self._stored:
            self._values.append(None)
            self._stored[buffer] = len(self._values) - 1
        return self._stored[buffer]

    def _row_stride(self, load: ir.Operation) -> int:
        return row_stride(load, self.plan.rows.variable) if self.plan.rows and self._row is not None else 0

    # --- maxima and minima kept in memory from row to row

    def _running_orders(self, cpu: Cpu) -> dict[ir.Value, Keys | Numbers]:
        """How each is kept: by what is loaded, and by the result that is stored."""
        found: dict[ir.Value, Keys | Numbers] = {}
        loads = {op.results[0]: op for op in self.loop.body if op.name == "memref.load"}
        for store in self.loop.body:
            value = store.operands[0] if store.name == "memref.store" else None
            joined = None if value is None else maker(value)
            if value is None or joined is None:
                continue
            order = order_of(joined, cpu)
            before = [v for v in joined.operands if v in loads and len(list(v.uses)) == 1]
            same = [v for v in before if list(loads[v].operands) == list(store.operands)[1:]]
            if order is not None and len(same) == 1 and len(list(value.uses)) == 1:
                kept = Numbers if has_instructions(self._vector(value.type), cpu) else Keys
                found[value] = found[same[0]] = kept(order)
        return found

    def _join_running(self, op: ir.Operation, running: Keys | Numbers) -> _Do:
        before, other = (self._slot(v) for v in sorted(op.operands, key=lambda v: v not in self._running))
        slot = self._new_slot(op.results[0])

        def do(now: Now) -> None:
            now.values[slot] = tuple(running.join_floats(now.pair(before), now.lanes(other)))

        return do

    # --- values in front of the loop

    def _access(self, buffer: ir.Value, indices: list[ir.Value]) -> int:
        """The number of an address that grows by an element a step."""
        key = (buffer, *indices)
        if key not in self._places:
            self._places[key] = len(self._addresses)
            self._addresses.append(Address.of(buffer, [self._first(index) for index in indices]))
        return self._places[key]

    def _first(self, index: ir.Value) -> int | ir.Value:
        """An index of an access in the step of number 0."""
        if index in self.loop.linear:
            shift = self._shifts[index]
            return 0 if shift is None else shift
        own = self._row if self.plan.rows and index == self.plan.rows.variable else index
        assert own is not None
        number = constant(own)
        return own if number is None else number

    def _new_slot(self, value: ir.Value) -> int:
        self._slots[value] = len(self._values)
        self._values.append(None)
        return self._slots[value]

    def _slot(self, value: ir.Value) -> int:
        if value in self._slots:
            return self._slots[value]
        if value in self.loop.linear:
            return self._count_from(value, value)
        slot = self._slots[value] = len(self._values)
        if isinstance(value.type, ir.ComplexType):
            part = part_of(value.type)
            parts = [
                ir.Operation.create(name, results=[part], operands=[value]).results[0]
                for name in ("complex.re", "complex.im")
            ]
            self._values.append(
                (vector.broadcast(self._vector(part), parts[0]), vector.broadcast(self._vector(part), parts[1]))
            )
            return slot
        ty, scalar = self._vector(value.type), made_by(value, "arith.constant")
        if scalar is None:
            self._values.append(vector.broadcast(ty, value))
            return slot
        number = scalar.attributes["value"]
        if number in self._splats:
            self._slots[value] = self._splats[number]
            return self._splats[number]
        self._splats[number] = slot
        self._values.append(arith.constant(ty, ir.DenseElementsAttr.get_splat(ty, number)))
        return slot

    def _count_from(self, linear: ir.Value, result: ir.Value) -> int:
        """Let `result` have the number of each lane's step, and what `linear` is more than that."""
        slot, ty, shift = self._new_slot(result), result.type, self._shifts[linear]
        if ty not in self._numbers:
            self._numbers[ty] = nest.lane_numbers(self._vector(ty))

        def do(now: Now) -> None:
            first = nest.index(now.place if shift is None else nest.add(now.place, shift))
            first = first if isinstance(ty, ir.IndexType) else arith.index_cast(ty, first)
            now.values[slot] = arith.addi(vector.broadcast(self._vector(ty), first), self._numbers[ty])

        self._do.append(do)
        return slot

    def _vector(self, ty: ir.Type) -> ir.VectorType:
        if ty not in self._types:
            self._types[ty] = ir.VectorType.get([self.plan.lanes], ty)
        return self._types[ty]
