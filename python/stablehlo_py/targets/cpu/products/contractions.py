"""dot_general on the CPU: one canonical contraction that `cpu-emit-contractions` turns into a packed matrix product.

result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n], each operand with its dimensions in whatever order it lies in
memory. Dimensions of one kind that are neighbours in memory are joined without a copy; those of the batch may lie apart, as
in attention, whose heads are behind the positions; what else is scattered is transposed first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.registry import lower
from stablehlo_py.core.types import TensorType
from stablehlo_py.dialects.stablehlo import DotDims, DotGeneral
from stablehlo_py.mlir import ir
from stablehlo_py.ops import build, layout
from stablehlo_py.ops.build import PARALLEL, REDUCTION, Tensor
from stablehlo_py.ops.contraction import accumulator, cast, contract, converted, multiply_add
from stablehlo_py.transforms.simplify.panels import PANEL

# marks the generic: labels of lhs, rhs and result, such as "bmk" (see `joined`), and elements as below
CONTRACTION = "kernel.contraction"
SMALLEST = 1 << 12  # multiplications; below, packing costs more than it saves
# What the emitter multiplies: lhs and rhs, or both where they differ, and the result. Sums of products of bytes are exact in f32
# for one block.
ELEMENTS = {
    ("f32", "f32"),
    ("f64", "f64"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("f16", "f16"),
    ("f16", "f32"),
    ("i8", "i32"),
    ("ui8", "i32"),
    ("ui8", "ui32"),
    ("i8,ui8", "i32"),
    ("ui8,i8", "i32"),
}


@lower("stablehlo.dot_general", target="cpu")
def lower_dot_general(op: DotGeneral, lhs: Tensor, rhs: Tensor) -> Tensor:
    """The canonical contraction, or plain loops for what is small or of other types."""
    dims, ty = _ordered(op.dims), op.type
    free = (dims.lhs_free(lhs.rank), dims.rhs_free(rhs.rank))
    m, n = (math.prod(t.shape[d] for d in f) for t, f in zip((lhs, rhs), free, strict=True))
    k = math.prod(lhs.shape[d] for d in dims.lhs_contracting)
    batch = math.prod(lhs.shape[d] for d in dims.lhs_batching)
    if (elements(lhs, rhs), ty.element.name) not in ELEMENTS or ty.size == 0 or k == 0:
        return contract(lhs, rhs, op.dims, ty)
    if is_panels(rhs, op.dims) and not dims.lhs_batching and len(dims.lhs_contracting) == 1 and m > 1:
        return on_panels(lhs, rhs, dims, ty)
    if n == 1 and m > 1:
        # a vector on the right is a vector on the left of the transposed product
        swapped = DotDims(dims.rhs_batching, dims.lhs_batching, dims.rhs_contracting, dims.lhs_contracting)
        return product(rhs, lhs, swapped, ty, (batch, 1, m, k))
    if batch * m * n * k < SMALLEST:
        return contract(lhs, rhs, op.dims, ty)
    return product(lhs, rhs, dims, ty, (batch, m, n, k))


def elements(lhs: Tensor, rhs: Tensor) -> str:
    """What the operands of a product are made of."""
    return lhs.element.name if lhs.element == rhs.element else f"{lhs.element.name},{rhs.element.name}"


def product(lhs: Tensor, rhs: Tensor, dims: DotDims, ty: TensorType, sizes: tuple[int, int, int, int]) -> Tensor:
    """The contraction with joined dimensions. sizes: batch, m, n, k."""
    a, a_labels = joined(lhs, {"b": dims.lhs_batching, "m": dims.lhs_free(lhs.rank), "k": dims.lhs_contracting})
    b, b_labels = joined(rhs, {"b": dims.rhs_batching, "k": dims.rhs_contracting, "n": dims.rhs_free(rhs.rank)})
    extents, batch = dict(zip("bmnk", sizes, strict=True)), [lhs.shape[d] for d in dims.lhs_batching]
    labels = [
        label for label in "bmkn" if label in a_labels + b_labels or label in "mn" or (label == "b" and sizes[0] > 1)
    ]
    c_labels = "".join(label for label in "bmn" if label in labels)
    a, a_labels = _with_label(a, a_labels, "m")
    b, b_labels = _with_label(b, b_labels, "n")
    element = accumulator(ty.element)
    total = build.splat(ty.with_shape(tuple(extents[x] for x in c_labels)).with_element(element), 0)
    result = build.generic(
        [a, b],
        [total],
        lambda x, y, acc: multiply_add(element, cast(lhs.element, element, x), cast(rhs.element, element, y), acc),
        maps=[_map(labels, text, [n for n in batch if n != 1]) for text in (a_labels, b_labels, c_labels)],
        iterators=[REDUCTION if label == "k" else PARALLEL for label in labels],
    )[0]
    generic = result.value.owner.operation
    facts = (a_labels, b_labels, c_labels, elements(lhs, rhs))
    generic.attributes[CONTRACTION] = ir.ArrayAttr.get([ir.StringAttr.get(x) for x in facts])
    return layout.reshape(converted(result, ty.element), ty.shape)


def _map(loops: Sequence[str], labels: str, batch: Sequence[int]) -> ir.AffineMap:
    """The loops to an operand's dimensions; batch: the extents of those that lie apart, whose elements the loop b counts."""
    exprs = []
    for label in labels:
        expr: ir.AffineExpr = ir.AffineExpr.get_dim(loops.index("b" if label.isdigit() else label))
        if label.isdigit():
            expr = ir.AffineExpr.get_floor_div(expr, math.prod(batch[int(label) + 1 :]))
            expr = ir.AffineExpr.get_mod(expr, batch[int(label)])
        exprs.append(expr)
    return ir.AffineMap.get(len(loops), 0, exprs)


def on_panels(lhs: Tensor, panels: Tensor, dims: DotDims, ty: TensorType) -> Tensor:
    """The product by panels of 32 columns, (n / 32, k, 32), as hlo-pack-invariants leaves them."""
    a, a_labels = joined(lhs, {"m": dims.lhs_free(lhs.rank), "k": dims.lhs_contracting})
    a, a_labels = _with_label(a, a_labels, "m")
    count, _, width = panels.shape
    m = a.shape[a_labels.index("m")]
    loops = "mpkn"
    column = ir.AffineExpr.get_add(
        ir.AffineExpr.get_mul(ir.AffineDimExpr.get(1), ir.AffineConstantExpr.get(width)), ir.AffineDimExpr.get(3)
    )
    element = accumulator(ty.element)
    total = build.splat(ty.with_shape((m, count * width)).with_element(element), 0)
    result = build.generic(
        [a, panels],
        [total],
        lambda x, y, acc: multiply_add(element, cast(lhs.element, element, x), cast(panels.element, element, y), acc),
        maps=[
            build.dims_map(4, [loops.index(x) for x in a_labels]),
            build.dims_map(4, [1, 2, 3]),
            ir.AffineMap.get(4, 0, [ir.AffineDimExpr.get(0), column]),
        ],
        iterators=[PARALLEL, PARALLEL, REDUCTION, PARALLEL],
    )[0]
    facts = (a_labels, "pkn", "mn", lhs.element.name)
    result.value.owner.operation.attributes[CONTRACTION] = ir.ArrayAttr.get([ir.StringAttr.get(x) for x in facts])
    return layout.reshape(converted(result, ty.element), ty.shape)


def is_panels(rhs: Tensor, dims: DotDims) -> bool:
    """Whether rhs is (n / 32, k, 32) of f32, with k contracted."""
    return rhs.rank == 3 and rhs.element.name == "f32" and rhs.shape[2] == PANEL and dims.rhs_contracting == (1,)


def joined(source: Tensor, groups: dict[str, tuple[int, ...]]) -> tuple[Tensor, str]:
    """`source` with the dimensions of each group as one, and the groups' labels in the order of memory.

    Groups of size 1 leave no dimension. The last dimension is not the batch: packing goes along it. Where the batch's
    dimensions are no neighbours, or not in their order, their labels are 0, 1, ...
    """
    wide = {label: tuple(d for d in dims if source.shape[d] != 1) for label, dims in groups.items()}
    wide = {label: dims for label, dims in wide.items() if dims}
    order = [d for d in range(source.rank) if source.shape[d] != 1]
    first = {label: order.index(dims[0]) for label, dims in wide.items()}
    scattered = {
        x for x, dims in wide.items() if [order.index(d) for d in dims] != [first[x] + i for i in range(len(dims))]
    }
    last = next((x for x, dims in wide.items() if order[-1] in dims), None)
    if scattered == {"b"} and last != "b":
        apart = wide.pop("b")
        wide.update((str(i), (d,)) for i, d in enumerate(apart))
        first.update((str(i), order.index(d)) for i, d in enumerate(apart))
        scattered = set()
    labels = sorted(wide, key=first.__getitem__)
    if scattered or (last == "b" and len(labels) > 1):
        labels = list(wide)
        rest = [d for d in range(source.rank) if source.shape[d] == 1]
        source = layout.transpose(source, [*(d for x in labels for d in wide[x]), *rest])
        return layout.reshape(source, _extents(source, [len(wide[x]) for x in labels])), "".join(labels)
    return layout.reshape(source, [math.prod(source.shape[d] for d in wide[x]) for x in labels]), "".join(labels)


def _extents(source: Tensor, counts: list[int]) -> list[int]:
    """The sizes of consecutive dimensions joined by these counts."""
    extents, at = [], 0
    for count in counts:
        extents.append(math.prod(source.shape[at : at + count]))
        at += count
    return extents


def _with_label(source: Tensor, labels: str, label: str) -> tuple[Tensor, str]:
    """A first dimension of size 1 for a label that is missing."""
    if label in labels:
        return source, labels
    return layout.reshape(source, (1, *source.shape)), label + labels


def _ordered(dims: DotDims) -> DotDims:
    """The same contraction with the contracting pairs in the order in which lhs has them in memory."""
    pairs = sorted(zip(dims.lhs_contracting, dims.rhs_contracting, strict=True))
    left, right = tuple(x for x, _ in pairs), tuple(y for _, y in pairs)
    return DotDims(dims.lhs_batching, dims.rhs_batching, left, right)
