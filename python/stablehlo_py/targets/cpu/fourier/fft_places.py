"""Where the numbers of transforms stand: in memory, or in scratch, a transform in each lane of the vectors.

And from one to the other: rows are brought side by side by transposing squares in registers.
"""

from __future__ import annotations

from stablehlo_py.mlir import ir, vector
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import transposed
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.fourier.fft_butterflies import Pair

Index = int | ir.Value


@record
class Columns:
    """Complex numbers in memory, real and imaginary parts in turn: value k of the lanes begins at base + k * stride."""

    buffer: ir.Value
    base: Index
    stride: int
    vectors: Vectors

    def at(self, k: Index) -> Place:
        """The numbers from number `k` on."""
        return Place(self, Address.of(self.buffer, [add(self.base, multiply(k, self.stride))]))

    def load(self, place: Address) -> Pair:
        lanes, ty = self.vectors.lanes, self.vectors.type
        if lanes == 1:
            return Pair(*(place.moved(c).load(ty) for c in (0, 1)))
        low, high = (place.moved(c * lanes).load(ty) for c in (0, 1))
        return Pair(*(vector.shuffle(low, high, list(range(c, 2 * lanes, 2))) for c in (0, 1)))

    def store(self, place: Address, value: Pair) -> None:
        lanes = self.vectors.lanes
        if lanes == 1:
            place.store(value.re)
            place.moved(1).store(value.im)
            return
        for c in (0, 1):
            order = [c * lanes // 2 + i // 2 + (lanes if i % 2 else 0) for i in range(lanes)]
            place.moved(c * lanes).store(vector.shuffle(value.re, value.im, order))


@record
class Lanes:
    """Complex numbers in scratch, from `base` on: for each k a vector of real parts, then one of imaginary parts."""

    buffer: ir.Value
    base: Index
    vectors: Vectors

    @property
    def stride(self) -> int:
        return 2 * self.vectors.lanes

    def at(self, k: Index) -> Place:
        """The numbers from number `k` on."""
        return Place(self, Address.of(self.buffer, [add(self.base, multiply(k, self.stride))]))

    def behind(self, count: Index) -> Lanes:
        """Those from number `count` on."""
        return replace(self, base=add(self.base, multiply(count, self.stride)))

    def load(self, place: Address) -> Pair:
        return Pair(*(place.moved(c * self.vectors.lanes).load(self.vectors.type) for c in (0, 1)))

    def store(self, place: Address, value: Pair) -> None:
        for c, part in enumerate((value.re, value.im)):
            place.moved(c * self.vectors.lanes).store(part)


@record
class Place:
    """Numbers from one on: what is so many behind it has a distance that is part of its address, not computed."""

    of: Columns | Lanes
    address: Address

    def load(self, behind: int = 0) -> Pair:
        return self.of.load(self.address.moved(behind * self.of.stride))

    def store(self, value: Pair, behind: int = 0) -> None:
        self.of.store(self.address.moved(behind * self.of.stride), value)


# --- rows of memory and lanes of scratch


def turn(
    memory: ir.Value,
    base: Index,
    stride: int,
    scratch: Columns | Lanes,
    count: int,
    vectors: Vectors,
    *,
    store: bool,
) -> None:
    """`count` numbers of each row from memory to lanes, or back: squares of as many as a vector has lanes."""
    lanes = vectors.lanes

    def square(f: Index) -> None:
        rows = Address.of(memory, [add(base, f)]), stride
        columns = Address.of(scratch.buffer, [add(scratch.base, multiply(f, lanes))]), lanes
        (source, between), (target, apart) = (columns, rows) if store else (rows, columns)
        block = [source.moved(r * between).load(vectors.type) for r in range(lanes)]
        for r, value in enumerate(transposed(block)):
            target.moved(r * apart).store(value)

    def single(f: Index) -> None:
        for r in range(lanes):
            row, column = add(add(base, r * stride), f), add(add(scratch.base, multiply(f, lanes)), r)
            if store:
                nest.store(nest.load(scratch.buffer, [column]), memory, [row])
            else:
                nest.store(nest.load(memory, [row]), scratch.buffer, [column])

    if count < lanes:
        nest.once_or_loop(count, 1, single)
        return
    whole = count // lanes * lanes
    nest.once_or_loop(whole, lanes, square)
    if whole != count:
        square(count - lanes)


def load_real(memory: ir.Value, base: Index, length: int, target: Lanes) -> None:
    """Real rows, one behind the other, as complex numbers."""
    vectors = target.vectors

    def value(k: Index) -> None:
        at = add(target.base, multiply(k, target.stride))
        for r in range(vectors.lanes):
            nest.store(nest.load(memory, [add(add(base, r * length), k)]), target.buffer, [add(at, r)])
        vectors.store(vectors.zero(), target.buffer, [add(at, vectors.lanes)])

    nest.once_or_loop(length, 1, value)


def store_real(values: Lanes, memory: ir.Value, base: Index, length: int) -> None:
    """The real parts of lanes as rows, one behind the other."""

    def value(k: Index) -> None:
        for r in range(values.vectors.lanes):
            part = nest.load(values.buffer, [add(add(values.base, multiply(k, values.stride)), r)])
            nest.store(part, memory, [add(add(base, r * length), k)])

    nest.once_or_loop(length, 1, value)
