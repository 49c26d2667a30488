"""Fourier transforms with a transform in each lane of the vectors.

As many transforms as a vector has lanes go together: rows are brought side by side by transposing squares in registers,
columns lie so already. Their values go through passes, one for each factor of the length (Stockham's order, see ops/fft),
between two buffers in the cache. A real transform of even length is a complex one of half the length, whose result is
taken apart. Several dimensions: the last one first (the last one last for IRFFT), from buffer to buffer.

Every step of the outermost loop does whole transforms: a part of the rows, or one element of the batch.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from stablehlo_py.core.passes import Pass
from stablehlo_py.machine.cpu import Cpu, cpu_of
from stablehlo_py.mlir import arith, func, ir, vector
from stablehlo_py.ops.fft import roots
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import transposed
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.features import features_of
from stablehlo_py.targets.cpu.fourier.fft_butterflies import Pair, constant, factors_of, short_transform
from stablehlo_py.targets.cpu.fourier.lower_fft import FFT, Transform
from stablehlo_py.transforms.kernels.kernel_scratch import BUFFERS_FIRST
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

Index = int | ir.Value
# passes of one factor: their code takes longest to compile; with two, the loop costs 5 % and saves little
WORTH_A_LOOP = 3


class CpuEmitFft(Pass):
    """Write the bodies of kernels that are one Fourier transform."""

    name: ClassVar[str] = "cpu-emit-fft"
    only_with: ClassVar[tuple[str, ...]] = (FFT,)
    is_trusted: ClassVar[bool] = True
    features: str = ""  # LLVM's feature names; see features_of

    def run(self, op: ir.Operation) -> bool:
        cpu = cpu_of(features_of(op, self.features))
        module = op.regions[0].blocks[0]
        found = [f.operation for f in module.operations if FFT in f.operation.attributes]
        for function in found:
            emit(function, module, cpu)
        return bool(found)


def emit(function: ir.Operation, module: ir.Block, cpu: Cpu) -> None:
    transform = Transform.from_attribute(function.attributes[FFT])
    block = function.regions[0].blocks[0]
    for operation in reversed(list(block.operations)):
        operation.operation.erase()
    with ir.InsertionPoint(block), function.location, nest.shared_indices(block):
        nest.flatten_arguments(function)
        _Emitter(transform, module, cpu, *block.arguments).emit()
        func.return_([])
    for mark in (nest.VECTOR_CODE, BUFFERS_FIRST):
        function.attributes[mark] = ir.UnitAttr.get()


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


class _Emitter:
    def __init__(self, of: Transform, module: ir.Block, cpu: Cpu, source: ir.Value, target: ir.Value) -> None:
        self.of, self.module, self.cpu, self.source, self.target = of, module, cpu, source, target
        self.element = ir.F64Type.get() if of.element == "f64" else ir.F32Type.get()
        self.most = cpu.lanes(8 if of.element == "f64" else 4)
        self.inverse = of.kind in ("IFFT", "IRFFT")
        self.last = of.lengths[-1]
        self.half = self.last // 2 + 1
        self.real_in, self.real_out = of.kind == "RFFT", of.kind == "IRFFT"
        size = 2 * (max(of.lengths) + 1) * self.most
        scratch = nest.scratch([2 * size], self.element)
        self.scratch = [(scratch, 0), (scratch, size)]
        self.scale = 1 / math.prod(of.lengths) if self.inverse else 1.0

    def emit(self) -> None:
        of = self.of
        outer = of.lengths[:-1]
        rows = math.prod(outer)
        widths = [2 * self.last, 2 * self.last]  # floats of a row in source and target
        if self.real_in:
            widths = [self.last, 2 * self.half]
        elif self.real_out:
            widths = [2 * self.half, self.last]
        if not outer:
            self._over(of.batch, self._width(of.batch), lambda r, v: self._rows(r, v, self.source, self.target, widths))
            return
        columns = self.half if self.real_in or self.real_out else self.last
        plane = 2 * rows * columns
        steps: list[Callable[[ir.Value, Index, ir.Value, Index], None]] = []

        def along_rows(source: ir.Value, at: Index, target: ir.Value, to: Index) -> None:
            self._over(
                rows,
                self._width(rows),
                lambda r, v: self._rows(r, v, source, target, widths, at, to),
                parallel="",
            )

        for d in range(len(outer)):
            steps.append(self._along_columns(d, columns))
        steps = [*steps, along_rows] if self.real_out else [along_rows, *reversed(steps)]
        # the last step writes the result; those before it leave theirs where the next does not write
        temporary = nest.scratch([plane], self.element)
        spare = nest.scratch([plane], self.element) if len(steps) > 2 else temporary

        def element(b: Index) -> None:
            source, at = self.source, multiply(b, rows * widths[0])
            for n, step in enumerate(steps):
                final = n == len(steps) - 1
                target = self.target if final else (temporary if n % 2 == 0 else spare)
                to = multiply(b, rows * widths[1]) if final else 0
                step(source, at, target, to)
                source, at = target, to

        if of.batch == 1:
            element(0)
        else:
            nest.loop(0, of.batch, 1, lambda b: element(b), parallel=PARALLEL_LOOP)

    def _width(self, count: int) -> int:
        """Lanes for as many transforms: a power of two that is no more."""
        return min(self.most, 1 << (count.bit_length() - 1))

    def _over(
        self, count: int, width: int, body: Callable[[Index, Vectors], None], *, parallel: str = PARALLEL_LOOP
    ) -> None:
        """body(first, vectors) for blocks of `width` transforms; the last may overlap the one before."""
        vectors = Vectors(self.element, width)
        if count <= width:
            body(0, vectors)
            return

        def block(n: ir.Value) -> None:
            first = multiply(n, width)
            body(nest.minimum(first, count - width) if count % width else first, vectors)

        nest.loop(0, -(-count // width), 1, block, parallel=parallel)

    # --- one dimension

    def _along_columns(self, dim: int, columns: int) -> Callable[[ir.Value, Index, ir.Value, Index], None]:
        """The transform along a dimension that is not the last: from (before, n, after) to the same."""
        outer = self.of.lengths[:-1]
        length = outer[dim]
        before, after = math.prod(outer[:dim]), math.prod(outer[dim + 1 :]) * columns
        final = not self.real_out and dim == 0

        def step(source: ir.Value, at: Index, target: ir.Value, to: Index) -> None:
            def block(offset: Index, vectors: Vectors) -> None:
                places = [Columns(b, add(o, offset), 2 * after, vectors) for b, o in ((source, at), (target, to))]
                self._transform(length, places[0], places[1], vectors, self.scale if final else 1.0)

            def plane(n: Index) -> None:
                start = multiply(n, 2 * length * after)
                self._over(after, self._width(after), lambda a, v: block(add(start, multiply(a, 2)), v), parallel="")

            nest.once_or_loop(before, 1, plane)

        return step

    def _rows(
        self,
        row: Index,
        vectors: Vectors,
        source: ir.Value,
        target: ir.Value,
        widths: list[int],
        at: Index = 0,
        to: Index = 0,
    ) -> None:
        """As many rows as lanes: brought side by side, transformed, and put back."""
        here, there = (Lanes(*place, vectors) for place in self.scratch)
        load, store = add(at, multiply(row, widths[0])), add(to, multiply(row, widths[1]))
        n, halved = self.last, self.last % 2 == 0 and (self.real_in or self.real_out)
        scale = self.scale if len(self.of.lengths) == 1 or self.real_out else 1.0
        if self.real_in and not halved:
            self._load_real(source, load, widths[0], vectors)
        else:
            self._turn(source, load, widths[0], here, widths[0], vectors, store=False)
        if self.real_out:
            self._merge(here, there, vectors) if halved else self._mirror(here, vectors)
            here, there = (there, here) if halved else (here, there)
        length = n // 2 if halved else n
        # a half transform has twice the weight
        result = self._transform(length, here, there, vectors, scale * (2 if halved and self.real_out else 1))
        other = here if result is there else there
        if self.real_in and halved:
            self._split(result, other, vectors)
            result = other
        if self.real_out and not halved:
            self._store_real(result, target, store, widths[1], vectors)
        else:
            self._turn(target, store, widths[1], result, widths[1], vectors, store=True)

    def _transform(
        self, length: int, source: Columns | Lanes, target: Columns | Lanes, vectors: Vectors, scale: float
    ) -> Columns | Lanes:
        """All passes; between scratch buffers the result is where they end, which is returned."""
        factors = factors_of(length, self.cpu.registers) or []
        in_scratch = isinstance(source, Lanes)
        spare = [Lanes(*place, vectors) for place in self.scratch]
        if not factors:
            factors = [] if in_scratch and scale == 1.0 else [1]
        table = self._twiddles(length, factors)
        done, offset, n, at = 1, 0, 0, source
        while n < len(factors):
            r, is_last = factors[n], n == len(factors) - 1
            if in_scratch:
                to: Columns | Lanes = target if at is source else source
            else:
                to = target if is_last else spare[n % 2]
            alike = _alike(factors, n, to_memory=not in_scratch, scaled=scale != 1.0)
            if alike >= WORTH_A_LOOP and isinstance(at, Lanes) and isinstance(to, Lanes):
                self._passes(r, alike, length, done, at, to, table, offset, vectors)
                at, to = (to, at) if alike % 2 == 0 else (at, to)
            else:
                alike = 1
                rest = length // (r * done)
                self._pass(r, length // r, done, rest, at, to, table, offset, vectors, scale if is_last else 1.0)
            for _ in range(alike):
                offset += 2 * (r - 1) * done if done > 1 else 0
                done *= r
            n += alike
            at = to
        return at

    def _passes(
        self,
        r: int,
        count: int,
        length: int,
        done: int,
        source: Lanes,
        target: Lanes,
        table: ir.Value | None,
        offset: int,
        vectors: Vectors,
    ) -> None:
        """Passes of one factor as a loop, from one buffer to the other and back."""

        def one(_: ir.Value, *carried: ir.Value) -> list[ir.Value]:
            done, rest, offset, here, there = carried
            places = [Lanes(source.buffer, base, vectors) for base in (here, there)]
            self._pass(r, length // r, done, rest, places[0], places[1], table, offset, vectors, 1.0)
            following = add(offset, multiply(done, 2 * (r - 1)))
            rest = arith.divui(rest, nest.index(r))
            return [nest.index(v) for v in (multiply(done, r), rest, following, there, here)]

        carried = [done, length // (r * done), offset, source.base, target.base]
        nest.loop(0, count, 1, one, [nest.index(v) for v in carried])

    def _pass(
        self,
        r: int,
        apart: int,
        done: Index,
        rest: Index,
        source: Columns | Lanes,
        target: Columns | Lanes,
        table: ir.Value | None,
        offset: Index,
        vectors: Vectors,
        scale: float,
    ) -> None:
        """t'[p, k + done j] = sum over q < r of w ** (q (k + done j)) t[p + rest q, k], where rest * done is `apart`."""
        block = multiply(done, r)
        # what is only known when it runs is worked out here, outside of the loops
        results_at: list[Lanes] = []
        if not isinstance(done, int):
            assert isinstance(target, Lanes)
            results_at = [target.behind(multiply(done, j)) for j in range(r)]

        def for_k(k: Index) -> None:
            turns = []
            if not isinstance(done, int) or done > 1:
                assert table is not None
                turn = Address.of(table, [add(multiply(k, 2 * (r - 1)), offset)])
                for q in range(r - 1):
                    turns.append(Pair(*(turn.moved(2 * q + c).spread(vectors.type) for c in (0, 1))))

            def for_p(p: Index) -> None:
                here = source.at(add(multiply(p, done), k))
                values = [here.load(q * apart) for q in range(r)]
                if turns:
                    values = [values[0], *(v * t for v, t in zip(values[1:], turns, strict=True))]
                results = values if r == 1 else short_transform(values, self.inverse, vectors)
                if scale != 1.0:
                    factor = constant(vectors, scale)
                    results = [value.scaled(factor) for value in results]
                first = add(multiply(p, block), k)
                if isinstance(done, int):
                    there = target.at(first)
                    for j, value in enumerate(results):
                        there.store(value, j * done)
                    return
                for to, value in zip(results_at, results, strict=True):
                    to.at(first).store(value)

            nest.once_or_loop(rest, 1, for_p)

        nest.once_or_loop(done, 1, for_k)

    # --- rows of memory and lanes of scratch

    def _turn(
        self,
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

    def _load_real(self, memory: ir.Value, base: Index, stride: int, vectors: Vectors) -> None:
        """Real rows of odd length as complex numbers."""
        here, start = self.scratch[0]

        def value(k: Index) -> None:
            at = add(start, multiply(k, 2 * vectors.lanes))
            for r in range(vectors.lanes):
                nest.store(nest.load(memory, [add(add(base, r * stride), k)]), here, [add(at, r)])
            vectors.store(vectors.zero(), here, [add(at, vectors.lanes)])

        nest.once_or_loop(self.last, 1, value)

    def _store_real(
        self, values: Columns | Lanes, memory: ir.Value, base: Index, stride: int, vectors: Vectors
    ) -> None:
        """The real parts of lanes as rows."""

        def value(k: Index) -> None:
            for r in range(vectors.lanes):
                part = nest.load(values.buffer, [add(add(values.base, multiply(k, 2 * vectors.lanes)), r)])
                nest.store(part, memory, [add(add(base, r * stride), k)])

        nest.once_or_loop(self.last, 1, value)

    # --- real transforms

    def _split(self, source: Columns | Lanes, target: Columns | Lanes, vectors: Vectors) -> None:
        """The half spectrum of x from the transform Z of x[2k] + i x[2k + 1], of length m = n / 2.

        With E = (Z[k] + conj Z[m - k]) / 2 and O = (Z[k] - conj Z[m - k]) / 2i:
        X[k] = E + w^k O, X[m - k] = conj(E - w^k O).
        """
        m = self.last // 2
        z = source.at(0).load()
        zero = vectors.zero()
        target.at(0).store(Pair(arith.addf(z.re, z.im), zero))
        target.at(m).store(Pair(arith.subf(z.re, z.im), zero))

        def pair(k: Index) -> None:
            near, far = source.at(k).load(), source.at(nest.subtract(m, k)).load().conjugate()
            half = constant(vectors, 0.5)
            even, odd = (near + far).scaled(half), (near - far).scaled(half).turned(False)
            turned = odd * self._half_turn(k, vectors)
            target.at(k).store(even + turned)
            target.at(nest.subtract(m, k)).store((even - turned).conjugate())

        if m > 1:
            nest.loop(1, m // 2 + 1, 1, lambda k: pair(k))

    def _merge(self, source: Lanes, target: Lanes, vectors: Vectors) -> None:
        """The other way: Z[k] = E + i O, Z[m - k] = conj(E) + i conj(O), with O = w^-k (X[k] - conj X[m - k]) / 2."""
        m = self.last // 2
        first, last = source.at(0).load().re, source.at(m).load().re
        half = constant(vectors, 0.5)
        ends = arith.addf(first, last), arith.subf(first, last)
        target.at(0).store(Pair(*ends).scaled(half))

        def pair(k: Index) -> None:
            near, far = source.at(k).load(), source.at(nest.subtract(m, k)).load().conjugate()
            even = (near + far).scaled(half)
            odd = (near - far).scaled(half) * self._half_turn(k, vectors)
            target.at(k).store(even + odd.turned(True))
            target.at(nest.subtract(m, k)).store(even.conjugate() + odd.conjugate().turned(True))

        if m > 1:
            nest.loop(1, m // 2 + 1, 1, lambda k: pair(k))

    def _mirror(self, values: Lanes, vectors: Vectors) -> None:
        """The rest of the spectrum of a real signal of odd length: X[n - k] = conj X[k]."""
        values.at(0).store(Pair(values.at(0).load().re, vectors.zero()))
        n = self.last
        if n > 1:
            nest.loop(1, n // 2 + 1, 1, lambda k: values.at(nest.subtract(n, k)).store(values.at(k).load().conjugate()))

    def _half_turn(self, k: Index, vectors: Vectors) -> Pair:
        m = self.last // 2
        numbers = roots(self.last, self.inverse)[: m // 2 + 1]
        table = self._table(f"half_turns_{self.last}", numbers)
        turn = Address.of(table, [multiply(k, 2)])
        return Pair(*(turn.moved(c).spread(vectors.type) for c in (0, 1)))

    # --- tables

    def _twiddles(self, length: int, factors: list[int]) -> ir.Value | None:
        """For each pass after the first, for each k < done, exp(-2 pi i q k / (r done)) for 0 < q < r."""
        numbers, done = [], 1
        for r in factors:
            if done > 1:
                every = roots(r * done, self.inverse)
                numbers.append(every[np.outer(np.arange(done), np.arange(1, r))].reshape(-1))
            done *= r
        if not numbers:
            return None
        return self._table(f"twiddles_{length}_{self.cpu.registers}", np.concatenate(numbers))

    def _table(self, name: str, numbers: np.ndarray) -> ir.Value:
        """A constant of the kernel: real and imaginary parts in turn, rounded once."""
        dtype = np.float64 if self.of.element == "f64" else np.float32
        values = np.ascontiguousarray(numbers).view(np.float64).astype(dtype)
        name = f"fft_{name}_{'inverse_' if self.inverse else ''}{self.of.element}"
        ty = ir.MemRefType.get([len(values)], self.element, loc=ir.Location.unknown())
        known = {
            ir.StringAttr(o.operation.attributes["sym_name"]).value
            for o in self.module.operations
            if o.operation.name == "memref.global"
        }
        if name not in known:
            tensor = ir.RankedTensorType.get([len(values)], self.element)
            with ir.InsertionPoint.at_block_begin(self.module):
                attributes = {
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(ty),
                    "initial_value": ir.DenseElementsAttr.get(values, type=tensor),
                    "constant": ir.UnitAttr.get(),
                }
                ir.Operation.create("memref.global", attributes=attributes)
        symbol = {"name": ir.FlatSymbolRefAttr.get(name)}
        return ir.Operation.create("memref.get_global", results=[ty], attributes=symbol).results[0]


def _alike(factors: list[int], first: int, *, to_memory: bool, scaled: bool) -> int:
    """How many passes from one on have one body: none are the first, whose values are not turned, or a last with more to do."""
    last = len(factors) - (to_memory or scaled)
    return sum(1 for _ in itertools.takewhile(lambda r: r == factors[first], factors[first:last])) if first else 1
