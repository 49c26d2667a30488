"""How the elements of a product lie in packed buffers, and what one step along k does with them.

A lane of a packed vector holds one or more neighbours along k, `group` of them:

    f32, f64        1   acc = fma(a, b, acc)                              f16, and bf16 without its instruction, as f32
    bf16            2   tdpbf16ps: acc += (a0 * b0 + ...) + (a1 * b1 + ...), 16 of each         on matrix tiles
    i8, ui8         4   tdpbssd, tdpbuud: acc += a0 * b0 + ..., 64 of them                      on matrix tiles
    bf16            2   vdpbf16ps: acc = fma(a0, b0, fma(a1, b1, acc))    a1, b1 is the earlier pair, so k ascends
    ui8, or both    2   vpdpwssd: acc += a0 * b0 + a1 * b1                on elements widened to 16 bits
    i8              4   vpdpbusd: acc += (a + 128) * b, four times        acc starts from -128 * (sum of b over k)
    i8, ui8         2   vpmaddwd: acc += (a0 * b0 + a1 * b1)              without these two, on 16 bits: two instructions
    i8, ui8         1   as f32, exact in blocks of k                      without that one

vdpbf16ps and tdpbf16ps round as a fused multiply-add does, but take subnormal numbers for zeros. Nothing is subnormal while the
smallest elements of both sides multiply to at least 2**-112: the sums are multiples of that, 14 bits further down.
So packing notes the smallest magnitude other than 0, and tiles of smaller ones are multiplied in f32, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from stablehlo_py.machine.cpu import Cpu
from stablehlo_py.mlir import arith, ir, vector
from stablehlo_py.ops.llvm_ops import call_intrinsic
from stablehlo_py.records import record, replace
from stablehlo_py.targets.cpu.emit import nest
from stablehlo_py.targets.cpu.emit.nest import Vectors, constant_vector
from stablehlo_py.targets.cpu.emit.streaming import Address

# How many products of bytes add up to at most 2**24, so that f32 has every partial sum exactly.
SMALL_INT_BLOCK_K = {"i8": 1024, "ui8": 256, "i8,ui8": 512, "ui8,i8": 512}
# Exponent fields of bf16: 127 is 2**0. The sum of the fields of two numbers whose product is 2**-112 or more.
LEAST_EXPONENTS = 2 * 127 - 112
DOTS = {
    "bf16": "llvm.x86.avx512bf16.dpbf16ps.512",
    "ui8": "llvm.x86.avx512.vpdpwssd.512",
    "i8": "llvm.x86.avx512.vpdpbusd.512",
}
# Sums of two products of 16 bits, by the bytes of a vector; they do not add to what is there.
PAIRS = {16: "llvm.x86.sse2.pmadd.wd", 32: "llvm.x86.avx2.pmadd.wd", 64: "llvm.x86.avx512.pmaddw.d.512"}


@record
class Form:
    """element: of the operands, by name, or by both names where they differ.

    group: neighbours along k in a lane; lanes: of a vector of sums.

    dot: LLVM's name of what multiplies such lanes, where it is no fma; adds: whether that adds to a sum as well; tiles:
    whether it multiplies matrix tiles, not vectors.
    """

    element: str
    group: int
    lanes: int
    dot: str = ""
    adds: bool = True
    tiles: bool = False

    @property
    def packed(self) -> ir.Type:
        """A lane of a packed vector."""
        if self.group > 1:
            return ir.IntegerType.get_signless(32)
        return ir.F64Type.get() if self.element == "f64" else ir.F32Type.get()

    @property
    def sums(self) -> ir.Type:
        """What is added up."""
        if self.group == 1:
            return self.packed
        return ir.F32Type.get() if self.element == "bf16" else _integer(32)

    @property
    def is_small_float(self) -> bool:
        return self.element == "bf16" and self.group == 2

    def of_side(self, side: str) -> Form:
        """The form as one of the operands has it: "lhs" or "rhs"."""
        if "," not in self.element:
            return self
        return replace(self, element=self.element.split(",")[side == "rhs"])

    @property
    def offsets(self) -> bool:
        """Whether signed bytes of lhs are moved to unsigned ones."""
        return self.element == "i8" and self.group == 4 and not self.tiles

    @property
    def bytes(self) -> int:
        return 8 if self.element == "f64" else 4


def form_of(element: str, cpu: Cpu, *, accumulates: bool) -> Form:
    """The form for operands of this element; `accumulates`: the sums start from what is in the result."""
    if element == "bf16" and cpu.bf16_dot and not accumulates:
        return Form(element, 2, cpu.lanes(4), DOTS[element])
    if element in SMALL_INT_BLOCK_K and cpu.int8_dot:
        return Form(element, 4 if element == "i8" else 2, cpu.lanes(4), DOTS.get(element, DOTS["ui8"]))
    if element in SMALL_INT_BLOCK_K and cpu.int16_pairs:
        return Form(element, 2, cpu.lanes(4), PAIRS[cpu.vector_bytes], adds=False)
    return Form(element, 1, cpu.lanes(8 if element == "f64" else 4))


# --- packing: operand elements to lanes ---------------------------------------------------------------------------------


def rows_to_lanes(form: Form, rows: list[ir.Value]) -> ir.Value:
    """`group` vectors of neighbouring k, each over m or n, as one packed vector."""
    if form.group == 1:
        return widened(form, rows[0])
    if form.element == "bf16":
        return _lanes(form, interleaved(*(rows if form.tiles else reversed(rows))))
    if form.group == 2:
        return _lanes(form, interleaved(*[sixteen_bits(form, row) for row in rows]))
    return _lanes(form, interleaved(interleaved(rows[0], rows[2]), interleaved(rows[1], rows[3])))


def run_to_lanes(form: Form, run: ir.Value) -> ir.Value:
    """A vector of neighbouring k, `group` times as long as a packed one, as a packed one."""
    if form.group == 1:
        return widened(form, run)
    if form.group == 2 and form.element != "bf16":
        run = sixteen_bits(form, run)
    lanes = _lanes(form, run)
    if form.element != "bf16" or form.tiles:
        return lanes
    sixteen = _splat(form, 16)
    return arith.ori(arith.shli(lanes, sixteen), arith.shrui(lanes, sixteen))


def sixteen_bits(form: Form, elements: ir.Value) -> ir.Value:
    widen = arith.extsi if form.element == "i8" else arith.extui
    return widen(_vector(_integer(16), ir.VectorType(elements.type).shape[0]), elements)


def as_lhs(form: Form, lanes: ir.Value) -> ir.Value:
    """A packed vector of lhs: signed bytes are moved to unsigned ones."""
    if not form.offsets:
        return lanes
    return arith.xori(lanes, _splat(form, 0x80808080 - (1 << 32)))


def widened(form: Form, value: ir.Value) -> ir.Value:
    """An operand's vector, one element a lane, in the type that is multiplied."""
    target = _vector(form.packed, form.lanes)
    if value.type == target:
        return value
    if form.element in SMALL_INT_BLOCK_K:
        return (arith.sitofp if form.element == "i8" else arith.uitofp)(target, value)
    if form.element == "f16":
        return arith.extf(target, value)
    bits = arith.extui(_vector(_integer(32), form.lanes), value)  # bf16, stored as its bits: the upper half of an f32
    return arith.bitcast(target, arith.shli(bits, _splat(form, 16)))


# --- one step of k -------------------------------------------------------------------------------------------------------


def multiply_add(form: Form, a: ir.Value, b: ir.Value, acc: ir.Value) -> ir.Value:
    """acc + the products of one packed vector of each side."""
    if form.group == 1:
        return vector.fma(a, b, acc)
    element = ir.BF16Type.get() if form.element == "bf16" else _integer(32 // form.group)
    ty = _vector(element, form.lanes * form.group)
    factors = [vector.bitcast(ty, a), vector.bitcast(ty, b)]
    if form.adds:
        return call_intrinsic([acc.type], form.dot, [acc, *factors]).results[0]
    return arith.addi(acc, call_intrinsic([acc.type], form.dot, factors).results[0])


def tile_in_f32(left: Address, apart: int, right: Address, row: int, totals: Sequence[ir.Value]) -> list[ir.Value]:
    """What tdpbf16ps adds to the sums of one row, without it, in its order, subnormal numbers and all.

    left: the row of lhs, its lanes `apart` elements from each other; right: the first row of rhs, of `row` lanes each, as
    many vectors of which are read as there are totals.
    """
    ty = ir.VectorType(totals[0].type)
    lanes, packed = ty.shape[0], ir.VectorType.get(ty.shape, ir.IntegerType.get_signless(32))

    def step(k: ir.Value, *pairs: ir.Value) -> list[ir.Value]:
        factor = left.moved(nest.multiply(k, apart)).spread(packed)
        found = []
        for v in range(len(totals)):
            factors = factor, right.moved(nest.add(nest.multiply(k, row), v * lanes)).load(packed)
            for half, total in zip((_lower, _upper), pairs[2 * v : 2 * v + 2], strict=True):
                found.append(vector.fma(*(arith.bitcast(ty, half(each, lanes)) for each in factors), total))
        return found

    zero = Vectors(ty.element_type, lanes).zero()
    pairs = nest.loop(0, lanes, 1, step, [zero] * (2 * len(totals)))  # a tile is as deep as it is wide
    return [arith.addf(total, arith.addf(*pairs[2 * v : 2 * v + 2])) for v, total in enumerate(totals)]


def multiply_add_in_f32(a: ir.Value, b: ir.Value, acc: ir.Value, lanes: int) -> ir.Value:
    """The same for pairs of bf16 without vdpbf16ps: the upper halves first, then the lower ones."""
    wide = acc.type
    for half in (_upper, _lower):
        acc = vector.fma(arith.bitcast(wide, half(a, lanes)), arith.bitcast(wide, half(b, lanes)), acc)
    return acc


def _upper(value: ir.Value, lanes: int) -> ir.Value:
    return arith.andi(value, _constant(lanes, -65536))


def _lower(value: ir.Value, lanes: int) -> ir.Value:
    return arith.shli(value, _constant(lanes, 16))


def sums_of_lanes(form: Form, lanes: ir.Value, acc: ir.Value) -> ir.Value:
    """acc + the sum of the signed bytes in each lane."""
    ones = _splat(form, 0x01010101)
    return multiply_add(form, ones, lanes, acc)


# --- the smallest magnitude ----------------------------------------------------------------------------------------------


def no_magnitude(form: Form) -> ir.Value:
    """Where the search for the smallest one begins."""
    ty = _vector(_integer(16), 2 * form.lanes)
    return constant_vector(ty, -1)


def smaller_magnitude(form: Form, lanes: ir.Value, least: ir.Value) -> ir.Value:
    """least, or the bits of a smaller magnitude other than 0, minus 1, in these lanes."""
    ty = ir.VectorType(least.type)
    magnitude = arith.andi(vector.bitcast(ty, lanes), constant_vector(ty, 0x7FFF))
    return arith.minui(least, arith.subi(magnitude, constant_vector(ty, 1)))


def exponent(least: ir.Value) -> ir.Value:
    """The exponent field of the smallest magnitude, i32; far below any for a subnormal one, far above for none."""
    i32 = _integer(32)
    bits = arith.extui(i32, vector.reduction(_integer(16), "minui", least))
    field = arith.shrui(arith.addi(bits, _number(1)), _number(7))
    subnormal = arith.cmpi(arith.CmpIPredicate.eq, field, _number(0))
    return arith.select(subnormal, _number(-1000), field)


def is_exact(first: ir.Value, second: ir.Value) -> ir.Value:
    """Whether products of numbers with these exponent fields and above are never subnormal, nor are their sums."""
    return arith.cmpi(arith.CmpIPredicate.sge, arith.addi(first, second), _number(LEAST_EXPONENTS))


# --- small words ---------------------------------------------------------------------------------------------------------


def _integer(bits: int) -> ir.Type:
    return ir.IntegerType.get_signless(bits)


def _number(value: int) -> ir.Value:
    return arith.constant(_integer(32), value)


def _vector(element: ir.Type, lanes: int) -> ir.VectorType:
    return ir.VectorType.get([lanes], element)


def _constant(lanes: int, value: int) -> ir.Value:
    return constant_vector(_vector(_integer(32), lanes), value)


def _splat(form: Form, value: int) -> ir.Value:
    return _constant(form.lanes, value)


def _lanes(form: Form, elements: ir.Value) -> ir.Value:
    return vector.bitcast(_vector(_integer(32), form.lanes), elements)


def interleaved(first: ir.Value, second: ir.Value) -> ir.Value:
    """first[0], second[0], first[1], ..."""
    count = ir.VectorType(first.type).shape[0]
    return vector.shuffle(first, second, [i // 2 + (count if i % 2 else 0) for i in range(2 * count)])
