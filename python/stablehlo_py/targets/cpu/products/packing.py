"""Blocks of both operands of a product, copied in the order in which register tiles read them.

rhs: panels of NR columns, a row of NR lanes for each step of k. lhs as (m, k): rows as they are, padded; lhs as (k, m):
tiles of MR columns, like panels. What lies past an edge is zero or never read into a result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stablehlo_py.later import Later
from stablehlo_py.mlir import arith, func, ir
from stablehlo_py.ops import llvm_ops
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import LINE, Address, as_offset, strides_of
from stablehlo_py.targets.cpu.products import product_forms
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products import tile_packing as _tile_packing
    from stablehlo_py.targets.cpu.products.product import Product
else:  # of products on matrix tiles
    _tile_packing = Later("stablehlo_py.targets.cpu.products.tile_packing")

ROWS_AHEAD = 8  # of a panel that are asked for before they are packed: some 800 cycles, longer than memory takes

Index = int | ir.Value
Notes = list[ir.Value]


def pack_rhs(of: Product, slot: Index, j: Index) -> None:
    """The panel of columns from j, and what is noted of it."""
    base = multiply(slot, of.packed_steps * of.nr)
    noted = _columns(of, "rhs", base, j, of.nr) if of.b_labels[-1] == "n" else _squares(of, base, j)
    if of.form.offsets:
        for w, total in enumerate(noted):
            of.sums.store(total, of.noted_b, [add(multiply(slot, of.nr), w * of.lanes)])
    elif of.form.is_small_float:
        nest.store(product_forms.exponent(noted[0]), of.noted_b, [multiply(slot, of.nr)])


def pack_row_ahead(of: Product, t: Index, k: Index) -> None:
    """A row of the next panel: beside the steps from k of tile t, where k is a multiple of the number of tiles.

    All tiles together come by as many times as there are rows, or more: then they pack the last row again.
    """
    slot, column = of.ahead
    each = nest.ceil_divided(of.steps, of.tiles)
    row = nest.minimum(
        add(multiply(t, each), arith.divui(nest.index(k), nest.index(of.tiles))), nest.subtract(of.steps, 1)
    )
    source = Address.of(of.b, of.at(of.b_labels, k=add(row, of.at_k), n=column))
    target = Address.of(of.packed_b, [multiply(add(multiply(slot, of.packed_steps), row), of.nr)])
    stored, form = Vectors(of.source, of.lanes), of.form.of_side("rhs")
    for w in range(0, of.nr, of.lanes):
        count = lanes_left(of, of.n, add(column, w)) if of.cuts_columns else 0
        target.moved(w).store(product_forms.rows_to_lanes(form, [loaded(of, source.moved(w), stored, count)]))
    later = nest.index(add(row, ROWS_AHEAD))
    is_past = arith.cmpi(arith.CmpIPredicate.sge, later, nest.index(of.steps))
    k_later = arith.select(is_past, nest.index(nest.subtract(later, of.steps)), later)
    n_later = arith.select(is_past, nest.index(add(column, of.nr)), nest.index(column))
    # The last elements: where rows do not begin with a line, the panel before has asked for that of the first ones. It is
    # gone again where rows are so far apart that those of a panel share few sets of the second-level cache.
    line = LINE // element_bytes(of.source)
    first = [0] if of.shares_sets else []
    for n in [*first, *range(min(line, of.nr) - 1, of.nr, line)]:
        nest.prefetch(of.b, of.at(of.b_labels, k=add(k_later, of.at_k), n=add(n_later, n)))


def pack_panels(of: Product, s0: Index, s1: Index, origin: Index | None = None) -> None:
    """Panels s0 .. s1, row by row of k: what lies side by side in memory is read together. origin: that of the first slot."""
    if of.is_packed:
        return
    origin = s0 if origin is None else origin
    if of.form.tiles and of.b_labels[-1] == "n":
        _tile_packing.panels(of, s0, s1, origin)
        return
    if of.group > 1 or of.b_labels[-1] != "n" or of.chunk_panels == 1:
        nest.loop(s0, s1, 1, lambda s: pack_rhs(of, nest.subtract(s, origin), of.first_column(s)))
        return

    stored = Vectors(of.source, of.lanes)

    whole = of.n // of.nr  # panels that need no mask

    def row(k: ir.Value) -> None:
        def panel(s: ir.Value, *, cut: bool) -> None:
            base = multiply(nest.subtract(s, origin), of.packed_steps * of.nr)
            n = of.first_column(s)
            source = Address.of(of.b, of.at(of.b_labels, k=add(k, of.at_k), n=n))
            target = Address.of(of.packed_b, [add(base, multiply(k, of.nr))])
            for w in range(0, of.nr, of.lanes):
                count = lanes_left(of, of.n, add(n, w)) if cut else 0
                row = loaded(of, source.moved(w), stored, count)
                target.moved(w).store(product_forms.rows_to_lanes(of.form.of_side("rhs"), [row]))

        if of.masks or not of.cuts_columns:
            nest.loop(s0, s1, 1, lambda s: panel(s, cut=of.cuts_columns))
            return
        nest.loop(s0, nest.minimum(s1, whole), 1, lambda s: panel(s, cut=False))
        nest.loop(nest.maximum(s0, whole), s1, 1, lambda s: panel(s, cut=True))

    nest.loop(0, of.steps, 1, row)


def pack_lhs(of: Product, t0: Index, t1: Index) -> None:
    """Tiles t0 .. t1 of rows, and what is noted of them."""
    noted = begin(of, "lhs")
    if of.a_labels[-1] == "k":
        noted = _rows(of, of.first_row(t0), of.last_row(t1), noted)
    elif of.packs_rows:
        noted = _tile_packing.turned_rows(of, of.first_row(t0), of.last_row(t1), noted)
    else:

        def tile(t: ir.Value, *noted: ir.Value) -> Notes:
            base = multiply(nest.subtract(t, t0), of.packed_steps * of.mr)
            return _columns(of, "lhs", base, of.first_row(t), of.mr, list(noted))

        noted = nest.loop(t0, t1, 1, tile, noted)
    if of.form.is_small_float:
        nest.store(product_forms.exponent(noted[0]), of.noted_a, [0])


def _columns(of: Product, side: str, base: Index, start: Index, width: int, noted: Notes | None = None) -> Notes:
    """An operand with k outermost: `width` columns from `start`, neighbouring rows of k sharing their lanes.

    Of whole vectors: where `width` is none, a row reaches over the next one, which is written after it.
    """
    source, labels, along, extent = (of.a, of.a_labels, "m", of.m) if side == "lhs" else (of.b, of.b_labels, "n", of.n)
    target = of.packed_a if side == "lhs" else of.packed_b
    goes_back = of.short or of.repeats_rows if side == "lhs" else of.repeats_columns
    last = extent - width if goes_back else (extent - 1) // width * width  # of the starts
    parts = range(0, width, of.lanes)
    reach = len(parts) * of.lanes
    stored = Vectors(of.source, of.lanes)
    between_rows = strides_of(source)[0][labels.index("k")] if "k" in labels else 0
    form = of.form.of_side(side)
    counts: list[Index] = [0 if last + reach <= extent else lanes_left(of, extent, add(start, w)) for w in parts]

    def row(step: ir.Value, *noted: ir.Value) -> Notes:
        found = list(noted)
        first = multiply(step, of.group)
        corner = Address.of(source, of.at(labels, k=add(first, of.at_k), **{along: start}))
        to = Address.of(target, [add(base, multiply(step, width))])
        for number, w in enumerate(parts):
            rows = []
            for g in range(of.group):
                count = counts[number]
                if g and of.k % of.group:
                    inside = arith.cmpi(arith.CmpIPredicate.slt, nest.index(add(first, g)), nest.index(of.depth))
                    count = arith.select(inside, nest.index(count or of.lanes), nest.index(0))
                rows.append(loaded(of, corner.moved(g * between_rows + w), stored, count))
            lanes = product_forms.rows_to_lanes(form, rows)
            found = note(of, side, lanes, found, number)
            if side == "lhs":
                lanes = product_forms.as_lhs(of.form, lanes)
            to.moved(w).store(lanes)
        return found

    return nest.loop(0, of.steps, 1, row, begin(of, side) if noted is None else noted)


def _rows(of: Product, start: Index, stop: Index, noted: Notes) -> Notes:
    """Rows start .. stop of lhs as (m, k)."""

    def row(i: ir.Value, *noted: ir.Value) -> Notes:
        def part(step: Index, *noted: ir.Value) -> Notes:
            step, *run = _run(of, step, again=not of.form.tiles)
            where = of.at(of.a_labels, m=i, k=add(multiply(step, of.group), of.at_k))
            lanes = product_forms.run_to_lanes(of.form.of_side("lhs"), fetch(of, of.a, where, *run))
            found = note(of, "lhs", lanes, list(noted), 0)
            place = add(multiply(nest.subtract(i, start), of.a_stride), step)
            of.vectors.store(product_forms.as_lhs(of.form, lanes), of.packed_a, [place])
            return found

        return nest.loop(0, of.steps, of.lanes, part, noted)

    return nest.loop(start, stop, 1, row, noted)


def _squares(of: Product, base: Index, j: Index) -> Notes:
    """A panel of rhs as (n, k): square blocks, transposed in registers."""
    from stablehlo_py.targets.cpu.emit.register_transpose import transposed  # most products have rhs as (k, n)

    between_rows = strides_of(of.b)[0][of.b_labels.index("n")]

    def column(w: Index, noted: Notes, number: int) -> Notes:
        first = add(j, w)

        def square(step: Index, *noted: ir.Value) -> Notes:
            # sums of columns have each element once, and what tiles read behind the end is zero
            step, longest, count = _run(of, step, again=not (of.form.offsets or of.form.tiles))
            source = Address.of(of.b, of.at(of.b_labels, n=first, k=add(multiply(step, of.group), of.at_k)))
            stored = Vectors(of.source, longest)
            rows = []
            for r in range(of.lanes):
                row: Index = r
                if of.cuts_columns:  # what is read twice is stored nowhere
                    row = nest.minimum(r, nest.subtract(of.n - 1, first))
                fetched = loaded(of, source.moved(multiply(row, between_rows)), stored, count)
                rows.append(product_forms.run_to_lanes(of.form.of_side("rhs"), fetched))
            found = list(noted)
            target = Address.of(of.packed_b, [add(add(base, multiply(step, of.nr)), w)])
            for r, lanes in enumerate(transposed(rows)):
                found = note(of, "rhs", lanes, found, number)
                target.moved(r * of.nr).store(lanes)
            return found

        return nest.loop(0, of.steps, of.lanes, square, noted)

    noted = begin(of, "rhs")
    if of.form.offsets:  # sums of their own for each vector of columns
        for number in range(of.width):
            noted = column(number * of.lanes, noted, number)
        return noted
    if of.width == 1:
        return column(0, noted, 0)
    return nest.loop(0, of.nr, of.lanes, lambda w, *noted: column(w, list(noted), 0), noted)


def _run(of: Product, step: Index, *, again: bool) -> tuple[Index, int, Index]:
    """One packed vector along k: where it begins, and its elements: how many there may be, and how many there are (0: all).

    again: what another vector has may be packed again, so that the last one of a block goes as far back as makes it whole.
    """
    longest = of.lanes * of.group
    if of.k % longest == 0:
        return step, longest, 0
    if again and of.k % of.group == 0 and of.k - (of.blocks - 1) * of.kc >= longest:
        return nest.minimum(step, nest.subtract(of.steps, of.lanes)), longest, 0
    return step, longest, nest.minimum(longest, nest.subtract(of.depth, multiply(step, of.group)))


def lanes_left(of: Product, extent: int, start: Index) -> Index:
    """How many lanes of a vector from `start` are inside."""
    return nest.maximum(nest.minimum(of.lanes, nest.subtract(extent, start)), 0)


def _mask(stored: Vectors, count: Index) -> ir.Value | None:
    """The first `count` lanes; None for all of them, which 0 stands for."""
    return None if isinstance(count, int) and count in (0, stored.lanes) else stored.mask(count)


def fetch(of: Product, source: ir.Value, where: list[Index], elements: int, count: Index) -> ir.Value:
    """A vector of an operand's elements as they are stored; `count` of them, 0 for all."""
    return loaded(of, Address.of(source, where), Vectors(of.source, elements), count)


def loaded(of: Product, first: Address, stored: Vectors, count: Index) -> ir.Value:
    """A vector of which `count` elements are read, 0 for all; zeros behind them.

    Where there are no masks for elements so small, LLVM would test each lane of each vector: whole vectors are read as
    such then, others element by element.
    """
    if of.masks or first.size >= 4 or isinstance(count, int):
        return first.load(stored.type, _mask(stored, count))

    whole = arith.cmpi(arith.CmpIPredicate.sge, count, nest.index(stored.lanes))
    (lanes,) = nest.choose(
        whole,
        [stored.type],
        lambda: [first.load(stored.type)],
        lambda: [_element_by_element(of, first, stored, count)],
    )
    return lanes


def _element_by_element(of: Product, first: Address, stored: Vectors, count: ir.Value) -> ir.Value:
    """The same by a function of its own: the vector is in memory while its elements come."""
    name = f"{ir.StringAttr(of.function.attributes['sym_name']).value}_first_{stored.lanes}"
    if name not in of.readers:
        of.readers.append(name)
        with ir.InsertionPoint(of.function):
            inputs = [first.pointer.type, count.type]
            function = func.func(name, ir.FunctionType.get(inputs, [stored.type]), private=True)
            function.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
        block = function.regions[0].blocks.append(*inputs)
        start, limit = Address(block.arguments[0], first.size), block.arguments[1]

        def element(i: ir.Value, lanes: ir.Value) -> list[ir.Value]:
            offset = as_offset(i)
            one = llvm_ops.load(stored.element, start.moved(offset).pointer, start.size)
            return [llvm_ops.insert_element(lanes, one, offset)]

        with ir.InsertionPoint(block), nest.shared_indices(block):
            func.return_(nest.loop(0, limit, 1, element, [stored.zero()]))
    return func.call([stored.type], name, [first.pointer, count]).results[0]


# --- what is noted while packing: sums of columns of signed bytes, the smallest magnitude of bf16 ------------------------


def begin(of: Product, side: str) -> Notes:
    if of.form.offsets and side == "rhs":
        return [of.sums.zero()] * of.width
    return [product_forms.no_magnitude(of.form)] if of.form.is_small_float else []


def note(of: Product, side: str, lanes: ir.Value, noted: Notes, number: int) -> Notes:
    if of.form.offsets and side == "rhs":
        noted[number] = product_forms.sums_of_lanes(of.form, lanes, noted[number])
    elif of.form.is_small_float:
        noted[0] = product_forms.smaller_magnitude(of.form, lanes, noted[0])
    return noted
