"""Runs an mxu program on NumPy arrays, in the program's own order of tiles and sums.

Undefined elements (padding that a transfer brought along) are poisoned: NaN, or a large integer. A program that forgets a
mask gives visibly wrong numbers here.

One pass of a tile through a matrix unit sums its products in float64 and rounds the sum to float32 once, which is what a
tree of wide adders does; the sums of successive tiles are added in float32, in the order of the program. Integers are
exact and wrap at 32 bits.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from stablehlo_py.core.types import ElementType
from stablehlo_py.simulator import program as p

FUNCTIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "exponential": np.exp,
    "exponential_minus_one": np.expm1,
    "log": np.log,
    "log_plus_one": np.log1p,
    "tanh": np.tanh,
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sine": np.sin,
    "cosine": np.cos,
    "negate": np.negative,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "copy": lambda x: x,
    "select": lambda predicate, on_true, on_false: np.where(predicate, on_true, on_false),
    "compare_eq": np.equal,
    "compare_ne": np.not_equal,
    "compare_lt": np.less,
    "compare_le": np.less_equal,
    "compare_gt": np.greater,
    "compare_ge": np.greater_equal,
}
REDUCERS = {"add": np.sum, "maximum": np.max, "minimum": np.min}


def run(program: p.Program, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """The outputs of a kernel, in their physical shapes; arrays are its inputs in theirs."""
    return _Machine(program, arrays).run()


def poison_of(element: ElementType) -> np.generic:
    """The element that stands for `undefined`."""
    if element.is_float:
        return element.dtype.type(np.nan)
    return element.dtype.type(1)  # not zero, which would hide a mask that is not there


class _Machine:
    def __init__(self, program: p.Program, arrays: tuple[np.ndarray, ...]) -> None:
        self.program = program
        self.memory: dict[p.Buffer, np.ndarray] = {}
        for buffer, array in zip(program.inputs, arrays, strict=True):
            if array.shape != buffer.shape or array.dtype != buffer.element.dtype:
                raise TypeError(f"{buffer.name} takes {buffer.element}{buffer.shape}, not {array.dtype}{array.shape}")
            self.memory[buffer] = array
        views = [node.small for node in program.nodes() if isinstance(node, p.View)]
        for buffer in (*program.outputs, *program.allocations, *views):
            self.memory[buffer] = np.full(buffer.shape, poison_of(buffer.element))
        self.index = [0] * program.index_count
        self.weights: dict[int, np.ndarray] = {}

    def run(self) -> tuple[np.ndarray, ...]:
        with np.errstate(all="ignore"):
            self.body(self.program.body)
        return tuple(self.memory[buffer] for buffer in self.program.outputs)

    def body(self, nodes: tuple[p.Node, ...]) -> None:
        for node in nodes:
            _STEPS[type(node)](self, node)

    def loop(self, node: p.Loop) -> None:
        if node.is_passes:
            self.passes(node)
            return
        for values in np.ndindex(*node.bounds):
            for number, value in zip(node.indices, values, strict=True):
                self.index[number] = value
            self.body(node.body)

    def passes(self, node: p.Loop) -> None:
        """All columns of weight tiles at once, for each k in order: columns do not touch each other."""
        push, matmul = node.body
        assert isinstance(push, p.Push) and isinstance(matmul, p.Matmul)  # by is_passes
        rows = push.tile[0]
        columns = node.bounds[1] * push.tile[1]
        block, acc = self.memory[push.source], self.memory[matmul.acc][:, :columns]
        lhs = _wide(self.memory[matmul.lhs], matmul.passes)
        rhs = _wide(block.T if push.transposed else block, matmul.passes)[:, :columns]
        for k in range(node.bounds[0]):
            part = slice(k * rows, (k + 1) * rows)
            acc += _narrow(lhs[:, part] @ rhs[part], acc.dtype)

    def core_split(self, node: p.CoreSplit) -> None:
        for core in range(node.cores):  # cores write disjoint blocks, so their order does not matter
            self.index[node.index] = core
            self.body(node.body)

    def nothing(self, node: p.Node) -> None:
        """Waits and barriers: in order of the program everything has come to its end."""

    def block(self, node: p.DmaStart | p.View | p.Mask) -> tuple[int, ...]:
        return node.block(*(self.index[i] for i in node.indices))

    def dma_start(self, node: p.DmaStart | p.View) -> None:
        inward = isinstance(node, p.View) or node.inward
        small, large = self.memory[node.small], self.memory[node.large]
        sizes = (1,) * (large.ndim - small.ndim) + small.shape
        outer, inner = [], []
        for number, size, whole in zip(self.block(node), sizes, large.shape, strict=True):
            start = number * size
            count = max(0, min(size, whole - start))
            outer.append(slice(start, start + count))
            inner.append(slice(0, count))
        view = small.reshape(sizes)
        if inward:
            small[...] = poison_of(node.small.element)
            view[tuple(inner)] = large[tuple(outer)]
        else:
            large[tuple(outer)] = view[tuple(inner)]

    def dma_strided(self, node: p.DmaStrided) -> None:
        large = self.memory[node.large]
        first = node.first(*(self.index[i] for i in node.indices))
        rows, lanes = node.count
        lanes = min(lanes, large.shape[-1] - first[-1])
        place: list[int | slice | np.ndarray] = [*first[:-1], slice(first[-1], first[-1] + lanes)]
        place[node.dim] = first[node.dim] + node.step * np.arange(rows)
        small = self.memory[node.small][node.at : node.at + rows, :lanes]
        if node.inward:
            small[...] = large[tuple(place)]
        else:
            large[tuple(place)] = small

    def place(self, node: p.Place) -> None:
        to, to_step, start, step, count = node.lanes
        i = np.arange(count)
        self.memory[node.target][:, to + to_step * i] = self.memory[node.source][:, start + step * i]

    def read_index(self, node: p.ReadIndex) -> None:
        value = int(self.memory[node.source][node.place(*(self.index[i] for i in node.indices))])
        self.index[node.result] = min(max(value, 0), node.limit)

    def fill(self, node: p.Fill) -> None:
        self.memory[node.target][...] = node.target.element.dtype.type(node.value)

    def mask(self, node: p.Mask) -> None:
        target = self.memory[node.target]
        number = self.block(node)[-target.ndim :][node.dim]
        start = max(0, node.limit - number * target.shape[node.dim])
        if start < target.shape[node.dim]:
            np.moveaxis(target, node.dim, 0)[start:] = target.dtype.type(0)

    def push(self, node: p.Push) -> None:
        rows, columns = node.tile
        block = self.memory[node.source]
        k, n = self.index[node.k], self.index[node.n]
        if node.transposed:
            tile = block[n * columns : (n + 1) * columns, k * rows : (k + 1) * rows].T
        else:
            tile = block[k * rows : (k + 1) * rows, n * columns : (n + 1) * columns]
        self.weights[node.weights] = tile

    def matmul(self, node: p.Matmul) -> None:
        rows, columns = node.tile
        k, n = self.index[node.k], self.index[node.n]
        lhs = _wide(self.memory[node.lhs][:, k * rows : (k + 1) * rows], node.passes)
        acc = self.memory[node.acc]
        sums = lhs @ _wide(self.weights[node.weights], node.passes)
        acc[:, n * columns : (n + 1) * columns] += _narrow(sums, acc.dtype)

    def pop(self, node: p.Pop) -> None:
        target = self.memory[node.target]
        target[...] = self.memory[node.acc].astype(target.dtype)

    def transpose(self, node: p.Transpose) -> None:
        self.memory[node.target][...] = self.memory[node.source].T

    def relayout(self, node: p.Relayout) -> None:
        self.memory[node.target][...] = self.memory[node.source]

    def vector(self, node: p.Vector) -> None:
        target = self.memory[node.target]
        arguments = [
            _spread(self.memory[a], target) if isinstance(a, p.Buffer) else np.float32(a) for a in node.arguments
        ]
        target[...] = FUNCTIONS[node.function](*arguments).astype(target.dtype)

    def reduce(self, node: p.Reduce) -> None:
        target = self.memory[node.target]
        values = self.memory[node.source][:, : node.limit].astype(np.float32)
        target[...] = REDUCERS[node.function](values, axis=1, keepdims=True).astype(target.dtype)


def _spread(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """A source of mxu.vector in 32 bits, so that NumPy repeats it as the op does."""
    if source.shape[1] != target.shape[1]:
        source = source[:, :1]
    return source if source.dtype == np.bool_ else source.astype(np.float32)


def _wide(tile: np.ndarray, passes: int) -> np.ndarray:
    """What a unit multiplies, in a type in which the sum of a tile's products is exact, or as good as.

    In a single pass it takes wider floats as bf16.
    """
    if passes == 1 and tile.dtype.kind == "f":
        tile = tile.astype(ml_dtypes.bfloat16)
    if tile.dtype.kind in "iu" and tile.dtype.itemsize > 2:
        return tile.astype(np.int64)
    return tile.astype(np.float64)


def _narrow(sums: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if dtype.kind in "iu" and sums.dtype.kind == "f":
        return sums.astype(np.int64).astype(dtype)
    return sums.astype(dtype)


_STEPS = {
    p.Loop: _Machine.loop,
    p.CoreSplit: _Machine.core_split,
    p.Barrier: _Machine.nothing,
    p.DmaStart: _Machine.dma_start,
    p.DmaStrided: _Machine.dma_strided,
    p.Place: _Machine.place,
    p.ReadIndex: _Machine.read_index,
    p.View: _Machine.dma_start,
    p.DmaWait: _Machine.nothing,
    p.Fill: _Machine.fill,
    p.Mask: _Machine.mask,
    p.Push: _Machine.push,
    p.Matmul: _Machine.matmul,
    p.Pop: _Machine.pop,
    p.Transpose: _Machine.transpose,
    p.Relayout: _Machine.relayout,
    p.Vector: _Machine.vector,
    p.Reduce: _Machine.reduce,
}
