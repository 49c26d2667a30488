"""What is done to a product's elements right after it: linalg.generic ops that read them at their own place.

    d = f(c, row, column);  e = g(d)   ->   a tile computes and stores d and e where its last block of k is summed up,
                                            and c holds partial sums only

Each op is run on vectors along the columns: operands that have them are loaded as vectors, others are spread.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.core.collect import made_by
from stablehlo_py.mlir import ir, vector
from stablehlo_py.ops.llvm_ops import is_ldexp
from stablehlo_py.records import field, record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors

Index = int | ir.Value
Where = Sequence[Index]  # the loops' indices: of the batch where there is one, the row, and the first column


@record
class Epilogue:
    """Elementwise ops, in order; what one makes for the next alone is never stored."""

    ops: list[ir.Operation]
    product: ir.Value
    inner: frozenset[ir.Value]  # buffers between the ops
    moved: dict[ir.Value, ir.Value] = field(default_factory=dict)  # buffers by another name, in a function of its own

    @property
    def place(self) -> ir.Operation:
        """Where all is there that the ops read."""
        return self.ops[-1]

    @property
    def buffers(self) -> list[ir.Value]:
        """What the ops read and write, without what they leave in registers; each once."""
        found = dict.fromkeys(value for op in self.ops for value in op.operands)
        return [value for value in found if value not in self.inner and value != self.product]

    def with_buffers(self, moved: dict[ir.Value, ir.Value]) -> Epilogue:
        return replace(self, moved=moved)

    def run(self, value: ir.Value, where: Where, lanes: int, count: Index) -> None:
        """Do the ops on a vector of the product's elements at `where`, `count` of them (0: all), and store the results."""
        known = {self.product: value}
        for op in self.ops:
            results = _on_vectors(op, known, self.moved, where, lanes, count)
            for target, result in zip(_outputs(op), results, strict=True):
                if target in self.inner:
                    known[target] = result
                    continue
                vectors, buffer = Vectors(result_element(target), lanes), self.moved.get(target, target)
                if count == 0:
                    vectors.store(result, buffer, where)
                else:
                    vectors.masked_store(result, buffer, where, count)

    def prefetch(self, where: Where, width: int, lanes: int) -> None:
        """Ask for the elements at one row of a tile: what is read there, and where results go."""
        for op in self.ops:
            for buffer, places in zip(op.operands, _maps(op), strict=True):
                rows = [ir.AffineDimExpr(p).position for p in places if isinstance(p, ir.AffineDimExpr)]
                if (
                    buffer in self.inner
                    or buffer == self.product
                    or len(rows) < 2
                    or not _has_columns(places, len(where))
                ):
                    continue
                indices = _indices(places, where)
                for w in range(width):
                    nest.prefetch(buffer, [*indices[:-1], nest.add(indices[-1], w * lanes)])

    def remove(self) -> None:
        """Erase the ops, and the buffers between them."""
        for op in reversed(self.ops):
            op.erase()
        for buffer in self.inner:
            buffer.owner.operation.erase()


def result_element(buffer: ir.Value) -> ir.Type:
    return ir.MemRefType(buffer.type).element_type


def _on_vectors(
    op: ir.Operation,
    known: dict[ir.Value, ir.Value],
    moved: dict[ir.Value, ir.Value],
    where: Where,
    lanes: int,
    count: Index,
) -> list[ir.Value]:
    """What an op's body yields, on vectors; known: the buffers that are in registers, moved: those with another name."""
    block = op.regions[0].blocks[0]
    values: dict[ir.Value, ir.Value] = {}
    inputs, maps = _inputs(op), _maps(op)
    for argument, buffer, places in zip(block.arguments, inputs, maps, strict=False):
        found = known.get(buffer)
        values[argument] = found or _read(moved.get(buffer, buffer), places, where, lanes, count)

    def wide(operand: ir.Value) -> ir.Value:
        if operand not in values:  # a constant in front of the op
            scalar = operand.owner.operation.clone().results[0]
            values[operand] = vector.broadcast(ir.VectorType.get([lanes], operand.type), scalar)
        return values[operand]

    operations = [o.operation for o in block.operations]
    for inner in operations[:-1]:
        if inner.name == "arith.constant":
            continue  # made where it is used
        values[inner.results[0]] = ir.Operation.create(
            inner.name,
            results=[ir.VectorType.get([lanes], inner.results[0].type)],
            operands=[wide(v) for v in inner.operands],
            attributes={name: inner.attributes[name] for name in inner.attributes},
        ).results[0]
    return [wide(v) for v in operations[-1].operands]


def _read(buffer: ir.Value, places: Sequence[ir.AffineExpr], where: Where, lanes: int, count: Index) -> ir.Value:
    """An operand's elements: a vector where its last dimension is the columns, else one element, spread."""
    indices = _indices(places, where)
    vectors = Vectors(result_element(buffer), lanes)
    if not _has_columns(places, len(where)):
        return vectors.splat(nest.load(buffer, indices))
    return vectors.load(buffer, indices) if count == 0 else vectors.masked_load(buffer, indices, count)


def _indices(places: Sequence[ir.AffineExpr], where: Where) -> list[Index]:
    return [
        where[ir.AffineDimExpr(place).position]
        if isinstance(place, ir.AffineDimExpr)
        else ir.AffineConstantExpr(place).value
        for place in places
    ]


# --- which ops can be an epilogue ----------------------------------------------------------------------------------------


def epilogue_of(product: ir.Operation) -> Epilogue | None:
    """The elementwise ops that alone read a product's buffer, when all of their bodies can be done on vectors."""
    buffer = product.operands[2]
    first = _only_reader(buffer, product)
    if first is None or not _fits(first, buffer):
        return None
    # an argument holds the product when the kernel is done, unless an op overwrites it
    if isinstance(buffer.owner, ir.Block) and buffer not in _outputs(first):
        return None
    ops, inner = [first], set()
    while (step := _next(ops[-1])) is not None and _fits(step[1], step[0]):
        inner.add(step[0])
        ops.append(step[1])

    from stablehlo_py.targets.cpu.vectors.expand_math import ExpandMath  # 17 modules: most products have no epilogue

    for op in ops:
        ExpandMath().run(op)
        if not _is_plain(op):
            return None
    return Epilogue(ops, buffer, frozenset(inner))


def _next(op: ir.Operation) -> tuple[ir.Value, ir.Operation] | None:
    """The buffer that an op makes for one other op alone, and that op."""
    outputs = _outputs(op)
    if len(outputs) != 1 or not _is_own(outputs[0]):
        return None
    reader = _only_reader(outputs[0], op)
    return None if reader is None else (outputs[0], reader)


def _only_reader(buffer: ir.Value, maker: ir.Operation) -> ir.Operation | None:
    """The one op beside its maker, and what fills it first, that uses a buffer."""
    users = {use.owner.operation.name: use.owner.operation for use in buffer.uses}
    others = [use.owner.operation for use in buffer.uses]
    others = [op for op in others if op.name != "linalg.fill" and op != maker]
    distinct = [op for i, op in enumerate(others) if op not in others[:i]]
    if len(distinct) != 1 or "linalg.generic" not in users or distinct[0].name != "linalg.generic":
        return None
    return distinct[0] if distinct[0].block == maker.block else None


def _is_own(buffer: ir.Value) -> bool:
    return made_by(buffer, "memref.alloc", "memref.alloca") is not None


def _fits(op: ir.Operation, buffer: ir.Value) -> bool:
    """Whether an op reads `buffer` and writes its results at its own place, over all elements of the same shape."""
    shape = list(ir.MemRefType(buffer.type).shape)
    if any("parallel" not in str(i) for i in ir.ArrayAttr(op.attributes["iterator_types"])):
        return False
    identity = list(ir.AffineMap.get_identity(len(shape)).results)
    inputs, outputs, maps = _inputs(op), _outputs(op), _maps(op)
    for value, places in zip(inputs, maps, strict=False):
        if value == buffer and places != identity:
            return False
        if value in outputs and value != buffer:
            return False
        last = len(shape) - 1
        if any(
            isinstance(p, ir.AffineDimExpr) and ir.AffineDimExpr(p).position == last and i != len(places) - 1
            for i, p in enumerate(places)
        ):
            return False
        if not all(isinstance(p, ir.AffineDimExpr | ir.AffineConstantExpr) for p in places):
            return False
    for value, places in zip(outputs, maps[len(inputs) :], strict=True):
        if places != identity or list(ir.MemRefType(value.type).shape) != shape:
            return False
    return buffer in inputs


def _is_plain(op: ir.Operation) -> bool:
    """Whether a body is made of ops that vectors have too, of constants, and does not read what it overwrites."""
    block = op.regions[0].blocks[0]
    body = [o.operation for o in block.operations]
    own = {*list(block.arguments)[: len(_inputs(op))], *(r for o in body for r in o.results)}
    for inner in body[:-1]:
        has_lanes = inner.name.startswith(("arith.", "math.")) or is_ldexp(inner)
        if not has_lanes or len(inner.results) != 1 or len(inner.regions):
            return False
    return all(v in own or made_by(v, "arith.constant") is not None for inner in body for v in inner.operands)


def _has_columns(places: Sequence[ir.AffineExpr], rank: int) -> bool:
    return (
        bool(len(places))
        and isinstance(places[-1], ir.AffineDimExpr)
        and ir.AffineDimExpr(places[-1]).position == rank - 1
    )


def _segments(op: ir.Operation) -> list[int]:
    return list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))


def _inputs(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[: _segments(op)[0]]


def _outputs(op: ir.Operation) -> list[ir.Value]:
    return list(op.operands)[_segments(op)[0] :]


def _maps(op: ir.Operation) -> list[list[ir.AffineExpr]]:
    return [list(ir.AffineMapAttr(a).value.results) for a in ir.ArrayAttr(op.attributes["indexing_maps"])]
