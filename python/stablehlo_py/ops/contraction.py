"""dot_general and dot: products summed over contracting dimensions."""

from __future__ import annotations

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import ElementType, TensorType, element_type
from stablehlo_py.dialects.stablehlo import DotDims, DotGeneral, Op
from stablehlo_py.mlir import arith, complex, ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import PARALLEL, REDUCTION, Tensor


@lower("stablehlo.dot_general")
def lower_dot_general(op: DotGeneral, lhs: Tensor, rhs: Tensor) -> Tensor:
    return contract(lhs, rhs, op.dims, op.type)


@lower("stablehlo.dot")
def lower_dot(op: Op, lhs: Tensor, rhs: Tensor) -> Tensor:
    """The last dimension of lhs with the first of rhs."""
    return contract(lhs, rhs, DotDims((), (), (lhs.rank - 1,), (0,)), op.type)


def contract(lhs: Tensor, rhs: Tensor, dims: DotDims, ty: TensorType) -> Tensor:
    """result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], in ascending k for every shape.

    The loops run over batch, lhs free, contracting, rhs free dimensions, in this order, so the innermost one is parallel
    and goes over contiguous memory of rhs and of the result; rhs is transposed first where it would not.
    """
    if ty.size == 0:
        return build.empty(ty)
    lhs_free, rhs_free = dims.lhs_free(lhs.rank), dims.rhs_free(rhs.rank)
    rhs, dims, rhs_free = _contiguous_along_free(rhs, dims, rhs_free)

    count = iter(range(lhs.rank + rhs.rank))
    batch = [next(count) for _ in dims.lhs_batching]
    m = [next(count) for _ in lhs_free]
    k = [next(count) for _ in dims.lhs_contracting]
    n = [next(count) for _ in rhs_free]
    loop_of_lhs = dict(zip(dims.lhs_batching + lhs_free + dims.lhs_contracting, batch + m + k, strict=True))
    loop_of_rhs = dict(zip(dims.rhs_batching + dims.rhs_contracting + rhs_free, batch + k + n, strict=True))
    operands = [[loop_of_lhs[d] for d in range(lhs.rank)], [loop_of_rhs[d] for d in range(rhs.rank)], batch + m + n]
    rank = len(batch + m + k + n)

    element = accumulator(ty.element)
    total = build.generic(
        [lhs, rhs],
        [build.splat(ty.with_element(element), 0)],
        lambda x, y, acc: multiply_add(element, cast(lhs.element, element, x), cast(rhs.element, element, y), acc),
        maps=[build.dims_map(rank, loops) for loops in operands],
        iterators=[REDUCTION if d in k else PARALLEL for d in range(rank)],
    )[0]
    return converted(total, ty.element)


def _contiguous_along_free(
    rhs: Tensor, dims: DotDims, free: tuple[int, ...]
) -> tuple[Tensor, DotDims, tuple[int, ...]]:
    """rhs as (batch, contracting, free) if its last dimension is not a free one already.

    (n, k) -> (k, n)
    """
    long = [d for d in range(rhs.rank) if rhs.shape[d] != 1]
    long_free = [d for d in free if rhs.shape[d] != 1]
    if not long_free or long_free[-1] == long[-1]:
        return rhs, dims, free
    order = dims.rhs_batching + dims.rhs_contracting + free
    batching, contracting = len(dims.rhs_batching), len(dims.rhs_contracting)
    moved = DotDims(
        dims.lhs_batching,
        tuple(range(batching)),
        dims.lhs_contracting,
        tuple(range(batching, batching + contracting)),
    )
    return layout.transpose(rhs, order), moved, tuple(range(batching + contracting, rhs.rank))


# --- sums of products, for convolutions too ----------------------------------------------------------------------------


def accumulator(element: ElementType) -> ElementType:
    """What sums of products are kept in: f32 for smaller floats, rounded once at the end; else the type itself."""
    return element_type("f32") if element.is_float and element.bits < 32 else element


def converted(source: Tensor, element: ElementType) -> Tensor:
    """The accumulator's elements as those of the result."""
    if source.element == element:
        return source
    return build.generic([source], [source.type.with_element(element)], lambda x: x)[0]


def cast(source: ElementType, target: ElementType, value: ir.Value) -> ir.Value:
    """A compute scalar of an operand's type as one of the accumulator's."""
    have, want = build.compute_type(source), build.compute_type(target)
    if have == want:
        return value
    if target.is_complex:
        part = cast(source, target.part, value)
        return complex.create_(want, part, build.scalar(target.part, 0))
    if source.is_float and target.is_float:
        return arith.extf(want, value) if source.bits < 64 and target.bits == 64 else arith.truncf(want, value)
    unsigned = source.is_unsigned or source.is_bool
    if target.is_float:
        return arith.uitofp(want, value) if unsigned else arith.sitofp(want, value)
    if source.is_float:
        return arith.fptoui(want, value) if target.is_unsigned else arith.fptosi(want, value)
    if source.bits > target.bits:
        return arith.trunci(want, value)
    return arith.extui(want, value) if unsigned else arith.extsi(want, value)


def multiply_add(element: ElementType, x: ir.Value, y: ir.Value, total: ir.Value) -> ir.Value:
    """total + x * y on compute scalars; on booleans: or, and."""
    if element.is_float:
        return arith.addf(total, arith.mulf(x, y))
    if element.is_complex:
        return complex.add(total, complex.mul(x, y))
    if element.is_bool:
        return arith.ori(total, arith.andi(x, y))
    return arith.addi(total, arith.muli(x, y))
