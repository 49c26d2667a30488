"""An mxu kernel as plain data: what both simulators read, so that neither touches MLIR while it runs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator

from stablehlo_py.core.types import ElementType, tensor_type
from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir
from stablehlo_py.records import record

BlockMap = Callable[..., tuple[int, ...]]


@record(eq=False)
class Buffer:
    """A ref: an argument of the kernel (with its logical shape) or an allocation (with its copies)."""

    name: str
    shape: tuple[int, ...]
    element: ElementType
    space: str
    layout: str
    copies: int = 1
    offset: int = 0
    logical: tuple[int, ...] = ()

    @property
    def bytes(self) -> int:
        """Of one copy."""
        return math.prod(self.shape) * (8 if self.element.is_bool else self.element.bits) // 8

    @property
    def is_argument(self) -> bool:
        return bool(self.logical)


@record(eq=False)
class Node:
    """Anything that stands in a kernel's body."""


@record(eq=False)
class Loop(Node):
    bounds: tuple[int, ...]
    indices: tuple[int, ...]  # numbers of the index variables
    body: tuple[Node, ...]

    @property
    def trips(self) -> int:
        return math.prod(self.bounds)

    @property
    def is_passes(self) -> bool:
        """A loop over (k, n) of weight tiles whose body is one push and the matmul with it: both have closed forms."""
        if len(self.body) != 2 or len(self.indices) != 2:
            return False
        push, matmul = self.body
        if not isinstance(push, Push) or not isinstance(matmul, Matmul):
            return False
        same = push.weights == matmul.weights
        return same and (push.k, push.n) == self.indices and (matmul.k, matmul.n) == self.indices


@record(eq=False)
class CoreSplit(Node):
    cores: int
    index: int
    body: tuple[Node, ...]


@record(eq=False)
class Barrier(Node):
    pass


@record(eq=False)
class DmaStart(Node):
    """Between `large`, of which `block(indices)` is the block number, and `small`, which holds one block."""

    large: Buffer
    small: Buffer
    inward: bool  # from large to small
    semaphore: int
    indices: tuple[int, ...]
    block: BlockMap


@record(eq=False)
class DmaStrided(Node):
    """Between `large` and rows of `small` from `at` on; `first(indices)` is the first element, `dim` what the rows run along."""

    large: Buffer
    small: Buffer
    inward: bool
    semaphore: int
    indices: tuple[int, ...]
    first: BlockMap
    dim: int
    step: int
    count: tuple[int, int]  # rows and lanes
    at: int


@record(eq=False)
class View(Node):
    """Names a block of a buffer that is in VMEM already."""

    large: Buffer
    small: Buffer
    indices: tuple[int, ...]
    block: BlockMap


@record(eq=False)
class DmaWait(Node):
    semaphore: int


@record(eq=False)
class Fill(Node):
    target: Buffer
    value: float


@record(eq=False)
class Mask(Node):
    target: Buffer
    dim: int
    limit: int
    indices: tuple[int, ...]
    block: BlockMap


@record(eq=False)
class Push(Node):
    source: Buffer
    k: int
    n: int
    transposed: bool
    weights: int  # number of the SSA value
    tile: tuple[int, int]


@record(eq=False)
class Matmul(Node):
    lhs: Buffer
    weights: int
    acc: Buffer
    k: int
    n: int
    passes: int
    tile: tuple[int, int]


@record(eq=False)
class Pop(Node):
    acc: Buffer
    target: Buffer


@record(eq=False)
class Transpose(Node):
    source: Buffer
    target: Buffer


@record(eq=False)
class Relayout(Node):
    source: Buffer
    target: Buffer


@record(eq=False)
class Place(Node):
    """Lanes of `source` into lanes of `target`: to, to_step, from, from_step, count."""

    source: Buffer
    target: Buffer
    lanes: tuple[int, int, int, int, int]


@record(eq=False)
class ReadIndex(Node):
    """The index variable `result` takes the element `place(indices)` of `source`, clamped to 0 and `limit`."""

    source: Buffer
    indices: tuple[int, ...]
    place: BlockMap
    limit: int
    result: int


@record(eq=False)
class Vector(Node):
    """arguments: buffers, or numbers that stand for themselves."""

    arguments: tuple[Buffer | float, ...]
    target: Buffer
    function: str

    @property
    def sources(self) -> tuple[Buffer, ...]:
        return tuple(a for a in self.arguments if isinstance(a, Buffer))


@record(eq=False)
class Reduce(Node):
    source: Buffer
    target: Buffer
    function: str
    limit: int


@record(eq=False)
class Program:
    """A kernel: its arguments (inputs first), its allocations, and its body."""

    label: str
    chip: str
    inputs: tuple[Buffer, ...]
    outputs: tuple[Buffer, ...]
    allocations: tuple[Buffer, ...]
    body: tuple[Node, ...]
    index_count: int

    def nodes(self) -> Iterator[Node]:
        """All nodes, outer before inner."""
        todo = list(reversed(self.body))
        while todo:
            node = todo.pop()
            yield node
            todo += reversed(getattr(node, "body", ()))

    def bytes_in(self, space: str) -> int:
        """The end of the last allocation of a space."""
        ends = [a.offset + a.bytes * a.copies for a in self.allocations if a.space == space]
        return max(ends, default=0)


def read_kernel(operation: ir.Operation) -> Program:
    """The plain form of an `mxu.kernel` op."""
    return _Reader(operation).program()


def block_map(attribute: ir.Attribute) -> BlockMap:
    """A function from index values to the results of an affine map."""
    text = re.sub(r"^affine_map<(.*)>$", r"\1", str(attribute))
    head, _, results = text.partition("->")
    # The text is MLIR's own printing of an affine map: names, integers, + - * mod floordiv ceildiv, brackets.
    body = results.strip()[1:-1].replace("mod", "%").replace("floordiv", "//")
    if "ceildiv" in body or not re.fullmatch(r"[\sd\d+\-*%/(),]*", body):
        raise ValueError(f"affine map {text} is more than block numbers need")
    return eval(f"lambda {head.strip()[1:-1]}: ({body},)")


class _Reader:
    def __init__(self, operation: ir.Operation) -> None:
        self.operation = operation
        self.numbers: dict[ir.Value, int] = {}
        self.buffers: dict[ir.Value, Buffer] = {}
        self.allocations: list[Buffer] = []

    def program(self) -> Program:
        attributes = self.operation.attributes
        block = self.operation.regions[0].blocks[0]
        count = len(self.operation.operands)
        logical = [tuple(mxu.integer(d) for d in shape) for shape in attributes["logical"]]
        arguments = []
        for i, argument in enumerate(block.arguments):
            name = f"in{i}" if i < count else f"out{i - count}"
            arguments.append(self.buffer(argument, name, logical=logical[i]))
        body = self.body(block)
        return Program(
            label=ir.StringAttr(attributes["label"]).value,
            chip=ir.StringAttr(attributes["chip"]).value,
            inputs=tuple(arguments[:count]),
            outputs=tuple(arguments[count:]),
            allocations=tuple(self.allocations),
            body=body,
            index_count=len(self.numbers),
        )

    def buffer(
        self, value: ir.Value, name: str, copies: int = 1, offset: int = 0, logical: tuple[int, ...] = ()
    ) -> Buffer:
        ty = tensor_type(mxu.ref_tensor(value.type))
        space, layout = mxu.ref_space(value.type), mxu.ref_layout(value.type)
        buffer = Buffer(name, ty.shape, ty.element, space, layout, copies, offset, logical)
        self.buffers[value] = buffer
        return buffer

    def number(self, value: ir.Value) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def body(self, block: ir.Block) -> tuple[Node, ...]:
        nodes = (self.node(op.operation) for op in block.operations)
        return tuple(node for node in nodes if node is not None)

    def node(self, op: ir.Operation) -> Node | None:
        """The node of an op; None for allocations, which go to the list of them."""
        attributes, operands = op.attributes, list(op.operands)

        def integer(name: str) -> int:
            return mxu.integer(attributes[name])

        match op.name:
            case "mxu.loop":
                block = op.regions[0].blocks[0]
                bounds = tuple(mxu.integer(b) for b in attributes["bounds"])
                return Loop(bounds, tuple(self.number(a) for a in block.arguments), self.body(block))
            case "mxu.core_split":
                block = op.regions[0].blocks[0]
                return CoreSplit(integer("cores"), self.number(block.arguments[0]), self.body(block))
            case "mxu.alloc":
                label = ir.StringAttr(attributes["label"]).value
                self.allocations.append(self.buffer(op.results[0], label, integer("buffers"), integer("offset")))
                return None
            case "mxu.make_semaphore":
                self.number(op.results[0])
                return None
            case "mxu.barrier":
                return Barrier()
            case "mxu.dma_start":
                source, target = self.buffers[operands[0]], self.buffers[operands[1]]
                inward = source.is_argument
                large, small = (source, target) if inward else (target, source)
                indices = tuple(self.number(v) for v in operands[3:])
                return DmaStart(large, small, inward, self.number(operands[2]), indices, block_map(attributes["map"]))
            case "mxu.dma_strided":
                source, target = self.buffers[operands[0]], self.buffers[operands[1]]
                inward = source.is_argument
                large, small = (source, target) if inward else (target, source)
                rows, lanes = (mxu.integer(c) for c in attributes["count"])
                return DmaStrided(
                    large,
                    small,
                    inward,
                    self.number(operands[2]),
                    tuple(self.number(v) for v in operands[3:]),
                    block_map(attributes["map"]),
                    dim=integer("dim"),
                    step=integer("step"),
                    count=(rows, lanes),
                    at=integer("at"),
                )
            case "mxu.place":
                to, to_step, start, step, count = (mxu.integer(a) for a in attributes["lanes"])
                lanes = (to, to_step, start, step, count)
                return Place(self.buffers[operands[0]], self.buffers[operands[1]], lanes)
            case "mxu.read_index":
                indices = tuple(self.number(v) for v in operands[1:])
                result = self.number(op.results[0])
                source = self.buffers[operands[0]]
                return ReadIndex(source, indices, block_map(attributes["map"]), integer("limit"), result)
            case "mxu.view":
                indices = tuple(self.number(v) for v in operands[1:])
                small = self.buffer(op.results[0], "view")
                return View(self.buffers[operands[0]], small, indices, block_map(attributes["map"]))
            case "mxu.dma_wait":
                return DmaWait(self.number(operands[0]))
            case "mxu.fill":
                return Fill(self.buffers[operands[0]], ir.FloatAttr(attributes["value"]).value)
            case "mxu.mask":
                indices = tuple(self.number(v) for v in operands[1:])
                target = self.buffers[operands[0]]
                return Mask(target, integer("dim"), integer("limit"), indices, block_map(attributes["map"]))
            case "mxu.push":
                k, n = (self.number(v) for v in operands[1:])
                weights = ir.TypeAttr(mxu.WeightsType(op.results[0].type).tensor).value
                tile = tuple(ir.RankedTensorType(weights).shape)
                number = self.number(op.results[0])
                return Push(self.buffers[operands[0]], k, n, bool(integer("transposed")), number, tile)
            case "mxu.matmul":
                weights = ir.TypeAttr(mxu.WeightsType(operands[1].type).tensor).value
                tile = tuple(ir.RankedTensorType(weights).shape)
                lhs, acc = self.buffers[operands[0]], self.buffers[operands[2]]
                k, n = (self.number(v) for v in operands[3:])
                return Matmul(lhs, self.number(operands[1]), acc, k, n, integer("passes"), tile)
            case "mxu.pop":
                return Pop(self.buffers[operands[0]], self.buffers[operands[1]])
            case "mxu.transpose":
                return Transpose(self.buffers[operands[0]], self.buffers[operands[1]])
            case "mxu.relayout":
                return Relayout(self.buffers[operands[0]], self.buffers[operands[1]])
            case "mxu.vector":
                target, *sources = (self.buffers[v] for v in operands)
                arguments = tuple(
                    sources[mxu.integer(a)] if isinstance(a, ir.IntegerAttr) else ir.FloatAttr(a).value
                    for a in attributes["arguments"]
                )
                return Vector(arguments, target, ir.StringAttr(attributes["function"]).value)
            case "mxu.reduce":
                source, target = self.buffers[operands[0]], self.buffers[operands[1]]
                return Reduce(source, target, ir.StringAttr(attributes["function"]).value, integer("limit"))
        raise ValueError(f"{op.name} has no place in an mxu.kernel")
