"""The passes of transforms in all lanes at once, one for each factor of the length, in Stockham's order (see ops/fft)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address
from stablehlo_py.targets.cpu.fourier.fft_butterflies import Pair, constant, factors_of, short_transform
from stablehlo_py.targets.cpu.fourier.fft_places import Columns, Lanes
from stablehlo_py.targets.cpu.fourier.fft_tables import Tables

Index = int | ir.Value
# passes of one factor: their code takes longest to compile; with two, the loop costs 5 % and saves little
WORTH_A_LOOP = 3


class Passes:
    """Transforms between two buffers of scratch, each with where it begins."""

    def __init__(self, tables: Tables, scratch: Sequence[tuple[ir.Value, int]]) -> None:
        self.tables, self.scratch = tables, scratch

    def transform(self, length: int, source: Columns | Lanes, target: Columns | Lanes, scale: float) -> Columns | Lanes:
        """All passes; between scratch buffers the result is where they end, which is returned."""
        factors = factors_of(length, self.tables.registers) or []
        in_scratch = isinstance(source, Lanes)
        vectors = source.vectors
        spare = [Lanes(*place, vectors) for place in self.scratch]
        if not factors:
            factors = [] if in_scratch and scale == 1.0 else [1]
        table = self.tables.twiddles(length, factors)
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
                results = values if r == 1 else short_transform(values, self.tables.inverse, vectors)
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


def _alike(factors: list[int], first: int, *, to_memory: bool, scaled: bool) -> int:
    """How many passes from one on have one body: none are the first, whose values are not turned, or a last with more to do."""
    last = len(factors) - (to_memory or scaled)
    return sum(1 for _ in itertools.takewhile(lambda r: r == factors[first], factors[first:last])) if first else 1
