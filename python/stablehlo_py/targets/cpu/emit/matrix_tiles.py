"""AMX's tiles: eight registers of 16 rows of 64 bytes, and what multiplies them.

    total[m, n] += sum over g < group, k < 16 of lhs[m, k * group + g] * rhs[k, n * group + g]

A row of lhs holds neighbours along k, 64 bytes of them. A row of rhs holds `group` such neighbours for each of 16 columns:
in lanes of 32 bits, as products of vectors take them too. Sums are 32 bits wide.

Tiles have no names in LLVM's IR that could be passed on: a kernel says which of the eight is meant, and no function that it
calls may use any. It says what they look like first, and releases them in the end, so that the system need not keep them.
"""

from __future__ import annotations

from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.ops.llvm_ops import call_intrinsic
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.streaming import Address, as_offset

TILES = 8
ROWS, ROW_BYTES = 16, 64
LANES = ROW_BYTES // 4  # sums in a row
# By the elements of lhs and rhs. Products of bytes are exact modulo 2**32. Those of bf16 are added up in f32, numbers below
# the normal ones taken for zeros: even k by themselves and odd ones too, from zero, and the sum of the two to the total.
MULTIPLY = {
    ("bf16", "bf16"): "llvm.x86.tdpbf16ps",
    ("i8", "i8"): "llvm.x86.tdpbssd",
    ("i8", "ui8"): "llvm.x86.tdpbsud",
    ("ui8", "i8"): "llvm.x86.tdpbusd",
    ("ui8", "ui8"): "llvm.x86.tdpbuud",
}


def shapes() -> list[int]:
    """The bytes that say that all tiles are whole ones."""
    found = [0] * 64
    found[0] = 1  # the palette
    for tile in range(TILES):
        found[16 + 2 * tile] = ROW_BYTES
        found[48 + tile] = ROWS
    return found


def configure() -> None:
    """Make all tiles whole ones, of zeros."""
    element = ir.IntegerType.get_signless(8)
    given = [ir.IntegerAttr.get(element, number) for number in shapes()]
    ty = ir.VectorType.get([len(given)], element)
    memory, numbers = nest.scratch([len(given)], element), ir.DenseElementsAttr.get(given, ty)
    vector.store(arith.constant(ty, numbers), memory, [nest.index(0)])
    call_intrinsic([], "llvm.x86.ldtilecfg", [Address.of(memory, [0]).pointer])


def release() -> None:
    """Be done with all tiles."""
    call_intrinsic([], "llvm.x86.tilerelease", [])


def zero(tile: int) -> None:
    call_intrinsic([], "llvm.x86.tilezero", [_number(tile)])


def load(tile: int, first: Address, row_bytes: int | ir.Value) -> None:
    """A tile's rows from a place on, so many bytes apart."""
    call_intrinsic([], "llvm.x86.tileloadd64", [_number(tile), first.pointer, _distance(row_bytes)])


def store(tile: int, first: Address, row_bytes: int | ir.Value) -> None:
    call_intrinsic([], "llvm.x86.tilestored64", [_number(tile), first.pointer, _distance(row_bytes)])


def multiply_add(instruction: str, total: int, lhs: int, rhs: int) -> None:
    """total += lhs * rhs, all three tiles, by one of `MULTIPLY`."""
    call_intrinsic([], instruction, [_number(total), _number(lhs), _number(rhs)])


def _number(tile: int) -> ir.Value:
    return arith.constant(ir.IntegerType.get_signless(8), tile)


def _distance(row_bytes: int | ir.Value) -> ir.Value:
    return as_offset(nest.index(row_bytes))
