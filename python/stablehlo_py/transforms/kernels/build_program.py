"""@main, cut into kernels, as a Program: which kernels run on which buffers in which order.

Values become buffers, calls become launches, custom calls become host calls, a reshape is its operand's buffer under
another name. A while keeps its carried values in buffers of their own; what the body computes for the next step goes
there directly where nothing reads the old value any more, else through a copy at the end of the step. An update in
place takes its operand's buffer when that is dead afterwards. A slice without gaps is a view of where it lies, as long
as nobody changes that; what becomes such a slice of another value is made there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.errors import BadInput
from stablehlo_py.later import Later
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, fields, record
from stablehlo_py.runtime.program import (
    ArrayType,
    Buffer,
    Case,
    Command,
    Copy,
    Fill,
    Host,
    Index,
    Kernel,
    Kind,
    Launch,
    Program,
    View,
    While,
)
from stablehlo_py.transforms.kernels.grouping import ALIASES
from stablehlo_py.transforms.kernels.memory_pieces import Piece

if TYPE_CHECKING:
    from stablehlo_py.dialects import custom_call
else:
    custom_call = Later("stablehlo_py.dialects.custom_call")

_MOST_DIMENSIONS = 64  # of an array of NumPy 2


@record
class KernelInfo:
    """What a program must know of a kernel.

    scratch: bytes of its scratch buffers. in_place: (operand, result) where a result updates an operand. reuse: numbers of
    buffers, inputs and outputs counted together, where one that is written may be one that is read. extent: steps of
    its outermost loop when it can be split, else 0. work: ops that it runs, roughly. grain: steps of a piece, at least.
    shared: bytes of buffers that all parts share, in front of scratch. phases: where it is not one launch over all steps,
    begin and end of each; what one leaves in a shared buffer is there for the next. work is that of one then.
    """

    scratch: tuple[int, ...] = ()
    in_place: tuple[tuple[int, int], ...] = ()
    reuse: tuple[tuple[int, int], ...] = ()
    extent: int = 0
    work: int = 0
    grain: int = 1
    shared: tuple[int, ...] = ()
    phases: tuple[tuple[int, int], ...] = ()

    def to_bytes(self) -> bytes:
        return json.dumps({one.name: getattr(self, one.name) for one in fields(KernelInfo)}).encode()

    @staticmethod
    def from_bytes(data: bytes) -> KernelInfo:
        """What `to_bytes` wrote; ValueError or TypeError for anything else."""
        fields = json.loads(data)
        for name in ("in_place", "reuse", "phases"):
            fields[name] = tuple((a, b) for a, b in fields[name])
        for name in ("scratch", "shared"):
            fields[name] = tuple(fields[name])
        return KernelInfo(**fields)


def build_program(
    main: ir.Operation, kernels: Mapping[str, KernelInfo], pieces: Mapping[str, Piece] | None = None
) -> Program:
    """The Program of a function that holds calls, control flow, constants and aliases only.

    pieces: what kernels move, where the target can do with a view instead.
    """
    return _Builder(kernels, pieces or {}).program(main)


@record(frozen=False)
class _Scope:
    """One block while it is being translated.

    left: how often each value is still read in this block, regions included. own: buffers that this block may
    overwrite once their value is dead. wanted: the buffer in which a value should end up. tenants: the latest value in
    each buffer. fresh: buffers that the op which is being translated leaves a result in. into: for a value that is only
    made to be put into another one, the call that does so.
    """

    left: Counter[ir.Value]
    own: set[int] = field(default_factory=set)
    wanted: dict[ir.Value, int] = field(default_factory=dict)
    tenants: dict[int, ir.Value] = field(default_factory=dict)
    fresh: set[int] = field(default_factory=set)
    into: dict[ir.Value, ir.Operation] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)


class _Builder:
    def __init__(self, kernels: Mapping[str, KernelInfo], pieces: Mapping[str, Piece]) -> None:
        self.infos, self.pieces = kernels, pieces
        self.numbers: dict[str, int] = {}
        self.kernels: list[Kernel] = []
        self.buffers: list[Buffer] = []
        self.constants: list[np.ndarray] = []
        self.host_calls: dict[str, int] = {}  # custom call, as JSON -> its number
        self.where: dict[ir.Value, int] = {}  # value -> buffer
        self.roots: dict[ir.Value, ir.Value] = {}  # value -> the value whose buffer it shares
        self.lies_in: dict[ir.Value, ir.Value] = {}  # value that is a view -> the value that it is a part of

    def program(self, main: ir.Operation) -> Program:
        block = main.regions[0].blocks[0]
        for i, argument in enumerate(block.arguments):
            self.where[argument] = self.buffer(tensor_type(argument.type).bytes, "argument", i)
        terminator = block.operations[len(block.operations) - 1].operation
        results = [self.buffer(tensor_type(v.type).bytes, "result", i) for i, v in enumerate(terminator.operands)]
        commands = self.block(block, results)
        return Program(
            buffers=tuple(self.buffers),
            commands=tuple(commands),
            kernels=tuple(self.kernels),
            constants=tuple(self.constants),
            arguments=tuple(_array_type(tensor_type(v.type)) for v in block.arguments),
            results=tuple(_array_type(tensor_type(v.type)) for v in terminator.operands),
            donors=_donors(main),
            host_calls=tuple(self.host_calls),
        )

    def buffer(self, size: int, kind: Kind = "temporary", index: int = 0) -> int:
        self.buffers.append(Buffer(len(self.buffers), size, kind, index))
        return len(self.buffers) - 1

    def size(self, buffer: int) -> int:
        return self.buffers[buffer].bytes

    def root(self, value: ir.Value) -> ir.Value:
        return self.roots.get(value, value)

    def block(
        self, block: ir.Block, targets: Sequence[int], tenants: dict[int, ir.Value] | None = None
    ) -> list[Command]:
        """The commands of a block that leave what its terminator passes on in `targets`.

        tenants: the values that the block finds in buffers that it may overwrite.
        """
        operations = [o.operation for o in block.operations]
        terminator = operations.pop()
        for op in operations:
            if op.name in ALIASES:
                for result, operand in zip(op.results, op.operands, strict=True):
                    self.roots[result] = self.root(operand)
        outputs = [self.root(v) for v in terminator.operands]
        steps = [op for op in operations if op.name not in ALIASES]
        reads = [self.uses_of(op) for op in steps]
        self.find_views(steps, reads, outputs, tenants or {})
        left: Counter[ir.Value] = Counter()
        for uses in (*reads, Counter(outputs)):
            left.update(self.with_sources(uses))
        scope = _Scope(left, own=set(tenants or ()), tenants=tenants or {})
        made_here = {r for op in operations for r in op.results}
        for op in steps:
            piece = self.piece(op)
            if (
                piece is not None
                and piece.update is not None
                and left[update := self.root(op.operands[piece.update])] == 1
            ):
                scope.into[update] = op
        for value, target in zip(outputs, targets, strict=True):
            if value in made_here:
                scope.wanted.setdefault(value, target)
        for op in reversed(operations):
            self.pass_wishes_back(op, scope, made_here)
        for op in operations:
            self.op(op, scope)
        self.deliver(outputs, targets, scope)
        return scope.commands

    def piece(self, op: ir.Operation) -> Piece | None:
        """What a call moves, where a view can do that."""
        return self.pieces.get(ir.FlatSymbolRefAttr(op.attributes["callee"]).value) if op.name == "func.call" else None

    def find_views(
        self,
        steps: Sequence[ir.Operation],
        reads: Sequence[Counter[ir.Value]],
        outputs: Sequence[ir.Value],
        tenants: Mapping[int, ir.Value],
    ) -> None:
        """Find the slices of a block that can be views: of values that stay as they are until the slice was last read."""
        changes: dict[ir.Value, int] = {}  # where a value's buffer may first be given to another one
        made_at = {result: i for i, op in enumerate(steps) for result in op.results}
        for i, op in enumerate(steps):
            for value in self.changed_by(op):
                changes.setdefault(value, i)
        for value, following in zip(tenants.values(), outputs, strict=False):
            if following in made_at:
                changes[value] = min(changes.get(value, len(steps)), made_at[following])
        last: dict[ir.Value, int] = {}
        for i, read in enumerate(reads):
            last.update(dict.fromkeys(read, i))
        last.update(dict.fromkeys(outputs, len(steps)))
        for op in reversed(steps):  # what is cut from a slice before the slice itself
            piece = self.piece(op)
            if piece is None or piece.update is not None or op.results[0] in outputs:
                continue
            source = self.root(op.operands[0])
            until = last.get(op.results[0], 0)
            if until < changes.get(source, len(steps) + 1):
                self.lies_in[op.results[0]] = source
                last[source] = max(last[source], until)

    def changed_by(self, op: ir.Operation) -> list[ir.Value]:
        """The operands whose buffers an op may take for its results."""
        if op.name == "stablehlo.while":
            return [self.root(v) for v in op.operands]
        if op.name != "func.call":
            return []
        info = self.infos[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        return [self.root(op.operands[i]) for i in {operand for operand, _ in (*info.in_place, *info.reuse)}]

    def with_sources(self, uses: Counter[ir.Value]) -> Counter[ir.Value]:
        """Uses of views are uses of what they are views of."""
        found = Counter(uses)
        for value, count in uses.items():
            while value in self.lies_in:
                value = self.lies_in[value]
                found[value] += count
        return found

    def uses_of(self, op: ir.Operation) -> Counter[ir.Value]:
        """How often an op reads each value, its regions included; aliases count where they are read."""
        uses = Counter(self.root(v) for v in op.operands)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.operations:
                    if inner.operation.name in ALIASES:
                        # the alias itself is free; what reads it reads the root
                        for result, operand in zip(inner.results, inner.operands, strict=True):
                            self.roots[result] = self.root(operand)
                    else:
                        uses.update(self.uses_of(inner.operation))
        return uses

    def pass_wishes_back(self, op: ir.Operation, scope: _Scope, made_here: set[ir.Value]) -> None:
        """What a while or a kernel that updates in place is to leave in a buffer had best start there."""
        pairs: list[tuple[int, int]] = []
        if op.name == "stablehlo.while":
            pairs = [(i, i) for i in range(len(op.operands))]
        elif op.name == "func.call":
            pairs = list(self.infos[ir.FlatSymbolRefAttr(op.attributes["callee"]).value].in_place)
        for operand, number in pairs:
            result, start = op.results[number], self.root(op.operands[operand])
            if result in scope.wanted and start in made_here and scope.left[start] == 1:
                scope.wanted.setdefault(start, scope.wanted[result])

    def op(self, op: ir.Operation, scope: _Scope) -> None:
        if op.name in ALIASES:
            for result in op.results:
                self.where[result] = self.where[self.root(result)]
            return
        if op.name == "stablehlo.constant":
            self.where[op.results[0]] = self.constant(op)
            return
        uses = self.with_sources(self.uses_of(op))
        scope.fresh.clear()
        if op.name == "func.call" and (op.results[0] in self.lies_in or op.results[0] in self.where):
            if op.results[0] in self.lies_in:
                self.where[op.results[0]] = self.view(op, self.where[self.root(op.operands[0])], scope)
        elif op.name == "func.call":
            self.launch(op, scope, uses)
        elif op.name == "stablehlo.custom_call" and custom_call.is_unset(op):
            scope.commands.append(Fill(self.target(op.results[0], scope), 0))  # it holds something from here on
        elif op.name == "stablehlo.custom_call":
            self.host(op, scope)
        elif op.name == "stablehlo.while":
            self.loop(op, scope, uses)
        else:
            self.case(op, scope)
        scope.left.subtract(uses)

    def constant(self, op: ir.Operation) -> int:
        constant = view(op)
        assert isinstance(constant, Constant)
        self.constants.append(np.ascontiguousarray(constant.value))
        return self.buffer(constant.type.bytes, "constant", len(self.constants) - 1)

    def target(self, value: ir.Value, scope: _Scope, reused: Sequence[int] = ()) -> int:
        """The buffer for a new value: where it is wanted if the latest value there is dead, else a new one.

        reused: buffers whose values die as this one is made. One that another value is to end up in is left to that.
        """
        buffer = scope.wanted.get(value)
        if buffer is None or buffer in scope.fresh or (self.is_taken(buffer, scope) and buffer not in reused):
            idle = [b for b in reused if b not in scope.fresh and b not in scope.wanted.values()]
            buffer = idle[0] if idle else self.buffer(tensor_type(value.type).bytes)
        self.place(value, buffer, scope)
        return buffer

    def view(self, op: ir.Operation, source: int, scope: _Scope) -> int:
        """A new view of the piece that a call would move."""
        piece = self.piece(op)
        assert piece is not None
        made = self.buffer(piece.bytes, "view")
        indices = (
            Index(self.where[self.root(op.operands[i.operand])], i.width, i.signed, i.limit, i.stride)
            for i in piece.indices
        )
        scope.commands.append(View(made, source, piece.offset, tuple(indices)))
        return made

    def place_inside(self, value: ir.Value, op: ir.Operation, scope: _Scope, uses: Counter[ir.Value]) -> int | None:
        """A view of the place in another value where this one is to go, if it can be made there; None if not."""
        call = scope.into.get(value)
        if call is None or value in scope.wanted:
            return None
        piece, whole = self.piece(call), self.root(call.operands[0])
        assert piece is not None
        moved_by = [self.root(call.operands[i.operand]) for i in piece.indices]
        if any(v not in self.where for v in (whole, *moved_by)) or whole in uses:
            return None
        if self.where[whole] not in scope.own or scope.left[whole] != 1 or self.where[whole] in scope.fresh:
            return None
        self.place(call.results[0], self.where[whole], scope)
        self.where[value] = self.view(call, self.where[whole], scope)
        return self.where[value]

    def reusable(
        self, op: ir.Operation, info: KernelInfo, result: int, scope: _Scope, uses: Counter[ir.Value]
    ) -> list[int]:
        """The buffers of operands that nobody reads after an op, and it only where it writes this result."""
        written = len(op.operands) + result
        paired = Counter(self.root(op.operands[read]) for read, other in info.reuse if other == written)
        return [
            self.where[value]
            for value, count in paired.items()
            if self.where[value] in scope.own and count == uses[value] == scope.left[value]
        ]

    def is_taken(self, buffer: int, scope: _Scope) -> bool:
        """Whether something will still read the latest value in a buffer."""
        return buffer in scope.tenants and scope.left[scope.tenants[buffer]] > 0

    def place(self, value: ir.Value, buffer: int, scope: _Scope) -> None:
        """Let a value live in a buffer from now on."""
        self.where[value] = buffer
        scope.own.add(buffer)
        scope.tenants[buffer] = value
        scope.fresh.add(buffer)

    def launch(self, op: ir.Operation, scope: _Scope, uses: Counter[ir.Value]) -> None:
        symbol = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
        info = self.infos[symbol]
        inputs = [self.where[self.root(v)] for v in op.operands]
        updates = {result: operand for operand, result in info.in_place}
        outputs = []
        for i, result in enumerate(op.results):
            operand = updates.get(i)
            if operand is None:
                reused = self.reusable(op, info, i, scope, uses)
                inside = self.place_inside(result, op, scope, uses)
                outputs.append(self.target(result, scope, reused) if inside is None else inside)
                continue
            value, source = self.root(op.operands[operand]), inputs[operand]
            if self.may_overwrite(value, scope, uses):
                self.place(result, source, scope)
                outputs.append(source)
            else:
                output = self.target(result, scope)
                scope.commands.append(Copy(source, output, self.size(source)))
                outputs.append(output)
                inputs[operand] = output
        outputs += [self.buffer(size) for size in info.shared]
        scratch = [self.buffer(size) for size in info.scratch]
        kernel = self.numbers.get(symbol)
        if kernel is None:
            kernel = self.numbers[symbol] = len(self.kernels)
            self.kernels.append(Kernel(symbol, len(inputs), len(outputs), len(scratch), info.work, info.grain))
        for begin, end in info.phases or ((0, info.extent),):
            scope.commands.append(Launch(kernel, (*inputs, *outputs, *scratch), begin, end))

    def host(self, op: ir.Operation, scope: _Scope) -> None:
        """A custom call; what its aliases ask for is done where the function is called."""
        number = self.host_calls.setdefault(custom_call.call_of(op).to_json(), len(self.host_calls))
        inputs = tuple(self.where[self.root(v)] for v in op.operands)
        outputs = [self.target(result, scope) for result in op.results]
        scope.commands.append(Host(number, inputs, tuple(outputs)))

    def may_overwrite(self, value: ir.Value, scope: _Scope, uses: Counter[ir.Value]) -> bool:
        """Whether an op that reads `value` once, and last, may leave its result in the same buffer."""
        return self.where[value] in scope.own and uses[value] == 1 and scope.left[value] == 1

    def loop(self, op: ir.Operation, scope: _Scope, uses: Counter[ir.Value]) -> None:
        carried: list[int] = []
        for init, result in zip(op.operands, op.results, strict=True):
            start = self.root(init)
            source = self.where[start]
            if source not in scope.fresh and self.may_overwrite(start, scope, uses):
                self.place(result, source, scope)
            else:
                scope.commands.append(Copy(source, self.target(result, scope), self.size(source)))
            carried.append(self.where[result])
        condition_block, body_block = (region.blocks[0] for region in op.regions)
        for i, buffer in enumerate(carried):
            self.where[condition_block.arguments[i]] = buffer
            self.where[body_block.arguments[i]] = buffer
        *tests, end = [o.operation for o in condition_block.operations]
        predicate = self.where[end.operands[0]] if not tests and end.operands[0] in self.where else self.buffer(1)
        condition = self.block(condition_block, [predicate])
        body = self.block(body_block, carried, dict(zip(carried, body_block.arguments, strict=True)))
        scope.commands.append(While(tuple(condition), predicate, tuple(body)))

    def case(self, op: ir.Operation, scope: _Scope) -> None:
        targets = [self.target(result, scope) for result in op.results]
        branches = tuple(tuple(self.block(region.blocks[0], targets)) for region in op.regions)
        scope.commands.append(Case(self.where[self.root(op.operands[0])], branches))

    def deliver(self, outputs: Sequence[ir.Value], targets: Sequence[int], scope: _Scope) -> None:
        """Copy to `targets` what is not there yet, as if all copies were made at once."""
        moves = [
            (self.where[value], target)
            for value, target in zip(outputs, targets, strict=True)
            if self.where[value] != target
        ]
        overwritten = {target for _, target in moves}
        safe: dict[int, int] = {}
        for source, _ in moves:
            if source in overwritten and source not in safe:
                safe[source] = self.buffer(self.size(source))
                scope.commands.append(Copy(source, safe[source], self.size(source)))
        for source, target in moves:
            scope.commands.append(Copy(safe.get(source, source), target, self.size(source)))


def _donors(main: ir.Operation) -> tuple[int, ...]:
    """The arguments that JAX marked as donated."""
    if "arg_attrs" not in main.attributes:
        return ()
    marks = [ir.DictAttr(attributes) for attributes in ir.ArrayAttr(main.attributes["arg_attrs"])]
    return tuple(i for i, mark in enumerate(marks) if "tf.aliasing_output" in mark or "jax.buffer_donor" in mark)


def _array_type(ty: TensorType) -> ArrayType:
    """The type of an array that comes from outside or goes there; inside of a program any rank will do."""
    if ty.rank > _MOST_DIMENSIONS:
        raise BadInput(
            f"{ty} has {ty.rank} dimensions, arrays of NumPy have at most {_MOST_DIMENSIONS}",
            hint="reshape arguments and results to fewer",
        )
    return ArrayType(ty.shape, ty.element.dtype.name)
