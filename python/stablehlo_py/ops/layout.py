"""Elements moved and not touched: reshape, transpose, broadcast, slice, insert, pad, concatenate, reverse.

Everything here works on stored elements, so no bit changes on the way. What other families use to bring operands into
the order they want; the rules of these ops themselves are in `shape`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stablehlo_py.core.types import TensorType
from stablehlo_py.mlir import ir, linalg, tensor
from stablehlo_py.ops import build
from stablehlo_py.ops.build import Tensor


def move(source: Tensor, ty: TensorType, source_dims: Sequence[int]) -> Tensor:
    """result[i] = source[i[d] for d in source_dims]: a broadcast, a transposition, or a copy."""
    op, block = _generic([source], ty, [build.dims_map(ty.rank, source_dims), build.identity_map(ty.rank)])
    with ir.InsertionPoint(block):
        linalg.yield_([block.arguments[0]])
    return Tensor(op.results[0], ty)


def assemble(ty: TensorType, body: Callable[[list[ir.Value]], ir.Value]) -> Tensor:
    """result[i] = body(i), a stored scalar: what no map of indices can say."""
    op, block = _generic([], ty, [build.identity_map(ty.rank)])
    with ir.InsertionPoint(block):
        linalg.yield_([body([build.loop_index(d) for d in range(ty.rank)])])
    return Tensor(op.results[0], ty)


def _generic(sources: Sequence[Tensor], ty: TensorType, maps: Sequence[ir.AffineMap]) -> tuple[ir.Operation, ir.Block]:
    target = build.empty(ty)
    op = linalg.generic(
        [target.value.type],
        [t.value for t in sources],
        [target.value],
        ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps]),
        ir.ArrayAttr.get([ir.Attribute.parse("#linalg.iterator_type<parallel>")] * ty.rank),
    )
    elements = [build.storage_type(t.element) for t in [*sources, target]]
    return op, op.regions[0].blocks.append(*elements, arg_locs=None)


# --- reshape -----------------------------------------------------------------------------------------------------------


def reshape(source: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements in row-major order under another shape, without a copy."""
    ty = source.type.with_shape(tuple(shape))
    if ty.shape == source.shape:
        return source
    if ty.size == 0:
        return build.empty(ty)
    groups = _common_groups(source.shape, ty.shape)
    middle = source.type.with_shape(tuple(math.prod(source.shape[d] for d in dims) for dims, _ in groups))
    if middle.rank != source.rank:
        groups_of_source = [list(dims) for dims, _ in groups]
        source = Tensor(tensor.collapse_shape(build.storage_tensor(middle), source.value, groups_of_source), middle)
    if middle.rank == ty.rank:
        return source
    groups_of_result = [list(dims) for _, dims in groups]
    expanded = tensor.expand_shape(build.storage_tensor(ty), source.value, groups_of_result, [], list(ty.shape))
    return Tensor(expanded, ty)


def _common_groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The finest groups of neighbouring dimensions with equal products on both sides; no dimension is 0.

    (2, 3, 4), (6, 2, 2) -> [([0, 1], [0]), ([2], [1, 2])]
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) and j < len(after):
        left, right = [i], [j]
        p, q = before[i], after[j]
        i, j = i + 1, j + 1
        while p != q:
            if p < q:
                p *= before[i]
                left.append(i)
                i += 1
            else:
                q *= after[j]
                right.append(j)
                j += 1
        groups.append((left, right))
    if groups:  # only ones are left over
        groups[-1][0].extend(range(i, len(before)))
        groups[-1][1].extend(range(j, len(after)))
    return groups


# --- order and repetition ----------------------------------------------------------------------------------------------


def transpose(source: Tensor, permutation: Sequence[int]) -> Tensor:
    """result dimension d is source dimension permutation[d]; free where only dimensions of size 1 move."""
    ty = source.type.with_shape(tuple(source.shape[d] for d in permutation))
    long = [d for d in permutation if source.shape[d] != 1]
    if long == sorted(long):
        return reshape(source, ty.shape)
    inverse = [0] * source.rank
    for result_dim, source_dim in enumerate(permutation):
        inverse[source_dim] = result_dim
    return move(source, ty, inverse)


def broadcast(source: Tensor, shape: Sequence[int], dims: Sequence[int]) -> Tensor:
    """Source dimension d becomes result dimension dims[d]; the others, and those of size 1, repeat."""
    ty = source.type.with_shape(tuple(shape))
    kept = [d for d in range(source.rank) if source.shape[d] == shape[dims[d]]]
    if len(kept) == ty.rank and list(dims) == sorted(dims):
        return source
    if math.prod(shape) == math.prod(source.shape) and list(dims) == sorted(dims):
        return reshape(source, shape)
    if ty.size == 0:
        return build.empty(ty)
    return move(reshape(source, [source.shape[d] for d in kept]), ty, [dims[d] for d in kept])


def reverse(source: Tensor, dims: Sequence[int]) -> Tensor:
    """The elements in opposite order along dims."""
    dims = [d for d in dims if source.shape[d] > 1]
    if not dims or source.type.size == 0:
        return source

    def opposite(indices: list[ir.Value]) -> ir.Value:
        for d in dims:
            indices[d] = build.arith.subi(build.index(source.shape[d] - 1), indices[d])
        return tensor.extract(source.value, indices)

    return assemble(source.type, opposite)


# --- pieces ------------------------------------------------------------------------------------------------------------


def extract_slice(
    source: Tensor, offsets: Sequence[int | ir.Value], sizes: Sequence[int], strides: Sequence[int] | None = None
) -> Tensor:
    """The elements at offset + i * stride for i < size; offsets are numbers or values of index type."""
    ty = source.type.with_shape(tuple(sizes))
    if ty.size == 0:
        return build.empty(ty)
    if ty.shape == source.shape:
        return source
    at, static = _offsets(offsets)
    steps = list(strides) if strides is not None else [1] * source.rank
    piece = tensor.extract_slice(build.storage_tensor(ty), source.value, at, [], [], static, list(sizes), steps)
    return Tensor(piece, ty)


def insert_slice(
    piece: Tensor, target: Tensor, offsets: Sequence[int | ir.Value], strides: Sequence[int] | None = None
) -> Tensor:
    """target with piece[i] at offset + i * stride."""
    if piece.type.size == 0:
        return target
    at, static = _offsets(offsets)
    steps = list(strides) if strides is not None else [1] * target.rank
    whole = tensor.insert_slice(piece.value, target.value, at, [], [], static, list(piece.shape), steps)
    return Tensor(whole, target.type)


def _offsets(offsets: Sequence[int | ir.Value]) -> tuple[list[ir.Value], list[int]]:
    """Those that are values, and all as numbers with a mark where a value stands."""
    values = [o for o in offsets if not isinstance(o, int)]
    return values, [o if isinstance(o, int) else ir.ShapedType.get_dynamic_size() for o in offsets]


def pad(
    source: Tensor,
    stored: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    interior: Sequence[int] | None = None,
) -> Tensor:
    """source with a stored scalar around and between its elements; negative padding takes elements away."""
    interior = list(interior) if interior is not None else [0] * source.rank
    if not any((*low, *high, *interior)):
        return source
    shape, offsets, first, count, steps = [], [], [], [], []
    for size, before, after, between in zip(source.shape, low, high, interior, strict=True):
        step = between + 1
        extent = before + max(0, size + (size - 1) * between) + after
        begin = -(min(before, 0) // step)  # the first element at a position >= 0
        end = min(size, (extent - 1 - before) // step + 1)  # one past the last at a position < extent
        shape.append(extent)
        first.append(begin)
        count.append(max(0, end - begin))
        offsets.append(before + begin * step)
        steps.append(step if count[-1] > 1 else 1)
    ty = source.type.with_shape(tuple(shape))
    if ty.size == 0:
        return build.empty(ty)
    kept = (
        extract_slice(source, first, count) if math.prod(count) else build.empty(source.type.with_shape(tuple(count)))
    )
    if kept.shape == ty.shape:
        return kept
    return insert_slice(kept, build.fill(ty, stored), offsets, steps)


def concatenate(parts: Sequence[Tensor], dimension: int) -> Tensor:
    """The parts one after the other along a dimension."""
    if len(parts) == 1:
        return parts[0]
    shape = list(parts[0].shape)
    shape[dimension] = sum(part.shape[dimension] for part in parts)
    whole = build.empty(parts[0].type.with_shape(tuple(shape)))
    at = [0] * len(shape)
    for part in parts:
        whole = insert_slice(part, whole, at)
        at[dimension] += part.shape[dimension]
    return whole
