"""Blocks of a product on matrix tiles (AMX): up to four tiles of sums over a block of k, and what becomes of them.

    for each tile of k:  load tiles of rhs;  for each row of tiles: load one of lhs, multiply and add

Both operands are packed as for vectors of 16 lanes, lhs in rows, with zeros up to a whole tile along k. A block inside of the
result goes there from the tiles. One that may be at an edge, or with something to be done to it, goes to a buffer of its size
first and on as register tiles do; so do sums of bf16 where numbers so small may be lost that they are added up in f32, in the
order in which tiles do it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir
from stablehlo_py.targets.cpu.emit import matrix_tiles, nest
from stablehlo_py.targets.cpu.emit.matrix_tiles import LANES, MULTIPLY, ROWS, TILES
from stablehlo_py.targets.cpu.emit.nest import add, multiply
from stablehlo_py.targets.cpu.emit.streaming import Address, strides_of
from stablehlo_py.targets.cpu.products import product_forms
from stablehlo_py.targets.cpu.products.packing import Index
from stablehlo_py.targets.cpu.products.product_forms import Form, form_of
from stablehlo_py.targets.cpu.products.register_tile import finish, prefetch_epilogue, rows_to_result

if TYPE_CHECKING:
    from stablehlo_py.targets.cpu.products.product import Product

SUMS = 4  # tiles of sums: of eight, the others hold operands
CYCLES = 16  # of a product of whole tiles, however few rows count
LONE_CYCLES = 24  # where each tile of rhs is loaded for one product alone
PACKING_CYCLES = 3  # of a line of 64 bytes
SETUP_CYCLES = 400  # to shape tiles and to release them, and to fetch sums from them


def form_of_tiles(element: str, cpu: Cpu) -> Form | None:
    """The form for operands of this element, where the CPU has tiles for it."""
    lhs, _, rhs = element.partition(",")
    instruction = MULTIPLY.get((lhs, rhs or lhs))
    if instruction is None or not (cpu.bf16_tiles if element == "bf16" else cpu.int8_tiles):
        return None
    return Form(element, 2 if element == "bf16" else 4, LANES, instruction, tiles=True)


def suited(element: str, cpu: Cpu, m: int, n: int, k: int) -> Form | None:
    """The form for tiles, where they pay."""
    form = form_of_tiles(element, cpu)
    if form is None:
        return None
    columns = -(-n // LANES)
    each = CYCLES if m > ROWS else LONE_CYCLES
    tiles = -(-m // ROWS) * columns * -(-k // (LANES * form.group)) * each + SETUP_CYCLES
    vectors = m * columns * -(-k // form_of(element, cpu, accumulates=False).group) / 2  # two instructions a cycle
    return form if tiles < vectors else None


def block(m: int, n: int) -> tuple[int, int]:
    """Rows of a block of sums, and its tiles side by side: two by two, or all there is of one and the more of the other."""
    high, wide = -(-m // ROWS), -(-n // LANES)
    high, wide = (min(high, SUMS), min(wide, SUMS)) if 1 in (high, wide) else (2, 2)
    return high * ROWS, wide


def work(of: Product) -> int:
    """Instructions of vectors that would take as long, roughly, two of them a cycle: products, and what is packed for them."""
    along = of.packed_steps // LANES * of.blocks
    products = of.tiles * of.panels * _block_cycles(of)
    return 2 * of.batch * along * (products + PACKING_CYCLES * (of.m + 2 * of.n))


def grain(of: Product) -> int:
    """Rows of blocks, or panels, beside which packing all of the other operand once more is a sixteenth or so.

    In cycles for a tile along k; a row of rhs is put together from several.
    """
    one, other = (of.mr, 2 * of.n) if of.by_rows else (2 * of.nr, of.m)
    across = of.panels if of.by_rows else of.tiles
    return math.ceil(16 * PACKING_CYCLES * other / (PACKING_CYCLES * one + across * _block_cycles(of)))


def _block_cycles(of: Product) -> int:
    return of.mr // ROWS * of.width * CYCLES


def emit_tile(of: Product, t: Index, packed_row: Index, i: Index, slot: Index, j: Index, rows: Index) -> None:
    """Rows of C from i, columns from j: see `register_tile.emit_tile`."""
    exact: ir.Value | bool = True
    if of.form.is_small_float:
        exact = product_forms.is_exact(nest.load(of.noted_a, [0]), nest.load(of.noted_b, [multiply(slot, of.nr)]))
    after = of.epilogue

    def to_buffer() -> None:
        nest.when(
            exact,
            lambda: _tiles(of, packed_row, slot, Address.of(of.tile_of_c, [0]), of.nr),
            lambda: _in_f32(of, packed_row, slot),
        )

    def by_buffer() -> None:
        to_buffer()
        rows_to_result(of, None, i, j, rows)

    if after is not None:
        nest.when(of.last, lambda: prefetch_epilogue(of, after, i, j))
        to_buffer()
        nest.when(of.last, lambda: finish(of, after, i, j, rows), lambda: rows_to_result(of, None, i, j, rows))
        return
    if of.accumulate or of.first is not True:
        by_buffer()
        return
    inside = [
        arith.cmpi(arith.CmpIPredicate.sle, nest.index(add(start, size)), nest.index(extent))
        for start, size, extent, cut in ((i, of.mr, of.m, of.cuts_rows), (j, of.nr, of.n, of.cuts_columns))
        if cut
    ]
    conditions = [each for each in (exact, *inside) if each is not True]
    direct: ir.Value | bool = True
    for condition in conditions:
        direct = condition if direct is True else arith.andi(direct, condition)

    def to_result() -> None:
        between_rows = strides_of(of.c)[0][of.c_labels.index("m")]
        _tiles(of, packed_row, slot, Address.of(of.c, of.at(of.c_labels, m=i, n=j)), between_rows)

    nest.when(direct, to_result, by_buffer)


def _ask_for_rows(of: Product, k: ir.Value, target: Address, between_rows: int) -> None:
    """Ask beside a step for where a share of the block's rows will be stored; for those behind the last one too."""
    rows = -(-of.mr * LANES // of.packed_steps)
    first = target.moved(multiply(arith.divui(k, nest.index(LANES)), rows * between_rows))
    for r in range(rows):
        for w in range(of.width):
            first.prefetch((r * between_rows + w * LANES) * 4, to_write=True)


def _tiles(of: Product, packed_row: Index, slot: Index, target: Address, between_rows: int) -> None:
    """Sum up a block over one block of k, and store its rows from a place on, so many elements apart."""
    high, wide = of.mr // ROWS, of.width
    lhs = Address.of(of.packed_a, [multiply(packed_row, of.a_stride)])
    rhs = Address.of(of.packed_b, [multiply(slot, of.packed_steps * of.nr)])
    fewer = min(high, wide)  # tiles of one operand, which stay while those of the other come
    spare = TILES - SUMS - fewer

    def step(k: ir.Value) -> None:
        _ask_for_rows(of, k, target, between_rows)
        row = rhs.moved(multiply(k, of.nr))

        def load_lhs(tile: int, r: int) -> None:
            matrix_tiles.load(tile, lhs.moved(add(k, r * ROWS * of.a_stride)), of.a_stride * 4)

        def load_rhs(tile: int, w: int) -> None:
            matrix_tiles.load(tile, row.moved(w * LANES), of.nr * 4)

        stays, comes = (load_lhs, load_rhs) if high <= wide else (load_rhs, load_lhs)
        for q in range(fewer):
            stays(SUMS + q, q)
        for p in range(max(high, wide)):
            tile = SUMS + fewer + p % spare
            comes(tile, p)
            for q in range(fewer):
                if high <= wide:
                    matrix_tiles.multiply_add(of.form.dot, q * wide + p, SUMS + q, tile)
                else:
                    matrix_tiles.multiply_add(of.form.dot, p * wide + q, tile, SUMS + q)

    for number in range(high * wide):
        matrix_tiles.zero(number)
    nest.loop(0, of.steps, LANES, step)
    for r in range(high):
        for w in range(wide):
            matrix_tiles.store(r * wide + w, target.moved(r * ROWS * between_rows + w * LANES), between_rows * 4)


def _in_f32(of: Product, packed_row: Index, slot: Index) -> None:
    """The same of bf16 without tiles, subnormal numbers and all, to the block's buffer."""
    zero = of.sums.zero()
    right = Address.of(of.packed_b, [multiply(slot, of.packed_steps * of.nr)])

    def row(r: ir.Value) -> None:
        left = Address.of(of.packed_a, [multiply(add(packed_row, r), of.a_stride)])

        def tile(k: ir.Value, *totals: ir.Value) -> list[ir.Value]:
            return product_forms.tile_in_f32(left.moved(k), 1, right.moved(multiply(k, of.nr)), of.nr, totals)

        for w, total in enumerate(nest.loop(0, of.steps, LANES, tile, [zero] * of.width)):
            of.sums.store(total, of.tile_of_c, [add(multiply(r, of.nr), w * LANES)])

    nest.loop(0, of.mr, 1, row)
