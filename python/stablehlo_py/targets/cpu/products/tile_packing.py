"""Operands of a product in the order in which matrix tiles read them, where vectors have another: see `packing`.

rhs as (k, n): a few rows of k at a time over all panels, so that what lies side by side in memory is read together. lhs as
(k, m): rows, transposed in registers. Behind the last step are zeros, up to a whole tile: zero times what lies there from
before, which may be NaN, would be no zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.register_transpose import transposed
from stablehlo_py.targets.cpu.emit.streaming import Address, strides_of
from stablehlo_py.targets.cpu.products import product_forms
from stablehlo_py.targets.cpu.products.packing import ROWS_AHEAD, Index, Notes, begin, lanes_left, loaded, note

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products.product import Product


def panels(of: Product, s0: Index, s1: Index, origin: Index) -> None:
    """Panels s0 .. s1 of rhs as (k, n); what is noted of all of them is noted of each."""
    stored = Vectors(of.source, of.lanes)
    between_rows = strides_of(of.b)[0][of.b_labels.index("k")] if "k" in of.b_labels else 0

    def step(k: ir.Value, *noted: ir.Value) -> Notes:
        first = multiply(k, of.group)

        def panel(s: ir.Value, *noted: ir.Value) -> Notes:
            found, n = list(noted), of.first_column(s)
            source = Address.of(of.b, of.at(of.b_labels, k=add(first, of.at_k), n=n))
            base = multiply(nest.subtract(s, origin), of.packed_steps * of.nr)
            target = Address.of(of.packed_b, [add(base, multiply(k, of.nr))])
            for g in range(of.group):
                source.prefetch((ROWS_AHEAD * of.group + g) * between_rows * source.size)
            for w in range(0, of.nr, of.lanes):
                count = lanes_left(of, of.n, add(n, w)) if of.cuts_columns else 0
                rows = [
                    loaded(of, source.moved(g * between_rows + w), stored, _count(of, first, g, count))
                    for g in range(of.group)
                ]
                lanes = product_forms.rows_to_lanes(of.form, rows)
                found = note(of, "rhs", lanes, found, 0)
                target.moved(w).store(lanes)
            return found

        return nest.loop(s0, s1, 1, panel, noted)

    noted = nest.loop(0, of.steps, 1, step, begin(of, "rhs"))
    if of.form.is_small_float:
        least = product_forms.exponent(noted[0])
        nest.loop(s0, s1, 1, lambda s: nest.store(least, of.noted_b, [multiply(nest.subtract(s, origin), of.nr)]))
    if of.k % (of.lanes * of.group):
        nest.loop(s0, s1, 1, lambda s: _fill(of, multiply(nest.subtract(s, origin), of.packed_steps * of.nr)))


def _fill(of: Product, base: Index) -> None:
    """Zeros behind the last step of a panel."""
    zero = of.vectors.zero()

    def row(step: ir.Value) -> None:
        target = Address.of(of.packed_b, [add(base, multiply(step, of.nr))])
        for w in range(0, of.nr, of.lanes):
            target.moved(w).store(zero)

    nest.loop(of.steps, multiply(nest.ceil_divided(of.steps, of.lanes), of.lanes), 1, row)


def turned_rows(of: Product, start: Index, stop: Index, noted: Notes) -> Notes:
    """Rows start .. stop of lhs as (k, m), in square blocks."""
    stored = Vectors(of.source, of.lanes)
    between_rows = strides_of(of.a)[0][of.a_labels.index("k")] if "k" in of.a_labels else 0

    def rows(i: ir.Value, *noted: ir.Value) -> Notes:
        count = lanes_left(of, of.m, i) if of.m % of.lanes else 0

        def square(step: ir.Value, *noted: ir.Value) -> Notes:
            found, columns = list(noted), []
            for c in range(of.lanes):
                first = multiply(add(step, c), of.group)
                source = Address.of(of.a, of.at(of.a_labels, k=add(first, of.at_k), m=i))
                parts = [
                    loaded(of, source.moved(g * between_rows), stored, _count(of, first, g, count, may_be_behind=True))
                    for g in range(of.group)
                ]
                columns.append(product_forms.rows_to_lanes(of.form, parts))
                found = note(of, "lhs", columns[-1], found, 0)
            target = Address.of(of.packed_a, [add(multiply(nest.subtract(i, start), of.a_stride), step)])
            for r, lanes in enumerate(transposed(columns)):
                target.moved(r * of.a_stride).store(lanes)
            return found

        return nest.loop(0, of.steps, of.lanes, square, noted)

    return nest.loop(start, stop, of.lanes, rows, noted)


def _count(of: Product, first: Index, g: int, count: Index, *, may_be_behind: bool = False) -> Index:
    """Of `count` elements (0: a vector) in row first + g of k, how many there are: none behind the last row.

    may_be_behind: whether `first` may be behind it, as where steps are those of whole tiles.
    """
    if of.k % (of.lanes * of.group if may_be_behind else of.group) == 0 or (not g and not may_be_behind):
        return count
    inside = arith.cmpi(arith.CmpIPredicate.slt, nest.index(add(first, g)), nest.index(of.depth))
    return arith.select(inside, nest.index(count or of.lanes), nest.index(0))
