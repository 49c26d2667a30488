"""Cut a StableHLO program into kernels: @main keeps calls and control flow, each kernel becomes a private function.

Kernels are formed while the ops still say what they mean: elementwise ops of one shape join one kernel, everything else
is a kernel of its own; splat constants, iotas and broadcasts are repeated in each kernel that reads them, since reading
an index is cheaper than reading memory. Equal kernels (equal text) are one function.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from stablehlo_py.core import registry
from stablehlo_py.core.passes import Pass
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.mlir import ir

KERNEL = "kernel"  # the attribute that marks a kernel function; its value is the kernel's kind
INPLACE = "kernel.inplace"  # pairs of numbers: an operand, and the result that updates it in place
CONTROL = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case", "func.call"})
# A buffer under another shape: no work, so no kernel.
ALIASES = frozenset({"stablehlo.reshape", "stablehlo.optimization_barrier"})
# A kernel with more ops than this takes LLVM longer than linear time.
MOST_OPS = 200


@dataclass
class Unit:
    """Ops that become one kernel, or one op that stays in @main."""

    number: int
    ops: list[ir.Operation]
    kind: str = ""  # "" stays in @main
    shape: tuple[int, ...] | None = None  # of an elementwise unit
    before: int = 0  # bits of the units it depends on, through others too
    parents: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class HloFormKernels(Pass):
    """Cut @main into kernels: private functions that it calls, equal ones only once."""

    name: ClassVar[str] = "hlo-form-kernels"
    fuse: bool = True  # join elementwise ops of one shape

    def run(self, op: ir.Operation) -> None:
        body = op.regions[0].blocks[0]
        functions = [f.operation for f in body.operations if f.operation.name == "func.func"]
        import stablehlo_py.ops  # noqa: F401 - registers every family

        former = _Former(op, self.fuse)
        for function in functions:
            if KERNEL not in function.attributes:
                for region in function.regions:
                    for block in region.blocks:
                        former.cut(block)


class _Former:
    def __init__(self, module: ir.Operation, fuse: bool) -> None:
        self.fuse = fuse
        self.body = module.regions[0].blocks[0]
        self.names: dict[str, str] = {}  # kernel text -> symbol

    def cut(self, block: ir.Block) -> None:
        """Replace the ops of a block by calls of kernels; regions of control flow first."""
        for op in list(block.operations):
            if op.operation.name == "stablehlo.if":
                _if_to_case(op.operation)
        for op in block.operations:
            if op.operation.name in CONTROL:
                for region in op.operation.regions:
                    for inner in region.blocks:
                        self.cut(inner)
        operations = [o.operation for o in block.operations]
        terminator = operations.pop()
        units = _Grouping(self.fuse).units(operations)
        outlined = {op for unit in units if unit.kind for op in unit.ops}
        rest = [op for op in operations if op not in outlined]
        for unit in _ordered(units):
            if unit.kind:
                self.outline(unit, terminator)
            else:
                unit.ops[0].move_before(terminator)
        for op in reversed(rest):
            if _is_dead(op):
                op.erase()

    def outline(self, unit: Unit, terminator: ir.Operation) -> None:
        """Move a unit's ops into a function and call it in their place."""
        inside = set(unit.ops)
        outputs = [v for op in unit.ops for v in op.results if _used_outside(v, inside)]
        ops = _with_cheap_producers(unit.ops)
        produced = {v for op in ops for v in op.results}
        inputs = list(dict.fromkeys(v for op in ops for v in _uses(op) if v not in produced))
        symbol = self.kernel(unit.kind, ops, inputs, outputs)
        with ir.InsertionPoint(terminator), unit.ops[-1].location:
            call = ir.Operation.create(
                "func.call",
                results=[v.type for v in outputs],
                operands=inputs,
                attributes={"callee": ir.FlatSymbolRefAttr.get(symbol)},
            )
        for old, new in zip(outputs, call.results, strict=True):
            old.replace_all_uses_with(new)
        for op in reversed(unit.ops):
            op.erase()

    def kernel(self, kind: str, ops: list[ir.Operation], inputs: list[ir.Value], outputs: list[ir.Value]) -> str:
        """The symbol of a function that does `ops`; an equal one that is there already is taken."""
        with ir.InsertionPoint(self.body), ops[-1].location:
            function = ir.Operation.create(
                "func.func",
                attributes={
                    "sym_name": ir.StringAttr.get("kernel"),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(
                        ir.FunctionType.get([v.type for v in inputs], [v.type for v in outputs])
                    ),
                    KERNEL: ir.StringAttr.get(kind),
                },
                regions=1,
            )
        block = function.regions[0].blocks.append(*[v.type for v in inputs], arg_locs=[ops[-1].location] * len(inputs))
        values = dict(zip(inputs, block.arguments, strict=True))
        with ir.InsertionPoint(block):
            for op in ops:
                clone = op.clone()
                _remap(clone, values)
                values.update(zip(op.results, clone.results, strict=True))
            ir.Operation.create("func.return", operands=[values[v] for v in outputs], loc=ops[-1].location)
        text = str(function)
        symbol = self.names.get(text)
        if symbol is not None:
            function.erase()
            return symbol
        pairs = _updates_in_place(ops[-1], inputs, outputs) if kind == "single" else []
        if pairs:
            function.attributes[INPLACE] = ir.DenseI64ArrayAttr.get(pairs)
        symbol = self.names[text] = f"{_title(kind, ops)}_{len(self.names)}"
        function.attributes["sym_name"] = ir.StringAttr.get(symbol)
        return symbol


def _if_to_case(op: ir.Operation) -> None:
    """if p: a else: b == case (p ? 0 : 1) of a, b."""
    predicate = op.operands[0]
    number = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32), loc=op.location)
    with ir.InsertionPoint(op), op.location:
        flipped = ir.Operation.create("stablehlo.not", results=[predicate.type], operands=[predicate])
        index = ir.Operation.create("stablehlo.convert", results=[number], operands=[flipped.results[0]])
        case = ir.Operation.create(
            "stablehlo.case", results=[r.type for r in op.results], operands=[index.results[0]], regions=2
        )
    for old, new in zip(op.regions, case.regions, strict=True):
        old.blocks[0].append_to(new)
    for old, new in zip(op.results, case.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _updates_in_place(op: ir.Operation, inputs: list[ir.Value], outputs: list[ir.Value]) -> list[int]:
    """The pairs of `INPLACE` for a kernel of one op, by the op's own declaration."""
    pairs: list[int] = []
    operands = list(op.operands)
    for result, operand in registry.in_place(op.name, operands=len(operands), results=len(op.results)):
        value = operands[operand]
        if value in inputs and op.results[result] in outputs and operands.count(value) == 1:
            pairs += [inputs.index(value), outputs.index(op.results[result])]
    return pairs


def _title(kind: str, ops: list[ir.Operation]) -> str:
    """A readable name: the kind, and for a group its last op."""
    last = ops[-1].name.rpartition(".")[2]
    return last if kind in (last, "single") else f"{kind}_{last}"


def _remap(op: ir.Operation, values: dict[ir.Value, ir.Value]) -> None:
    """Let `op` and the ops in its regions use the new values."""
    for i, operand in enumerate(op.operands):
        if operand in values:
            op.operands[i] = values[operand]
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                _remap(inner.operation, values)


def _uses(op: ir.Operation) -> Iterable[ir.Value]:
    """The values from outside that an op and its regions use."""
    yield from op.operands
    if not any(True for _ in op.regions):
        return
    own: set[ir.Value] = set()
    for region in op.regions:
        for block in region.blocks:
            own.update(block.arguments)
            for inner in block.operations:
                for value in _uses(inner.operation):
                    if value not in own:
                        yield value
                own.update(inner.operation.results)


def _used_outside(value: ir.Value, ops: set[ir.Operation]) -> bool:
    return any(_top(use.owner, ops) is None for use in value.uses)


def _top(user: ir.Operation | ir.OpView, ops: set[ir.Operation]) -> ir.Operation | None:
    """The op of `ops` that is `user` or holds it in a region."""
    current: ir.Operation | None = user.operation
    while current is not None:
        if current in ops:
            return current
        parent = current.parent
        current = parent.operation if parent is not None and parent.operation.name != "func.func" else None
    return None


def _is_dead(op: ir.Operation) -> bool:
    return op.name not in CONTROL and all(not any(True for _ in v.uses) for v in op.results)


def is_cheap(op: ir.Operation) -> bool:
    """Ops whose value costs less to make again than to read: splats, iotas, and broadcasts of anything."""
    if op.name == "stablehlo.constant":
        view_ = view(op)
        return isinstance(view_, Constant) and (view_.type.size <= 1 or view_.splat is not None)
    return op.name == "stablehlo.iota"


def _with_cheap_producers(ops: list[ir.Operation]) -> list[ir.Operation]:
    """`ops` preceded by the cheap ops around them that they read, and by the broadcasts that elementwise ops read."""
    listed = list(ops)
    known = set(ops)
    position = 0
    added: list[ir.Operation] = []
    absorbs = all(_is_elementwise(op) for op in ops)
    while position < len(listed):
        for value in _uses(listed[position]):
            owner = value.owner
            if isinstance(owner, ir.Block):
                continue
            producer = owner.operation
            if producer in known:
                continue
            if is_cheap(producer) or (absorbs and producer.name == "stablehlo.broadcast_in_dim"):
                known.add(producer)
                listed.append(producer)
                added.append(producer)
        position += 1
    return _producers_first([*added, *ops])


def _producers_first(ops: list[ir.Operation]) -> list[ir.Operation]:
    done: list[ir.Operation] = []
    seen: set[ir.Operation] = set()
    wanted = set(ops)

    def visit(op: ir.Operation) -> None:
        if op in seen:
            return
        seen.add(op)
        for value in op.operands:
            if not isinstance(value.owner, ir.Block) and value.owner.operation in wanted:
                visit(value.owner.operation)
        done.append(op)

    for op in ops:
        visit(op)
    return done


def _is_elementwise(op: ir.Operation) -> bool:
    """One result, one scalar rule, and every operand of the result's shape or 0-d."""
    if registry.scalar.find(op.name) is None or len(op.results) != 1 or len(op.regions) > 0:
        return False
    shape = tensor_type(op.results[0].type).shape
    return all(tensor_type(v.type).shape in (shape, ()) for v in op.operands)


class _Grouping:
    """Which ops of one block become one kernel.

    Ops come in order. An elementwise op joins the units of its operands where no path leads out of the joined unit and
    back in; `before` keeps the units on which each unit depends, as bits, so that this is one mask.
    """

    def __init__(self, fuse: bool) -> None:
        self.fuse = fuse
        self.all: dict[int, Unit] = {}
        self.unit_of: dict[ir.Operation, int] = {}
        self.merged: dict[int, int] = {}
        self.order: dict[ir.Operation, int] = {}

    def units(self, operations: list[ir.Operation]) -> list[Unit]:
        mine = set(operations)
        self.order = {op: i for i, op in enumerate(operations)}
        readers_absorb = {op for op in operations if op.name == "stablehlo.broadcast_in_dim" and _only_absorbed(op)}
        for op in operations:
            if op in readers_absorb or (is_cheap(op) and not _needed_itself(op)):
                continue
            self.add(op, mine)
        return list(self.all.values())

    def add(self, op: ir.Operation, mine: set[ir.Operation]) -> None:
        parents = {self.root(self.unit_of[p]) for p in _producers(op, mine) if p in self.unit_of}
        elementwise = self.fuse and _is_elementwise(op)
        shape = tensor_type(op.results[0].type).shape if elementwise else None
        number = len(self.unit_of)
        kind = "" if op.name in CONTROL | ALIASES or _stays(op) else "elementwise" if _is_elementwise(op) else "single"
        unit = Unit(number, [op], kind, shape)
        self.all[number] = unit
        self.unit_of[op] = number
        unit.parents = parents
        for p in parents:
            unit.before |= self.all[p].before | (1 << p)
        # a join can open the way for another: what was around a unit may be inside it now
        while elementwise and any(self.try_join(p, unit) for p in sorted(unit.parents, reverse=True)):
            pass

    def root(self, number: int) -> int:
        while number in self.merged:
            number = self.merged[number]
        return number

    def try_join(self, number: int, unit: Unit) -> bool:
        """Let `unit` take in the unit that makes one of its operands, if they fit and no path goes around."""
        other = self.all[number]
        if other.shape is None or other.shape != unit.shape or other.kind != "elementwise":
            return False
        if len(other.ops) + len(unit.ops) > MOST_OPS:
            return False
        if any(self.all[p].before >> number & 1 for p in unit.parents if p != number):
            return False
        unit.ops = sorted(other.ops + unit.ops, key=self.order.__getitem__)
        unit.parents = {p for p in unit.parents | other.parents if p not in (number, unit.number)}
        unit.before = 0
        for p in unit.parents:
            unit.before |= self.all[p].before | (1 << p)
        del self.all[number]
        self.merged[number] = unit.number
        old, new = 1 << number, 1 << unit.number
        for later in self.all.values():
            if later.before & old:
                later.before = (later.before & ~old) | new | unit.before
                if number in later.parents:
                    later.parents = (later.parents - {number}) | {unit.number}
        return True


def _producers(op: ir.Operation, mine: set[ir.Operation]) -> set[ir.Operation]:
    """The ops of this block that make what `op` reads, seen through what will be repeated in its kernel."""
    found: set[ir.Operation] = set()
    waiting = [v for v in _uses(op)]
    while waiting:
        owner = waiting.pop().owner
        if isinstance(owner, ir.Block) or owner.operation not in mine:
            continue
        producer = owner.operation
        if producer.name == "stablehlo.broadcast_in_dim":
            waiting.extend(producer.operands)
        found.add(producer)
    return found


def _only_absorbed(op: ir.Operation) -> bool:
    """Whether every reader of a broadcast repeats it inside its own kernel."""
    readers = [use.owner.operation for use in op.results[0].uses]
    return bool(readers) and all(
        (_is_elementwise(r) or (r.name == "stablehlo.broadcast_in_dim" and _only_absorbed(r))) and _same_block(op, r)
        for r in readers
    )


def _same_block(a: ir.Operation, b: ir.Operation) -> bool:
    return a.block == b.block


def _needed_itself(op: ir.Operation) -> bool:
    """Whether a cheap op is read by something that is not a kernel: control flow, a return, another block's alias."""
    return any(
        (r := use.owner.operation).name in CONTROL | ALIASES
        or r.name in ("func.return", "stablehlo.return")
        or not _same_block(op, r)
        for use in op.results[0].uses
    )


def _stays(op: ir.Operation) -> bool:
    """Constants that are data: they stay in @main as buffers of the program."""
    if op.name != "stablehlo.constant":
        return False
    constant = view(op)
    assert isinstance(constant, Constant)
    return constant.splat is None or constant.type.bytes <= 4096


def _ordered(units: list[Unit]) -> list[Unit]:
    """Each unit after those it depends on, else in the order of the program."""
    by_number = {u.number: u for u in units}
    done: list[Unit] = []
    state: dict[int, bool] = {}
    for root in units:
        stack = [(root.number, False)]
        while stack:
            number, ready = stack.pop()
            if ready:
                done.append(by_number[number])
                continue
            if number in state:
                continue
            state[number] = True
            stack.append((number, True))
            stack.extend((p, False) for p in sorted(by_number[number].parents, reverse=True) if p not in state)
    return done
