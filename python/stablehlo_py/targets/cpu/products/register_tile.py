"""One register tile of a product: MR x NR sums over a block of k, and what becomes of them.

    for each step of k:  load NR lanes of rhs;  for each row: broadcast a lane of lhs, multiply and add

A tile inside the result goes there from the registers. One that may be at an edge, or with something to be done to it,
goes to a buffer of its size first, and from there row by row, behind masks: that code stands there once for tiles of all
sizes. Where there are many steps of k to a tile and stores behind masks cost no more than others, those inside take that way
too if there are edges, for less code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stablehlo_py.mlir import arith, func, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, add, multiply
from stablehlo_py.targets.cpu.emit.streaming import LINE, Address, strides_of
from stablehlo_py.targets.cpu.products import product_forms
from stablehlo_py.targets.cpu.products.packing import Index, lanes_left, pack_row_ahead
from stablehlo_py.transforms.kernels.kernel_scratch import element_bytes
from stablehlo_py.transforms.simplify.panels import PANEL

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products.epilogue import Epilogue
    from stablehlo_py.targets.cpu.products.product import Product

DEEP = 256  # steps beside which the way of a tile through a buffer is too short to be seen


def emit_tile(of: Product, t: Index, packed_row: Index, i: Index, slot: Index, j: Index, rows: Index) -> None:
    """Rows of C from i, columns from j.

    t: which tile of the packed block of lhs; packed_row: its first row there; slot: which panel of rhs; rows: how many
    rows count.
    """
    after = of.epilogue
    if after is None:
        _to_result(of, _sums(of, t, packed_row, slot, j), i, j, rows)
        return
    nest.when(of.last, lambda: prefetch_epilogue(of, after, i, j))
    _to_buffer(of, _sums(of, t, packed_row, slot, j))
    nest.when(of.last, lambda: finish(of, after, i, j, rows), lambda: rows_to_result(of, None, i, j, rows))


def _to_result(of: Product, sums: list[ir.Value], i: Index, j: Index, rows: Index) -> None:
    """Add a tile to C, as far as it is inside."""
    inside = [
        arith.cmpi(arith.CmpIPredicate.sle, nest.index(add(start, size)), nest.index(extent))
        for start, size, extent, cut in ((i, of.mr, of.m, of.cuts_rows), (j, of.nr, of.n, of.cuts_columns))
        if cut
    ]
    if not inside:
        _whole(of, sums, i, j, rows)
        return

    def edge() -> None:
        _to_buffer(of, sums)
        rows_to_result(of, None, i, j, rows)

    # AVX2's stores behind masks are some twenty operations each on Zen
    if of.masks and of.packed_steps >= DEEP:
        edge()
        return

    whole = inside[0] if len(inside) == 1 else arith.andi(*inside)
    nest.when(whole, lambda: _whole(of, sums, i, j, rows), edge)


def prefetch_epilogue(of: Product, epilogue: Epilogue, i: Index, j: Index) -> None:
    """Ask for what the epilogue will touch, a few elements of each row, before the time in which it comes."""

    def row(r: ir.Value) -> None:
        epilogue.prefetch(of.at(of.c_labels, m=add(i, r), n=j), of.width, of.lanes)

    nest.loop(0, of.mr, 1, row)


# --- sums over k -----------------------------------------------------------------------------------------------------------


def _sums(of: Product, t: Index, packed_row: Index, slot: Index, j: Index) -> list[ir.Value]:
    """The sums of the tile over one block of k, in registers, row after row."""
    walk = _walk(of, t, packed_row, slot, j)
    zero = of.sums.zero()
    begin = [zero] * of.width
    if of.form.offsets:
        wide = [of.sums.load(of.noted_b, [add(multiply(slot, of.nr), w * of.lanes)]) for w in range(of.width)]
        shift = of.sums.splat(arith.constant(of.form.sums, 7))
        begin = [arith.subi(zero, arith.shli(column, shift)) for column in wide]

    if not of.form.is_small_float:
        return _added_up(of, walk, t, j, begin * of.mr)
    return _checked(of, walk, slot, lambda: _added_up(of, walk, t, j, begin * of.mr))


def _added_up(of: Product, walk: Walk, t: Index, j: Index, sums: list[ir.Value]) -> list[ir.Value]:
    """The loop over k."""
    lhs = Address.of(of.packed_a, [walk.lhs])
    # a place that moves by more than one element a step is counted by itself, which is cheaper than to multiply
    moves = [walk.rhs_step] if walk.lhs_step == 1 else [walk.rhs_step, walk.lhs_step]
    starts = [nest.index(walk.rhs), nest.index(0)][: len(moves)]

    def step(k: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        places, sums = carried[: len(moves)], carried[len(moves) :]
        if not of.steps_are_short and not of.packs_ahead:
            _ask_for_next(of, t, k, j)
        left, right = lhs.moved(k if walk.lhs_step == 1 else places[1]), Address.of(of.packed_b, [places[0]])
        row = [right.moved(w * of.lanes).load(of.vectors.type) for w in range(of.width)]
        totals = []
        for r in range(of.mr):
            factor = left.moved(r * walk.between_rows).spread(of.vectors.type)
            for w in range(of.width):
                totals.append(product_forms.multiply_add(of.form, factor, row[w], sums[r * of.width + w]))
        return [*(nest.index(add(place, by)) for place, by in zip(places, moves, strict=True)), *totals]

    def stretch(k: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        if of.packs_ahead:
            pack_row_ahead(of, t, k)
        else:
            _ask_for_next(of, t, k, j)
        return nest.loop(k, nest.minimum(add(k, of.tiles), of.steps), 1, step, carried)

    def asking(k: ir.Value, row: ir.Value, *carried: ir.Value) -> list[ir.Value]:
        place = multiply(add(multiply(of.following, of.packed_steps), row), of.nr)
        for n in range(0, of.nr, LINE // of.form.bytes):
            nest.prefetch(of.packed_b, [add(place, n)])
        found = nest.loop(k, nest.minimum(add(k, of.tiles_beside), of.steps), 1, step, carried)
        return [nest.index(add(row, 1)), *found]

    if of.asks_for_panels:
        # each tile of the block asks for its share of the rows, one after as many steps as there are tiles
        row = multiply(t, nest.ceil_divided(of.steps, of.tiles_beside))
        found = nest.loop(0, of.steps, of.tiles_beside, asking, [nest.index(row), *starts, *sums])[1:]
    elif of.packs_ahead or (of.steps_are_short and _packs_next(of)):
        found = nest.loop(0, of.steps, of.tiles, stretch, [*starts, *sums])
    else:
        found = nest.loop(0, of.steps, 1, step, [*starts, *sums])
    return found[len(moves) :]


def _packs_next(of: Product) -> bool:
    """Whether the next panel of rhs is packed right after this one, from rows that are worth asking for."""
    return of.just_in_time and not of.is_packed and of.b_labels[-1] == "n"


def _ask_for_next(of: Product, t: Index, k: ir.Value, j: Index) -> None:
    """Ask for a row of the next panel of rhs, so that packing it finds it near; over all tiles of this one, for each row.

    Beside each step where a step is long, many times for one row; else beside as many as there are tiles. One line of each
    64 bytes is asked for: what of a row is in one more is the beginning of the panel behind.
    """
    if not _packs_next(of):
        return
    at = add(multiply(t, of.packed_steps), k)
    if of.steps_are_short:
        row = arith.divui(nest.index(at), nest.index(of.tiles))
    else:
        row = arith.shrui(nest.index(at), nest.index(of.tiles.bit_length() - 1))
    for n in range(0, of.nr, LINE // element_bytes(of.source)):
        column = add(add(j, of.nr * of.chunk_panels), n)
        nest.prefetch(of.b, of.at(of.b_labels, k=add(multiply(row, of.group), of.at_k), n=column))


@record
class Walk:
    """Where a tile finds its operands in what is packed: the first, and how many elements a step of k is."""

    lhs: Index
    lhs_step: int
    between_rows: int
    rhs: Index
    rhs_step: int


def _walk(of: Product, t: Index, packed_row: Index, slot: Index, j: Index) -> Walk:
    rhs, rhs_step = multiply(slot, of.packed_steps * of.nr), of.nr
    if of.is_packed:
        panel, column = (op(nest.index(j), nest.index(PANEL)) for op in (arith.divui, arith.remui))
        rhs, rhs_step = add(multiply(add(multiply(panel, of.k), of.at_k), PANEL), column), PANEL
    if of.a_labels[-1] == "k":
        return Walk(multiply(packed_row, of.a_stride), 1, of.a_stride, rhs, rhs_step)
    return Walk(multiply(t, of.packed_steps * of.mr), of.mr, 1, rhs, rhs_step)


def _checked(of: Product, walk: Walk, slot: Index, fast: Callable[[], list[ir.Value]]) -> list[ir.Value]:
    """Sums of bf16: by the instruction where it is exact, else row by row in f32."""
    exact = product_forms.is_exact(nest.load(of.noted_a, [0]), nest.load(of.noted_b, [multiply(slot, of.nr)]))
    count = of.mr * of.width

    def slow() -> list[ir.Value]:
        def row(r: ir.Value) -> None:
            def step(k: ir.Value, *sums: ir.Value) -> list[ir.Value]:
                place = add(add(walk.lhs, multiply(k, walk.lhs_step)), multiply(r, walk.between_rows))
                factor = Address.of(of.packed_a, [place]).spread(of.vectors.type)
                right = Address.of(of.packed_b, [add(walk.rhs, multiply(k, walk.rhs_step))])
                return [
                    product_forms.multiply_add_in_f32(
                        factor, right.moved(w * of.lanes).load(of.vectors.type), total, of.lanes
                    )
                    for w, total in enumerate(sums)
                ]

            for w, total in enumerate(nest.loop(0, of.steps, 1, step, [of.sums.zero()] * of.width)):
                of.sums.store(total, of.tile_of_c, [add(multiply(r, of.nr), w * of.lanes)])

        nest.loop(0, of.mr, 1, row)
        tile = Address.of(of.tile_of_c, [0])
        return [tile.moved(v * of.lanes).load(of.sums.type) for v in range(count)]

    return nest.choose(exact, [of.sums.type] * count, fast, slow)


# --- to the result -----------------------------------------------------------------------------------------------------


def _whole(of: Product, sums: list[ir.Value], i: Index, j: Index, rows: Index) -> None:
    """A tile inside the result, from the registers; its last row only if it counts."""
    stored = Vectors(of.result, of.lanes)
    corner = Address.of(of.c, of.at(of.c_labels, m=i, n=j))
    between_rows = strides_of(of.c)[0][of.c_labels.index("m")]

    def row(r: int) -> None:
        for w in range(of.width):
            place = corner.moved(r * between_rows + w * of.lanes)
            value = _as_result(of, sums[r * of.width + w])
            if of.accumulate or of.first is not True:
                value = _plus_earlier(of, value, place.load(stored.type))
            place.store(value)

    for r in range(of.mr - 1):
        row(r)
    nest.when(nest.equal(rows, of.mr), lambda: row(of.mr - 1))


def _to_buffer(of: Product, sums: list[ir.Value]) -> None:
    tile = Address.of(of.tile_of_c, [0])
    for number, total in enumerate(sums):
        tile.moved(number * of.lanes).store(total)


def finish(of: Product, epilogue: Epilogue, i: Index, j: Index, rows: Index) -> None:
    """The epilogue, in a function of its own: else its constants would take registers from the sums all along k."""
    partial = [of.c] if of.blocks > 1 or of.accumulate else []
    buffers = [of.tile_of_c, *partial, *epilogue.buffers]
    flags = [] if isinstance(of.first, bool) else [of.first]
    arguments = [*buffers, nest.index(i), nest.index(j), nest.index(of.at_batch["b"]), *flags]
    if of.short:
        arguments.append(nest.index(rows))
    name = f"{ir.StringAttr(of.function.attributes['sym_name']).value}_rows"
    with ir.InsertionPoint(of.function):
        types = [v.type for v in arguments]
        function = func.func(name, ir.FunctionType.get(types, []), private=True)
        function.attributes["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
    import copy  # most products have no epilogue

    inside = copy.copy(of)
    block = function.regions[0].blocks.append(*types)
    new = iter(block.arguments)
    inside.tile_of_c = next(new)
    if partial:
        inside.c = next(new)
    moved = epilogue.with_buffers({old: next(new) for old in epilogue.buffers})
    i, j, inside.at_batch = next(new), next(new), {"b": next(new)}
    inside.first = of.first if isinstance(of.first, bool) else next(new)
    with ir.InsertionPoint(block), nest.shared_indices(block):
        rows_to_result(inside, moved, i, j, next(new) if of.short else rows)
        func.return_([])
    func.call([], name, arguments)


def rows_to_result(of: Product, epilogue: Epilogue | None, i: Index, j: Index, rows: Index) -> None:
    """Row by row from the tile's buffer to the result, by way of the epilogue, as far as there are rows and columns."""
    stored = Vectors(of.result, of.lanes)

    def row(r: ir.Value) -> None:
        def part(column: Index) -> None:
            n = add(j, column)
            count = 0 if not of.cuts_columns else lanes_left(of, of.n, n)
            where = of.at(of.c_labels, m=add(i, r), n=n)
            value = _as_result(of, of.sums.load(of.tile_of_c, [add(multiply(r, of.nr), column)]))
            if of.accumulate or of.first is not True:
                value = _plus_earlier(of, value, _load(stored, of.c, where, count))
            if epilogue is None:
                _store(stored, value, of.c, where, count)
            else:
                epilogue.run(value, where, of.lanes, count)

        nest.once_or_loop(of.nr, of.lanes, part)

    nest.loop(0, nest.minimum(rows, nest.subtract(of.m, i)) if of.cuts_rows else rows, 1, row)


def _as_result(of: Product, total: ir.Value) -> ir.Value:
    """Sums of small integers in f32 are exact, and integers in the result."""
    stored = Vectors(of.result, of.lanes)
    if total.type == stored.type:
        return total
    return arith.fptosi(stored.type, total)


def _plus_earlier(of: Product, value: ir.Value, earlier: ir.Value) -> ir.Value:
    """The sum over this block and those before it; in the first block, the result holds nothing yet."""
    stored = Vectors(of.result, of.lanes)
    if not of.accumulate and of.first is not False:
        earlier = arith.select(of.first, stored.zero(), earlier)
    return (arith.addf if isinstance(of.result, ir.FloatType) else arith.addi)(earlier, value)


def _load(stored: Vectors, source: ir.Value, where: list[Index], count: Index) -> ir.Value:
    if isinstance(count, int) and not count:
        return stored.load(source, where)
    return stored.masked_load(source, where, count)


def _store(stored: Vectors, value: ir.Value, target: ir.Value, where: list[Index], count: Index) -> None:
    if isinstance(count, int) and not count:
        stored.store(value, target, where)
    else:
        stored.masked_store(value, target, where, count)
