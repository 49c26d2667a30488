"""Matrix products with few rows of lhs: rhs is read once, so it is not packed.

rhs as (k, n), the axpy form: eight rows of rhs at a time are streams, the result stays in a near cache.

    for each share of the columns:                    parallel
      for k0 in steps of 8:  for n in steps of a tile:  C[:, n] += sum over 8 of A[:, k] x B[k, n]

rhs as (n, k), the dot form: partial sums in vectors along k, added up in the end.

    for n in steps of 4:  for k in steps of a vector:  acc[n] += A[k] * B[n, k];  C[n] = sum of acc[n]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.targets.cpu import nest, packing
from stablehlo_py.targets.cpu.nest import Vectors, add, multiply
from stablehlo_py.transforms.lower_groups import PARALLEL_LOOP

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.cpu_emit_contractions import Product

SPLIT = 8  # parts of the columns at most
SHORTEST = 2048  # columns of a part: rows of rhs are read in pieces of this, and short ones starve the prefetcher
SPLIT_WORK = 1 << 18  # elements of rhs from which splitting pays
STREAMS = 8  # rows of rhs read at a time: as many as the hardware prefetcher follows
ROWS_OF_DOTS = 4  # columns of the result whose partial sums are in registers at a time


def suits(product: Product) -> bool:
    """Whether packing rhs would cost more than it saves."""
    if product.epilogue is not None or product.element not in ("f32", "f64"):
        return False
    return product.m <= (2 if product.b_labels[-1] == "k" else 8)


def emit_batch(product: Product) -> None:
    """The whole product of one batch element."""
    (_axpy if product.b_labels[-1] == "n" else _dots)(product)


def _axpy(of: Product) -> None:
    lanes = of.lanes
    width = max(1, min(4, (of.registers - 4) // (of.m + 1)))

    def block(k0: int | ir.Value, depth: int, *, first: bool) -> None:
        def columns(n: int | ir.Value, vectors: int, left: int) -> None:
            tile = [(r, w) for r in range(of.m) for w in range(vectors)]

            def lanes_of(w: int) -> int:
                return left if left and w == vectors - 1 else 0

            sums = {}
            for r, w in tile:
                sums[r, w] = (
                    of.vectors.zero() if first else _load(of, of.c, of.c_labels, r, add(n, w * lanes), lanes_of(w))
                )
            for step in range(depth):
                k = add(k0, step)
                row = [
                    packing.fetch(of, of.b, of.at(of.b_labels, k=k, n=add(n, w * lanes)), of.lanes, lanes_of(w))
                    for w in range(vectors)
                ]
                for r in range(of.m):
                    factor = of.vectors.splat(nest.load(of.a, of.at(of.a_labels, m=r, k=k)))
                    for w in range(vectors):
                        sums[r, w] = vector.fma(factor, row[w], sums[r, w])
            for (r, w), total in sums.items():
                where = of.at(of.c_labels, m=r, n=add(n, w * lanes))
                if lanes_of(w):
                    of.vectors.masked_store(total, of.c, where, lanes_of(w))
                else:
                    of.vectors.store(total, of.c, where)

        if parts:
            first_tile, last_tile = parts
            nest.loop(multiply(first_tile, tile_n), multiply(last_tile, tile_n), tile_n, lambda n: columns(n, width, 0))
        elif whole:
            nest.loop(0, whole, tile_n, lambda n: columns(n, width, 0))
        if of.n > whole:
            rest = of.n - whole
            columns(whole, -(-rest // lanes), rest % lanes)

    def blocks() -> None:
        """All of k, for the columns of `parts`."""
        first = min(STREAMS, of.k)
        block(0, first, first=not of.accumulate)
        most = (of.k - first) // STREAMS * STREAMS
        if most:
            nest.loop(first, first + most, STREAMS, lambda k: block(k, STREAMS, first=False))
        if of.k > first + most:
            block(first + most, of.k - first - most, first=False)

    tile_n = width * lanes
    whole = of.n // tile_n * tile_n
    tiles = of.n // tile_n
    parts: tuple[int | ir.Value, int | ir.Value] | None = None
    share = max(-(-tiles // SPLIT), SHORTEST // tile_n)
    if of.batch > 1 or whole != of.n or tiles <= share or of.n * of.k < SPLIT_WORK:
        blocks()
        return

    def part(t: ir.Value) -> None:
        nonlocal parts
        parts = (t, nest.minimum(add(t, share), tiles))
        blocks()

    nest.loop(0, tiles, share, part, parallel=PARALLEL_LOOP)


def _load(of: Product, source: ir.Value, labels: str, r: int, n: int | ir.Value, count: int) -> ir.Value:
    where = of.at(labels, m=r, n=n)
    vectors = Vectors(of.result, of.lanes)
    return vectors.masked_load(source, where, count) if count else vectors.load(source, where)


def _dots(of: Product) -> None:
    lanes, whole = of.lanes, of.k // of.lanes * of.lanes

    def columns(n0: int | ir.Value, count: int) -> None:
        places = [(r, j) for r in range(of.m) for j in range(count)]

        def step(k: int | ir.Value, sums: list[ir.Value], left: int) -> list[ir.Value]:
            left_rows = [packing.fetch(of, of.a, of.at(of.a_labels, m=r, k=k), of.lanes, left) for r in range(of.m)]
            right_rows = [
                packing.fetch(of, of.b, of.at(of.b_labels, n=add(n0, j), k=k), of.lanes, left) for j in range(count)
            ]
            return [vector.fma(left_rows[r], right_rows[j], s) for (r, j), s in zip(places, sums, strict=True)]

        sums = [of.vectors.zero()] * len(places)
        if whole:
            sums = nest.loop(0, whole, lanes, lambda k, *s: step(k, list(s), 0), sums)
        if of.k > whole:
            sums = step(whole, sums, of.k - whole)
        for (r, j), total in zip(places, sums, strict=True):
            where = of.at(of.c_labels, m=r, n=add(n0, j))
            value = vector.reduction(of.form.sums, vector.CombiningKind.ADD, total)
            if of.accumulate:
                value = arith.addf(nest.load(of.c, where), value)
            nest.store(value, of.c, where)

    whole_columns = of.n // ROWS_OF_DOTS * ROWS_OF_DOTS
    if whole_columns:
        alone = of.batch == 1 and whole_columns == of.n
        nest.loop(
            0, whole_columns, ROWS_OF_DOTS, lambda n: columns(n, ROWS_OF_DOTS), parallel=PARALLEL_LOOP if alone else ""
        )
    if of.n > whole_columns:
        columns(whole_columns, of.n - whole_columns)
