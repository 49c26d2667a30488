"""sort with any comparator over several operands, always stable; top_k."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, TensorType, element_type
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import arith, ir, tensor
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import Tensor

# before(left, right): whether the left elements, one per operand, must come before the right ones
Before = Callable[[Sequence[ir.Value], Sequence[ir.Value]], ir.Value]


@lower("stablehlo.sort")
def lower_sort(op: Op, *operands: Tensor) -> tuple[Tensor, ...]:
    """The slices along `dimension`, ordered by the comparator; equal elements keep their order."""
    dimension = op.integer("dimension", -1) % max(1, operands[0].rank)
    if operands[0].type.size <= 1 or operands[0].shape[dimension] == 1:
        return tuple(operands)

    def before(left: Sequence[ir.Value], right: Sequence[ir.Value]) -> ir.Value:
        return build.apply_region(op, 0, *[side for pair in zip(left, right, strict=True) for side in pair])[0]

    return merge_sort(operands, dimension, before)


def merge_sort(operands: Sequence[Tensor], dimension: int, before: Before) -> tuple[Tensor, ...]:
    """A stable bottom-up merge sort of each slice, to and fro between the two rows of a buffer.

    for slice: copy it into row 0; for width = 1, 2, 4 ..: merge runs of width into the other row; copy the last row out
    """
    shape = operands[0].shape
    length, others = shape[dimension], [n for d, n in enumerate(shape) if d != dimension]
    count, passes = len(operands), (length - 1).bit_length()

    def of_slice(outer: list[ir.Value], carried: list) -> list:
        def place(i: ir.Value) -> list[ir.Value]:
            return [*outer[:dimension], i, *outer[dimension:]]

        def copy_in(i: list[ir.Value], buffers: list) -> list:
            return [
                _stored_write(buffer, tensor.extract(operand.value, place(i[0])), [build.index(0), i[0]])
                for buffer, operand in zip(buffers, operands, strict=True)
            ]

        def merge(step: list[ir.Value], state: list) -> list:
            *buffers, row, width = state
            other = arith.subi(build.index(1), row)
            merged = _merge_runs(buffers, row, other, width, length, before)
            return [*merged, other, arith.muli(width, build.index(2))]

        def copy_out(i: list[ir.Value], targets: list) -> list:
            return [
                _stored_write(target, tensor.extract(buffer.value, [build.index(passes % 2), i[0]]), place(i[0]))
                for target, buffer in zip(targets, buffers, strict=True)
            ]

        buffers = build.loops([length], carried[count:], copy_in)
        *buffers, _row, _width = build.loops([passes], [*buffers, build.index(0), build.index(1)], merge)
        return [*build.loops([length], carried[:count], copy_out), *buffers]

    results = build.results([operand.type for operand in operands])
    buffers = [build.buffer(TensorType((2, length), operand.element)) for operand in operands]
    return tuple(build.loops(others, [*results, *buffers], of_slice)[:count])


def _merge_runs(
    buffers: Sequence[Tensor], row: ir.Value, other: ir.Value, width: ir.Value, length: int, before: Before
) -> list[Tensor]:
    """Each two neighbouring ordered runs of `width` elements in a row as one in the other row."""
    size, one, last = build.index(length), build.index(1), build.index(length - 1)
    pairs = arith.ceildivsi(size, arith.muli(width, build.index(2)))

    def of_pair(pair: list[ir.Value], carried: list) -> list:
        begin = arith.muli(pair[0], arith.muli(width, build.index(2)))
        middle = arith.minsi(arith.addi(begin, width), size)
        end = arith.minsi(arith.addi(middle, width), size)

        def of_element(k: list[ir.Value], state: list) -> list:
            *rows, i, j = state
            left = [build.read(t, [row, arith.minsi(i, last)]) for t in rows]
            right = [build.read(t, [row, arith.minsi(j, last)]) for t in rows]
            # the right one only if it must come first: so equal elements keep their order
            swapped = before(right, left)
            left_is_empty = arith.cmpi(arith.CmpIPredicate.sge, i, middle)
            has_right = arith.cmpi(arith.CmpIPredicate.slt, j, end)
            take_right = arith.andi(has_right, arith.ori(swapped, left_is_empty))
            source, target = [row, arith.select(take_right, j, i)], [other, arith.addi(begin, k[0])]
            moved = [_stored_write(t, tensor.extract(t.value, source), target) for t in rows]
            return [
                *moved,
                arith.select(take_right, i, arith.addi(i, one)),
                arith.select(take_right, arith.addi(j, one), j),
            ]

        return build.loops([arith.subi(end, begin)], [*carried, begin, middle], of_element)[:-2]

    return build.loops([pairs], list(buffers), of_pair)


def _stored_write(target: Tensor, stored: ir.Value, at: Sequence[ir.Value]) -> Tensor:
    return Tensor(tensor.insert(stored, target.value, list(at)), target.type)


_BOOL = element_type("i1")


# --- top_k -------------------------------------------------------------------------------------------------------------


@lower("chlo.top_k")
def lower_top_k(op: Op, operand: Tensor) -> tuple[Tensor, ...]:
    """The k largest of each row in descending order and where they were; of equal ones the first comes first.

    A row of k places is kept in order; an element that beats the last one moves in. Floats are in total order:
    NaN is above everything, -0 below 0.
    """
    values_type, indices_type = op.types
    k, length = values_type.shape[-1], operand.shape[-1]
    if values_type.size == 0:
        return build.empty(values_type), build.empty(indices_type)
    if k > _LONG_ROW:
        return _sorted_top_k(operand, values_type, indices_type)
    one, last = build.index(1), build.index(k - 1)

    def of_row(outer: list[ir.Value], carried: list) -> list:
        def of_element(i: list[ir.Value], state: list) -> list:
            values, indices = state
            new = build.read(operand, [*outer, i[0]])
            full = arith.cmpi(arith.CmpIPredicate.sge, i[0], build.index(k))
            worst = build.read(values, [*outer, last])
            loses = arith.andi(full, arith.xori(_greater(operand.element, new, worst), build.scalar(_BOOL, True)))

            def move_in() -> list:
                # from the end: smaller ones go one place down, until the place of the new one is found
                held = arith.minsi(i[0], build.index(k - 1))

                def shift(step: list[ir.Value], inner: list) -> list:
                    values, indices, place = inner
                    above = arith.subi(arith.subi(held, step[0]), one)
                    old = build.read(values, [*outer, above])
                    moves = arith.andi(
                        arith.cmpi(arith.CmpIPredicate.eq, place, arith.addi(above, one)),
                        _greater(operand.element, new, old),
                    )

                    def down() -> list:
                        index = build.read(indices, [*outer, above])
                        below = [*outer, arith.addi(above, one)]
                        return [build.write(values, old, below), build.write(indices, index, below), above]

                    return build.when(moves, inner, down, lambda: inner)

                values_now, indices_now, place = build.loops([held], [values, indices, held], shift)
                at = [*outer, place]
                where = build.from_index(indices_type.element, i[0])
                return [build.write(values_now, new, at), build.write(indices_now, where, at)]

            return build.when(loses, state, lambda: state, move_in)

        return build.loops([length], carried, of_element)

    start = build.results([values_type, indices_type])
    return tuple(build.loops(values_type.shape[:-1], start, of_row))


# beyond this many places, a whole sort is cheaper than moving elements one by one
_LONG_ROW = 64


def _sorted_top_k(operand: Tensor, values_type: TensorType, indices_type: TensorType) -> tuple[Tensor, ...]:
    ty = operand.type.with_element(indices_type.element)
    indices = layout.assemble(ty, lambda i: build.narrow(ty.element, build.from_index(ty.element, i[-1])))
    values, places = merge_sort(
        [operand, indices], operand.rank - 1, lambda left, right: _greater(operand.element, left[0], right[0])
    )
    zeros = [0] * operand.rank
    return (
        layout.extract_slice(values, zeros, values_type.shape),
        layout.extract_slice(places, zeros, indices_type.shape),
    )


def _greater(element: ElementType, x: ir.Value, y: ir.Value) -> ir.Value:
    """x > y; floats in total order."""
    if element.is_unsigned or element.is_bool:
        return arith.cmpi(arith.CmpIPredicate.ugt, x, y)
    if element.is_float:
        x, y = _ordered_bits(x), _ordered_bits(y)
    return arith.cmpi(arith.CmpIPredicate.sgt, x, y)


def _ordered_bits(x: ir.Value) -> ir.Value:
    """A float's bits as a signed integer in the order of the floats: negative ones have their magnitude flipped."""
    width = 64 if isinstance(x.type, ir.F64Type) else 32
    ty = ir.IntegerType.get_signless(width)
    bits = arith.bitcast(ty, x)
    sign = arith.shrsi(bits, build.integer_constant(ty, width - 1))
    magnitude = build.integer_constant(ty, (1 << (width - 1)) - 1)
    return arith.xori(bits, arith.andi(sign, magnitude))
