"""Matrix products with few rows of lhs: rhs is read once, so it is not packed.

rhs as (k, n), the axpy form: eight rows of rhs at a time are streams, the result stays in a near cache. While they are
read, the same columns of the next eight are asked for; the hardware follows a row, and no further than its share of it.

    for k0 in steps of 8:  for n in steps of a tile:  C[:, n] += sum over 8 of A[:, k] x B[k, n]

rhs as (n, k), the dot form: partial sums in vectors along k, added up in the end.

    for n in steps of 4:  for k in steps of a vector:  acc[n] += A[k] * B[n, k];  C[n] = sum of acc[n]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.products import packing, product_forms
from stablehlo_py.targets.cpu.products.packing import Index
from stablehlo_py.transforms.kernels.lower_groups import PARALLEL_LOOP

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products.product import Product

STREAMS = 8  # rows of rhs read at a time: as many as the hardware prefetcher follows
SUMS = 16  # vectors of the result in registers
ROWS_OF_DOTS = 4  # columns of the result whose partial sums are in registers at a time


def suits(product: Product) -> bool:
    """Whether packing rhs would cost more than it saves."""
    if product.epilogue is not None or product.element not in ("f32", "f64") or product.is_packed:
        return False
    return product.m <= (2 if product.b_labels[-1] == "k" else 8)


def is_axpy(product: Product) -> bool:
    return product.b_labels[-1] == "n"


# --- the axpy form ---------------------------------------------------------------------------------------------------------


def tile_columns(of: Product) -> int:
    """Columns of the result in registers."""
    return max(1, min(8, SUMS // of.m, -(-of.n // of.lanes))) * of.lanes


def tiles(of: Product) -> int:
    return -(-of.n // tile_columns(of))


def emit_axpy(of: Product, begin: Index, end: Index) -> None:
    """Tiles begin .. end of the columns of one batch element."""
    size = tile_columns(of)
    whole = of.n // size

    def rows(k0: Index) -> None:
        of.at_k, of.depth = k0, nest.minimum(STREAMS, nest.subtract(of.k, k0))
        of.first = nest.equal(k0, 0)
        if whole:
            nest.loop(begin, nest.minimum(end, whole), 1, lambda t: _tile(of, multiply(t, size), size, masked=False))
        if of.n % size:
            nest.when(nest.equal(end, whole + 1), lambda: _tile(of, whole * size, of.n - whole * size, masked=True))

    nest.once_or_loop(of.k, STREAMS, rows)


def _tile(of: Product, n: Index, count: int, *, masked: bool) -> None:
    """`count` columns of C from n, over eight rows of rhs."""
    lanes = of.lanes
    parts = range(0, count, lanes)
    counts = {w: count - w if masked and count - w < lanes else 0 for w in parts}
    places = [(r, w) for r in range(of.m) for w in parts]
    target = Vectors(of.result, lanes)
    start = []
    for r, w in places:
        where = of.at(of.c_labels, m=r, n=add(n, w))
        if of.first is True and not of.accumulate:
            start.append(target.zero())
            continue
        earlier = target.masked_load(of.c, where, counts[w]) if counts[w] else target.load(of.c, where)
        fresh = not of.accumulate and of.first is not False
        start.append(arith.select(of.first, target.zero(), earlier) if fresh else earlier)

    def step(at: ir.Value, *sums: ir.Value) -> list[ir.Value]:
        k = add(at, of.at_k)
        if of.k > STREAMS:
            later = nest.minimum(add(k, STREAMS), of.k - 1)
            for w in parts:
                nest.prefetch(of.b, of.at(of.b_labels, k=later, n=add(n, w)))
        row = {}
        for w in parts:
            stored = packing.fetch(of, of.b, of.at(of.b_labels, k=k, n=add(n, w)), lanes, counts[w])
            row[w] = product_forms.widened(of.form, stored)
        factors = [of.vectors.splat(nest.load(of.a, of.at(of.a_labels, m=r, k=k))) for r in range(of.m)]
        return [vector.fma(factors[r], row[w], total) for (r, w), total in zip(places, sums, strict=True)]

    for (r, w), total in zip(places, nest.loop(0, of.depth, 1, step, start), strict=True):
        where = of.at(of.c_labels, m=r, n=add(n, w))
        if counts[w]:
            target.masked_store(total, of.c, where, counts[w])
        else:
            target.store(total, of.c, where)


# --- the dot form ----------------------------------------------------------------------------------------------------------


def emit_dots(of: Product) -> None:
    """The whole product of one batch element."""
    lanes, whole = of.lanes, of.k // of.lanes * of.lanes

    def columns(n0: Index, count: int) -> None:
        places = [(r, j) for r in range(of.m) for j in range(count)]

        def step(k: Index, sums: list[ir.Value], left: int) -> list[ir.Value]:
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
            value = vector.reduction(of.form.sums, "add", total)
            if of.accumulate:
                value = arith.addf(nest.load(of.c, where), value)
            nest.store(value, of.c, where)

    parallel = PARALLEL_LOOP if of.batch == 1 else ""
    left = of.n % ROWS_OF_DOTS
    if of.n > ROWS_OF_DOTS and left and not of.accumulate:  # some of the last ones twice: one loop, which threads share
        places = of.n + ROWS_OF_DOTS - left
        nest.loop(
            0,
            places,
            ROWS_OF_DOTS,
            lambda n: columns(nest.minimum(n, of.n - ROWS_OF_DOTS), ROWS_OF_DOTS),
            parallel=parallel,
        )
        return
    if of.n >= ROWS_OF_DOTS:
        nest.loop(0, of.n - left, ROWS_OF_DOTS, lambda n: columns(n, ROWS_OF_DOTS), parallel="" if left else parallel)
    if left:
        columns(of.n - left, left)
