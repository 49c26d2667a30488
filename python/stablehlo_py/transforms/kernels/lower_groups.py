"""Groups of ops as one loop nest: elementwise groups, and row programs such as softmax and layernorm.

An elementwise group is one linalg.generic with a result for each value that leaves the group. A row program has ops of
the full shape S, reductions of its trailing dimensions, and ops of one value a row between them:

    for each row:
        for each column:  full ops; acc = body(acc, x)         loop 0
        row ops on the reduced values
        for each column:  full ops that read row values; ...    loop 1, and so on

What a later loop needs again is made again when that is cheap, else kept in a row that stays in the cache. Dimensions
that all reads treat alike are one loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.types import TensorType, tensor_type
from stablehlo_py.dialects.stablehlo import Constant, Op, view
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor
from stablehlo_py.records import record
from stablehlo_py.transforms.kernels.views import Dims, element, is_piece, is_view, trace

Values = dict[ir.Value, Tensor]
Place = tuple[ir.Value, Dims]  # a value read at loop dimensions

# Ops that cost more to do again than to keep their result in the cache.
COSTLY = frozenset(
    {
        "stablehlo.exponential",
        "stablehlo.exponential_minus_one",
        "stablehlo.log",
        "stablehlo.log_plus_one",
        "stablehlo.logistic",
        "stablehlo.tanh",
        "stablehlo.sine",
        "stablehlo.cosine",
        "stablehlo.tan",
        "stablehlo.power",
        "stablehlo.sqrt",
        "stablehlo.rsqrt",
        "stablehlo.cbrt",
        "stablehlo.atan2",
        "stablehlo.divide",
        "stablehlo.remainder",
    }
)
_INLINE = ("stablehlo.constant", "stablehlo.iota")  # scalars of the body that reads them
PARALLEL_LOOP = build.PARALLEL_LOOP


def lower_group(block: ir.Block, values: Values, rows: int | None) -> list[Tensor]:
    """The outputs of a group. rows: how many leading dimensions make a row; None when nothing is reduced."""
    group = _Group(block, values, rows)
    return group.as_rows() if rows is not None else group.as_generic()


@record
class _Runs:
    """Loop dimensions joined into runs: dims of each run, and the extents of the joined loops."""

    runs: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]

    def of(self, dims: Dims) -> list[int]:
        """The runs at which a value is read, in order."""
        found: list[int] = []
        for d in dims:
            if d is not None and (number := self.number(d)) not in found:
                found.append(number)
        return found

    def number(self, dim: int) -> int:
        return next(i for i, run in enumerate(self.runs) if dim in run)


class _Group:
    def __init__(self, block: ir.Block, values: Values, rows: int | None) -> None:
        *operations, end = (o.operation for o in block.operations)
        self.values, self.rows = values, rows
        self.take(operations, end)
        self.shape = self._full_shape()
        self.rank = len(self.shape)
        self.reads = self._all_reads()
        self.runs = self._joined_dims()

    def take(self, operations: list[ir.Operation], end: ir.Operation) -> None:
        """Note the ops of the group, and the values that leave it."""
        self.outputs = list(end.operands)
        operations = self.without_pieces(operations)
        self.producers = {r: op for op in operations for r in op.results}
        self.places: dict[ir.Value, Place] = {}  # of the values that were asked for
        self.ops = [op for op in operations if not is_view(op) and op.name not in _INLINE]

    def without_pieces(self, operations: list[ir.Operation]) -> list[ir.Operation]:
        """The other ops; slices become values from outside, in the memory that they are cut from."""
        self.pieces = {op.results[0]: op for op in operations if is_piece(op)}
        for value, op in self.pieces.items():
            starts = view(op).ints("start_indices")
            self.values[value] = layout.extract_slice(
                self.values[op.operands[0]], starts, tensor_type(value.type).shape
            )
        return [op for op in operations if not is_piece(op)]

    # --- what is read where

    def _full_shape(self) -> tuple[int, ...]:
        if self.rows is None:
            return tensor_type(self.outputs[0].type).shape
        reduce = next(op for op in self.ops if op.name == "stablehlo.reduce")
        return tensor_type(reduce.operands[0].type).shape

    def place(self, value: ir.Value) -> Place:
        """Where an operand is read: a full value everywhere, a row value at the row, a scalar at no dimension."""
        found = self.places.get(value)
        if found is None:
            # a row value has the leading dimensions, then only size 1
            source, dims = trace(value, tuple(range(tensor_type(value.type).rank)), self.producers)
            found = self.places[value] = source, element(source, dims)
        return found

    def operands(self, op: ir.Operation) -> list[ir.Value]:
        """The operands that are read element by element."""
        values = list(op.operands)
        return values[: len(values) // 2] if op.name == "stablehlo.reduce" else values

    def _all_reads(self) -> list[Place]:
        """Every place outside the group that its ops read, each once."""
        found: dict[Place, None] = {}
        for op in self.ops:
            for value in self.operands(op):
                place = self.place(value)
                if place[0] not in self.producers:
                    found[place] = None
        for value in self.outputs:
            place = self.place(value)
            if place[0] not in self.producers:
                found[place] = None
        return list(found)

    def _joined_dims(self) -> _Runs:
        """Neighbouring dimensions become one loop where every read has both in order or neither."""
        split = {self.rows} if self.rows is not None else set()
        turned = any(op.name == "stablehlo.transpose" for op in self.producers.values())
        for op in self.producers.values():
            if op.name == "stablehlo.iota":
                dim = view(op).integer("iota_dimension")
                # an iota read through a view counts along whichever dimension the view gives it
                straight = tensor_type(op.results[0].type).shape == self.shape and not turned
                split |= {dim, dim + 1} if straight else set(range(self.rank))
        for value, dims in self.reads:
            split |= self._gaps(value, dims)
            present = [d for d in dims if d is not None]
            for d in range(1, self.rank):
                both = d - 1 in present and d in present and present.index(d) == present.index(d - 1) + 1
                neither = d - 1 not in present and d not in present
                wide = 1 not in (self.shape[d - 1], self.shape[d])
                if (wide and not (both or neither)) or present != sorted(present):
                    split.add(d)
        for d in range(1, self.rank):
            # a size-1 dimension can go with either side, but not glue together what must stay apart
            if 1 in (self.shape[d - 1], self.shape[d]) and any(self._separates(dims, d) for _, dims in self.reads):
                split.add(d)
        runs: list[tuple[int, ...]] = []
        for d in range(self.rank):
            if d == 0 or d in split:
                runs.append((d,))
            else:
                runs[-1] = (*runs[-1], d)
        return _Runs(tuple(runs), tuple(math.prod(self.shape[d] for d in run) for run in runs))

    def _gaps(self, value: ir.Value, dims: Dims) -> set[int]:
        """The loop dimensions between whose steps a slice leaves out memory."""
        piece = self.pieces.get(value)
        if piece is None:
            return set()
        whole, part = (tensor_type(v.type).shape for v in (piece.operands[0], value))
        inner = [next((d for d in dims[i:] if d is not None), None) for i in range(len(dims)) if part[i] != whole[i]]
        return {d for d in inner if d is not None}

    def _separates(self, dims: Dims, d: int) -> bool:
        """Whether a read has the wide dimensions on one side of `d` and not those on the other."""
        left = [i for i in range(d) if self.shape[i] != 1]
        right = [i for i in range(d, self.rank) if self.shape[i] != 1]
        return bool(left and right) and (left[-1] in dims) != (right[0] in dims)

    def joined(self, value: ir.Value, dims: Dims) -> tuple[Tensor, list[int]]:
        """A value from outside with its dimensions joined as the loops are, and the runs at which it is read."""
        source, runs = self.values[value], self.runs.of(dims)
        return layout.reshape(source, [self.runs.extents[r] for r in runs]), runs

    # --- an elementwise group

    def as_generic(self) -> list[Tensor]:
        extents = self.runs.extents
        rank = len(extents)
        inputs = [self.joined(value, dims) for value, dims in self.reads]

        def body(*arguments: ir.Value) -> list[ir.Value]:
            evaluate = _Evaluator(self, build.loop_index)
            evaluate.known.update(zip(self.reads, arguments, strict=True))
            for op in self.ops:  # in order, so that the body reads as the program does
                evaluate.op(op)
            return [evaluate.at(self.place(v)) for v in self.outputs]

        results = build.generic(
            [tensor for tensor, _ in inputs],
            [TensorType(extents, tensor_type(v.type).element) for v in self.outputs],
            body,
            maps=[*(build.dims_map(rank, runs) for _, runs in inputs), *[build.identity_map(rank)] * len(self.outputs)],
        )
        return [layout.reshape(r, tensor_type(v.type).shape) for r, v in zip(results, self.outputs, strict=True)]

    # --- a row program

    def as_rows(self) -> list[Tensor]:
        return _Rows(self).lower()


class _Evaluator:
    """Scalars of one loop body: each place once, ops made when they are asked for."""

    def __init__(self, group: _Group, index_of: Callable[[int], ir.Value]) -> None:
        self.group, self.index_of = group, index_of
        self.known: dict[Place, ir.Value] = {}

    def at(self, place: Place) -> ir.Value:
        found = self.known.get(place)
        if found is None:
            found = self.known[place] = self.make(place)
        return found

    def make(self, place: Place) -> ir.Value:
        value, dims = place
        op = self.group.producers.get(value)
        if op is None:
            raise AssertionError(f"{value} is read at {dims} and not loaded")
        typed = view(op)
        if isinstance(typed, Constant):
            return build.scalar(typed.type.element, typed.value.reshape(-1)[0])
        if op.name == "stablehlo.iota":
            dim = dims[typed.integer("iota_dimension")]
            return build.from_index(
                typed.type.element, build.index(0) if dim is None else self.index_of(self.group.runs.number(dim))
            )
        return self.op(op)

    def op(self, op: ir.Operation) -> ir.Value:
        typed = view(op)
        with typed.location:
            operands = [self.at(self.group.place(v)) for v in op.operands]
            result = build.scalar_op(typed, *operands)
        self.known[self.group.place(op.results[0])] = result
        return result


class _Rows:
    """One row program: which loop over the columns makes what, and the loops themselves."""

    def __init__(self, group: _Group) -> None:
        self.group = group
        assert group.rows is not None
        runs = group.runs
        self.row_runs = [i for i, run in enumerate(runs.runs) if run[0] < group.rows]
        self.column_runs = [i for i in range(len(runs.runs)) if i not in self.row_runs]
        self.row_extents = [runs.extents[i] for i in self.row_runs]
        self.column_extents = [runs.extents[i] for i in self.column_runs]
        self.inputs = {place: group.joined(*place) for place in group.reads}
        self.loop_of: dict[
            ir.Value, int
        ] = {}  # full value: the first loop that can make it; row value: loops before it
        for op in group.ops:
            # all operands: a reduction may also start from what another one gives
            before = max((self.loop_of.get(group.place(v)[0], 0) for v in op.operands), default=0)
            for result in op.results:
                self.loop_of[result] = before + 1 if op.name == "stablehlo.reduce" else before
        self.reduces = [op for op in group.ops if op.name == "stablehlo.reduce"]
        self.last = max(
            [self.loop_of[op.results[0]] - 1 for op in self.reduces]
            + [self.loop_of[v] for v in group.outputs if self.is_full(v)]
        )
        self.kept = self._kept()

    def is_full(self, value: ir.Value) -> bool:
        """Whether a value of the group has a column dimension."""
        return tensor_type(value.type).shape == self.group.shape

    def loops_that_read(self, value: ir.Value) -> set[int]:
        """The loops whose own ops read a full value directly."""
        found = set()
        for op in self.group.ops:
            if any(self.group.place(v)[0] == value for v in self.group.operands(op)):
                found.add(self.loop_of[op.results[0]] - (op.name == "stablehlo.reduce"))
        return found

    def _kept(self) -> list[ir.Value]:
        """Full values that a later loop reads from memory: outputs, and what costs more to make than to keep."""
        return [
            op.results[0]
            for op in self.group.ops
            if op.name in COSTLY
            and self.is_full(op.results[0])
            and op.results[0] not in self.group.outputs
            and max(self.loops_that_read(op.results[0]) | {0}) > self.loop_of[op.results[0]]
        ]

    def lower(self) -> list[Tensor]:
        outputs = [self._target(v) for v in self.group.outputs]
        scratch = [build.buffer(TensorType(tuple(self.column_extents), tensor_type(v.type).element)) for v in self.kept]
        done = build.loops(self.row_extents, [*outputs, *scratch], self._row)
        if self.row_extents:
            _outermost_loop(done[0].value).attributes[PARALLEL_LOOP] = ir.UnitAttr.get()
        return [layout.reshape(t, tensor_type(v.type).shape) for t, v in zip(done, self.group.outputs, strict=False)]

    def _target(self, value: ir.Value) -> Tensor:
        extents = self.row_extents + (self.column_extents if self.is_full(value) else [])
        return build.empty(TensorType(tuple(extents), tensor_type(value.type).element))

    def _row(self, row: list[ir.Value], carried: list[Tensor]) -> list[Tensor]:
        """All loops over the columns of one row."""
        group = self.group
        targets = dict(zip([*group.outputs, *self.kept], carried, strict=True))
        row_scalars: dict[Place, ir.Value] = {}

        def evaluator(columns: list[ir.Value]) -> _LoadingEvaluator:
            indices = [*row, *columns]
            evaluate = _LoadingEvaluator(self, lambda run: indices[run], indices, targets)
            evaluate.known.update(row_scalars)
            return evaluate

        def row_ops(loop: int) -> None:
            evaluate = evaluator([])
            for op in group.ops:
                if (
                    op.name != "stablehlo.reduce"
                    and not self.is_full(op.results[0])
                    and self.loop_of[op.results[0]] == loop
                ):
                    row_scalars[group.place(op.results[0])] = evaluate.op(op)

        for loop in range(self.last + 1):
            row_ops(loop)
            self._columns(loop, evaluator, targets, row_scalars)
        row_ops(self.last + 1)
        evaluate = evaluator([])
        for value in group.outputs:
            if not self.is_full(value):
                targets[value] = build.write(targets[value], evaluate.at(group.place(value)), row)
        return list(targets.values())

    def _columns(
        self,
        loop: int,
        evaluator: Callable[[list[ir.Value]], _LoadingEvaluator],
        targets: Values,
        row_scalars: dict[Place, ir.Value],
    ) -> None:
        """One loop over the columns: writes full values, folds reductions."""
        group = self.group
        written = [v for v in targets if self.is_full(v) and self.loop_of[v] == loop]
        reduces = [op for op in self.reduces if self.loop_of[op.results[0]] == loop + 1]
        starts: list[ir.Value] = []
        for op in reduces:
            evaluate = evaluator([])
            starts += [evaluate.at(group.place(v)) for v in list(op.operands)[len(op.operands) // 2 :]]

        def body(columns: list[ir.Value], carried: list) -> list:
            evaluate = evaluator(columns)
            evaluate.loop = loop
            tensors = dict(zip(written, carried, strict=False))
            accumulators = carried[len(written) :]
            for value in written:
                scalar = evaluate.at(group.place(value))
                indices = columns if value in self.kept else [*evaluate.indices[: len(self.row_runs)], *columns]
                tensors[value] = build.write(tensors[value], scalar, indices)
            results: list[ir.Value] = []
            for op in reduces:
                count = len(op.results)
                mine, accumulators = accumulators[:count], accumulators[count:]
                elements = [evaluate.at(group.place(v)) for v in group.operands(op)]
                results += combine(view(op), mine, elements)
            return [*tensors.values(), *results]

        if not written and not reduces:
            return
        done = build.loops(self.column_extents, [*(targets[v] for v in written), *starts], body)
        targets.update(zip(written, done, strict=False))
        totals = done[len(written) :]
        for op in reduces:
            for result in op.results:
                total = totals.pop(0)
                row_scalars[group.place(result)] = build.rounded(tensor_type(result.type).element, total)


class _LoadingEvaluator(_Evaluator):
    """Reads what is outside the loop from memory: inputs, and full values that an earlier loop kept."""

    def __init__(
        self, rows: _Rows, index_of: Callable[[int], ir.Value], indices: Sequence[ir.Value], targets: Values
    ) -> None:
        super().__init__(rows.group, index_of)
        self.rows, self.indices, self.targets = rows, indices, targets
        self.loop = 0

    def make(self, place: Place) -> ir.Value:
        value, _ = place
        source = self.rows.inputs.get(place)
        if source is not None:
            tensor, runs = source
            return build.read(tensor, [self.indices[r] for r in runs])
        if value not in self.group.producers and not tensor_type(value.type).rank:
            return build.read(self.group.values[value], [])
        rows = self.rows
        if value in self.targets and rows.is_full(value) and rows.loop_of[value] < self.loop:
            start = len(rows.row_runs) if value in rows.kept else 0
            return build.read(self.targets[value], self.indices[start:])
        return super().make(place)


def combine(op: Op, accumulators: Sequence[ir.Value], elements: Sequence[ir.Value]) -> list[ir.Value]:
    """One step of a reduction, in compute form.

    A lone float sum or product may be reassociated, since the specification leaves the order of a reduction open: that
    is what lets LLVM keep several partial results in vector registers. The order depends on the shape alone.
    """
    results = list(build.apply_region(op, 0, *accumulators, *elements, rounding=False))
    if len(results) == 1 and not isinstance(results[0].owner, ir.Block):
        made = results[0].owner.operation
        if made.name in ("arith.addf", "arith.mulf") and accumulators[0] in list(made.operands):
            made.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
    return results


def _outermost_loop(value: ir.Value) -> ir.Operation:
    return value.owner.operation
