"""Which ops of a block become one kernel.

Ops come in the order of the program and join the kernel that makes one of their operands, when it loops over the same
shape. Three kinds join: ops of the full shape, reductions of trailing dimensions, and ops with one value a row. No
value is computed twice by this except what is cheaper to make than to read: splats, iotas, views.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from stablehlo_py.core import registry
from stablehlo_py.core.collect import uses
from stablehlo_py.core.diagnostics import describe_location
from stablehlo_py.core.types import tensor_type
from stablehlo_py.dialects.stablehlo import Constant, view
from stablehlo_py.errors import UnsupportedOp
from stablehlo_py.mlir import ir
from stablehlo_py.records import field, record
from stablehlo_py.transforms.kernels.product_groups import may_be_followed, may_follow
from stablehlo_py.transforms.kernels.views import Dims, element, is_piece, is_view, trace
from stablehlo_py.transforms.simplify.panels import is_unpacking

STAYS, SINGLE, ELEMENTWISE, ROWS, PRODUCT = "", "single", "elementwise", "rows", "product"
LOOP = "loop"  # made by `hlo-loop-kernels`, before anything is grouped

# Ops that the program itself does, between kernels.
CONTROL = frozenset({"stablehlo.while", "stablehlo.if", "stablehlo.case", "stablehlo.custom_call", "func.call"})
# A buffer under another shape: no work, so no kernel.
ALIASES = frozenset({"stablehlo.reshape", "stablehlo.optimization_barrier"})
# A kernel with more ops than this takes LLVM longer than linear time.
MOST_OPS = 200
# Ops that only move elements, from wherever their operands lie.
JOINS = frozenset({"stablehlo.concatenate"})
# Bytes of a value that is made by a kernel of its own where the next one changes parts of it.
LARGE = 1 << 16
# A row that a program passes over several times should stay in the second-level cache with what is kept of it.
LONGEST_ROW = 1 << 15


@record
class Read:
    """A value that an op reads, seen through views, and the dimensions of the loop at which it does; see `views.trace`.

    whole: what the value is a piece of, where it is one that lies in memory.
    """

    source: ir.Value
    dims: Dims
    whole: ir.Value | None


@record(frozen=False)
class Unit:
    """Ops that become one kernel, or one op that stays in @main.

    shape: what the loops run over. rows: how many leading dimensions make a row, in a kernel that reduces.
    """

    number: int
    ops: list[ir.Operation]
    kind: str = STAYS
    shape: tuple[int, ...] | None = None
    rows: int | None = None
    before: int = 0  # bits of the units it depends on, through others too
    parents: set[int] = field(default_factory=set)
    product: ir.Operation | None = None  # what its elementwise ops are done on the elements of
    made: set[ir.Value] = field(default_factory=set)
    reads: list[Read] = field(default_factory=list)  # of what other units make; not those of the product


def is_elementwise(op: ir.Operation) -> bool:
    """One result, one scalar rule, and every operand of the result's shape or 0-d."""
    if registry.scalar.find(op.name) is None or len(op.results) != 1 or len(op.regions) > 0:
        return False
    shape = tensor_type(op.results[0].type).shape
    if op.name == "stablehlo.bitcast_convert" and tensor_type(op.operands[0].type).shape != shape:
        return False  # a scalar that becomes several parts is not broadcast
    return all(tensor_type(v.type).shape in (shape, ()) for v in op.operands)


def row_rank(op: ir.Operation) -> int | None:
    """The number of dimensions that a reduction keeps, when it reduces all after them by a scalar body; else None."""
    if op.name != "stablehlo.reduce" or not op.operands:
        return None
    operand = tensor_type(op.operands[0].type)
    reduced = sorted(view(op).ints("dimensions"))
    kept = operand.rank - len(reduced)
    if not reduced or reduced != list(range(kept, operand.rank)) or operand.size == 0:
        return None
    body = op.regions[0].blocks[0]
    inner = [o.operation for o in body.operations][:-1]
    own = {*body.arguments, *(r for o in inner for r in o.results)}
    scalar = all(
        o.name in ("stablehlo.constant", "stablehlo.reshape") or registry.scalar.find(o.name) is not None for o in inner
    )
    closed = all(v in own for o in body.operations for v in o.operands)
    return kept if scalar and closed else None


def is_cheap(op: ir.Operation) -> bool:
    """Ops whose value costs less to make again than to read: splats and iotas."""
    if op.name == "stablehlo.constant":
        constant = view(op)
        return isinstance(constant, Constant) and (constant.type.size <= 1 or constant.splat is not None)
    return op.name == "stablehlo.iota"


def name_of(op: ir.Operation) -> ir.Value | None:
    """What an op is known by; None for one without results."""
    return op.results[0] if len(op.results) else None


class Grouping:
    """The units of one block. `before` keeps what each depends on as bits, so that finding a path is one mask."""

    def __init__(self, *, fuse: bool, rows: bool, products: bool, pieces: bool) -> None:
        self.fuse, self.rows, self.products, self.pieces = fuse, rows, products, pieces
        self.all: dict[int, Unit] = {}
        # Ops are known by their first result: the hash of an op changes with its operands, that of a value never.
        self.unit_of: dict[ir.Value, int] = {}
        self.merged: dict[int, int] = {}
        self.order: dict[ir.Value, int] = {}
        self.producers: dict[ir.Value, ir.Operation] = {}
        self.repeated: set[ir.Value] = set()  # made again by every reader, so not made here

    def units(self, operations: list[ir.Operation]) -> list[Unit]:
        """The units, each after those it depends on."""
        self.order = {op.results[0]: i for i, op in enumerate(operations) if len(op.results)}
        self.producers = {r: op for op in operations for r in op.results}
        for op in operations:
            if self.repeated_everywhere(op):
                self.repeated.add(op.results[0])
            else:
                self.add(op)
        for unit in self.all.values():
            unit.ops.sort(key=lambda op: self.order.get(name_of(op), 0))
        return _ordered(list(self.all.values()))

    # --- what is repeated in its readers' kernels instead of being made once

    def repeated_everywhere(self, op: ir.Operation) -> bool:
        """Whether every reader makes the op's value again for itself."""
        if is_unpacking(op):
            return True  # by the one product that it was made for
        if not is_cheap(op) and not is_view(op) and not self.is_piece_of_memory(op):
            return False
        return all(self.repeats(use.owner.operation, op) for result in op.results for use in result.uses)

    def is_piece_of_memory(self, op: ir.Operation) -> bool:
        """Whether an op is a slice of a value that is in memory whoever reads it."""
        if not self.pieces or not is_piece(op):
            return False
        producer = self.producers.get(op.operands[0])
        return producer is None or not is_cheap(producer)

    def repeats(self, reader: ir.Operation, op: ir.Operation) -> bool:
        if name_of(reader) not in self.order or reader.name in CONTROL:
            return False
        if is_view(reader):
            return self.repeated_everywhere(reader)
        if is_cheap(op):
            return reader.name not in ALIASES and not updates(reader, op)
        return absorbs(reader) or (reader.name in JOINS and is_piece(op))

    # --- units

    def add(self, op: ir.Operation) -> None:
        number = len(self.all) + len(self.merged)
        unit = Unit(number, [op], self.kind(op))
        unit.parents = {self.root(self.unit_of[p]) for p in self.made_by(op) if p in self.unit_of}
        if unit.kind == ELEMENTWISE:
            unit.shape = tensor_type(op.results[0].type).shape
        elif unit.kind == ROWS:
            unit.shape, unit.rows = tensor_type(op.operands[0].type).shape, row_rank(op)
        elif self.products and may_be_followed(op):
            unit.shape, unit.product = tensor_type(op.results[0].type).shape, op
        unit.made.update(op.results)
        if unit.shape is not None and unit.product is None:
            unit.reads = list(self.reads_of(op))
        self.all[number] = unit
        if len(op.results):
            self.unit_of[op.results[0]] = number
        self.find_before(unit)
        # a join can open the way for another: what was around a unit may be inside it now
        while self.fuse and any(
            self.try_join(p, unit) for p in sorted(unit.parents, key=self.preference, reverse=True)
        ):
            pass

    def preference(self, number: int) -> tuple[bool, int]:
        """Products before others: their elements are in registers."""
        return self.all[number].product is not None, number

    def kind(self, op: ir.Operation) -> str:
        if op.name in CONTROL | ALIASES or _is_data(op):
            return STAYS
        if len(op.results) == 0:
            raise UnsupportedOp(
                op.name, "it has no result, and there is no rule for what it does", where=describe_location(op.location)
            )
        if is_elementwise(op):
            return ELEMENTWISE
        return ROWS if self.rows and row_rank(op) is not None else SINGLE

    def find_before(self, unit: Unit) -> None:
        unit.before = 0
        for p in unit.parents:
            unit.before |= self.all[p].before | (1 << p)

    def made_by(self, op: ir.Operation) -> set[ir.Value]:
        """The ops of this block that make what `op` reads, looked at through what its kernel will repeat."""
        found: set[ir.Value] = set()
        waiting = list(uses(op))
        while waiting:
            producer = self.producers.get(waiting.pop())
            if producer is None or producer.results[0] in found:
                continue
            found.add(producer.results[0])
            if is_view(producer) or producer.results[0] in self.repeated:
                waiting.extend(producer.operands)
        return found

    def root(self, number: int) -> int:
        while number in self.merged:
            number = self.merged[number]
        return number

    def try_join(self, number: int, unit: Unit) -> bool:
        """Let `unit` take in the unit that makes one of its operands, if they fit and no path goes around."""
        other = self.all[number]
        if any(self.all[p].before >> number & 1 for p in unit.parents if p != number):
            return False
        fit = self.fit(other, unit)
        if fit is None:
            return False
        unit.shape, unit.rows = fit
        unit.product = unit.product or other.product
        unit.kind = PRODUCT if unit.product is not None else ELEMENTWISE if unit.rows is None else ROWS
        # the larger one is mostly the other; their order is made at the end
        unit.reads = other.reads + [read for read in unit.reads if read.source not in other.made]
        other.ops += unit.ops
        other.made |= unit.made
        unit.ops, unit.made = other.ops, other.made
        unit.parents = {p for p in unit.parents | other.parents if p not in (number, unit.number)}
        self.find_before(unit)
        del self.all[number]
        self.merged[number] = unit.number
        old, new = 1 << number, 1 << unit.number
        for later in self.all.values():
            if later.before & old:
                later.before = (later.before & ~old) | new | unit.before
                if number in later.parents:
                    later.parents = (later.parents - {number}) | {unit.number}
        return True

    def fit(self, first: Unit, second: Unit) -> tuple[tuple[int, ...], int | None] | None:
        """Shape and rows of the joined unit, or None when the two do not fit."""
        if first.shape is None or second.shape is None or len(first.ops) + len(second.ops) > MOST_OPS:
            return None
        if first.product is not None or second.product is not None:
            return (second.shape, None) if self.joins_product(first, second) else None
        if first.rows is None and second.rows is None:
            same = first.shape == second.shape and self.reads_fit(first, second, first.shape, None)
            return (first.shape, None) if same else None
        wide = first if first.rows is not None else second
        narrow = second if wide is first else first
        assert wide.shape is not None and wide.rows is not None and narrow.shape is not None
        same = narrow.shape == wide.shape and narrow.rows in (None, wide.rows)
        if not same and not (narrow.rows is None and _is_row_shape(narrow.shape, wide.shape, wide.rows)):
            return None
        if math.prod(wide.shape[wide.rows :]) > LONGEST_ROW:
            return None
        return (wide.shape, wide.rows) if self.reads_fit(first, second, wide.shape, wide.rows) else None

    def joins_product(self, first: Unit, second: Unit) -> bool:
        """Whether a product and elementwise ops after it, or beside those after it, are one unit."""
        product = first.product or second.product
        assert product is not None
        if (first.product is not None and second.product is not None) or first.shape != second.shape:
            return False
        if first.rows is not None or second.rows is not None or second.ops == [product]:
            return False
        if first.product is None and any(
            trace(v, tuple(range(tensor_type(v.type).rank)), self.producers)[0] in first.made for v in product.operands
        ):
            return False
        # those that are with the product already were looked at when they came
        others = second.ops if first.product is not None else first.ops
        assert second.shape is not None
        return may_follow(product, others, first.made | second.made, self.producers) and self.reads_fit(
            first, second, second.shape, None
        )

    def reads_of(self, op: ir.Operation) -> Iterator[Read]:
        """What an op reads of what this block makes."""
        for value in op.operands:
            source, dims = trace(value, tuple(range(tensor_type(value.type).rank)), self.producers)
            producer = self.producers.get(source)
            if producer is not None:
                is_cut = source in self.repeated and is_piece(producer)
                yield Read(source, dims, producer.operands[0] if is_cut else None)

    def reads_fit(self, first: Unit, second: Unit, shape: tuple[int, ...], rows: int | None) -> bool:
        """Whether the second unit reads what the first makes at its own place: the same row, the same column.

        What each unit reads of itself was looked at when it was put together.
        """
        for read in second.reads:
            if read.whole in first.made:
                return False
            if read.source not in first.made:
                continue
            made = tensor_type(read.source.type).shape
            if element(read.source, read.dims) != element(read.source, tuple(range(len(made)))):
                return False
            if made != shape and (rows is None or not _is_row_shape(made, shape, rows)):
                return False
        return True


def updates(reader: ir.Operation, op: ir.Operation) -> bool:
    """Whether an op changes a large value in place: that is made by a kernel which threads share."""
    pairs = registry.in_place(reader.name, operands=len(reader.operands), results=len(reader.results))
    large = tensor_type(op.results[0].type).bytes > LARGE
    return large and any(reader.operands[operand] == op.results[0] for _, operand in pairs)


def absorbs(op: ir.Operation) -> bool:
    """Whether the kernel of an op looks through views of its operands by itself."""
    return is_elementwise(op)


def _is_row_shape(shape: tuple[int, ...], full: tuple[int, ...], rows: int) -> bool:
    """One element a row: the leading dimensions, then any number of dimensions of size 1."""
    return shape[:rows] == full[:rows] and len(shape) <= len(full) and all(n == 1 for n in shape[rows:])


def _is_data(op: ir.Operation) -> bool:
    """Constants that stay in @main as buffers of the program."""
    if op.name != "stablehlo.constant":
        return False
    constant = view(op)
    assert isinstance(constant, Constant)
    return constant.splat is None or constant.type.bytes <= 4096


def _ordered(units: list[Unit]) -> list[Unit]:
    by_number = {u.number: u for u in units}
    done: list[Unit] = []
    seen: set[int] = set()
    for root in units:
        stack = [(root.number, False)]
        while stack:
            number, ready = stack.pop()
            if ready:
                done.append(by_number[number])
            elif number not in seen:
                seen.add(number)
                stack.append((number, True))
                stack.extend((p, False) for p in sorted(by_number[number].parents, reverse=True) if p not in seen)
    return done
