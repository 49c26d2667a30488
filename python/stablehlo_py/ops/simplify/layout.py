"""Ops that only move elements: reshape, transpose, broadcast, slice, pad, concatenate, reverse, iota."""

from __future__ import annotations

from stablehlo_py.core.registry import simplify
from stablehlo_py.dialects import make
from stablehlo_py.dialects.stablehlo import Op
from stablehlo_py.mlir import ir
from stablehlo_py.ops.simplify.match import maker, operand, operands, type_of, without_units

# --- ops that give their operand


@simplify("stablehlo.reshape", "stablehlo.slice")
def same_shape(op: Op) -> ir.Value | None:
    """reshape(x) == x and slice(x) == x, where the shape stays."""
    return operand(op) if operand(op).type == op.operation.results[0].type else None


@simplify("stablehlo.transpose", "stablehlo.broadcast_in_dim")
def same_order(op: Op) -> ir.Value | None:
    """transpose(x, [0, 1, ..]) == x, and broadcast(x, dims [0, 1, ..]) == x where nothing repeats."""
    dims = op.ints("permutation") or op.ints("broadcast_dimensions")
    return operand(op) if operand(op).type == op.operation.results[0].type and list(dims) == sorted(dims) else None


@simplify("stablehlo.pad")
def pad_nothing(op: Op) -> ir.Value | None:
    """pad(x, low 0, high 0, interior 0) == x."""
    return operand(op) if not any(op.ints("edge_padding_low") + op.ints("edge_padding_high") + _interior(op)) else None


# --- reshape


@simplify("stablehlo.reshape")
def reshape_of_reshape(op: Op) -> ir.Value | None:
    """reshape(reshape(x)) == reshape(x)."""
    inner = maker(operand(op), "reshape")
    return make.reshape(operand(inner), op.type.shape) if inner else None


@simplify("stablehlo.reshape")
def reshape_of_scalar_broadcast(op: Op) -> ir.Value | None:
    """reshape(broadcast(x)) == broadcast(x) for x of one element."""
    inner = maker(operand(op), "broadcast_in_dim")
    if inner is None or type_of(operand(inner)).size != 1:
        return None
    return make.broadcast(make.reshape(operand(inner), ()), op.type.shape, ())


# --- transpose


@simplify("stablehlo.transpose")
def transpose_of_transpose(op: Op) -> ir.Value | None:
    """transpose(transpose(x, p), q) == transpose(x, p[q])."""
    inner = maker(operand(op), "transpose")
    if inner is None:
        return None
    first = inner.ints("permutation")
    return make.transpose(operand(inner), [first[d] for d in op.ints("permutation")])


@simplify("stablehlo.transpose")
def transpose_of_broadcast(op: Op) -> ir.Value | None:
    """transpose(broadcast(x, dims), p) == broadcast(x, p^-1[dims]), where the order of x's dimensions stays."""
    inner = maker(operand(op), "broadcast_in_dim")
    if inner is None:
        return None
    place = {d: i for i, d in enumerate(op.ints("permutation"))}
    dims = [place[d] for d in inner.ints("broadcast_dimensions")]
    return make.broadcast(operand(inner), op.type.shape, dims) if dims == sorted(dims) else None


@simplify("stablehlo.transpose")
def transpose_of_iota(op: Op) -> ir.Value | None:
    """transpose(iota(d), p) == iota(p^-1[d])."""
    inner = maker(operand(op), "iota")
    if inner is None:
        return None
    return make.iota(op.type, op.ints("permutation").index(inner.integer("iota_dimension")))


@simplify("stablehlo.transpose")
def transpose_units(op: Op) -> ir.Value | None:
    """transpose(x, p) == reshape(x), where only dimensions of size 1 change places."""
    shape = type_of(operand(op)).shape
    moved = [d for d in op.ints("permutation") if shape[d] != 1]
    return make.reshape(operand(op), op.type.shape) if moved == sorted(moved) else None


# --- broadcast


@simplify("stablehlo.broadcast_in_dim")
def broadcast_of_broadcast(op: Op) -> ir.Value | None:
    """broadcast(broadcast(x, d), e) == broadcast(x, e[d])."""
    inner = maker(operand(op), "broadcast_in_dim")
    if inner is None:
        return None
    outer = op.ints("broadcast_dimensions")
    return make.broadcast(operand(inner), op.type.shape, [outer[d] for d in inner.ints("broadcast_dimensions")])


@simplify("stablehlo.broadcast_in_dim")
def broadcast_of_units(op: Op) -> ir.Value | None:
    """broadcast(reshape(x), dims) == broadcast(x, dims without those of size 1), where x has no other dimensions."""
    inner = maker(operand(op), "reshape")
    if inner is None:
        return None
    shape, before = inner.type.shape, type_of(operand(inner)).shape
    if 1 in before or without_units(shape) != list(before):
        return None
    dims = [d for d, n in zip(op.ints("broadcast_dimensions"), shape, strict=True) if n != 1]
    return make.broadcast(operand(inner), op.type.shape, dims)


@simplify("stablehlo.broadcast_in_dim")
def broadcast_that_repeats_nothing(op: Op) -> ir.Value | None:
    """broadcast(x, dims) == reshape(x), where all elements are there once and in order: a name costs no kernel."""
    dims, source = op.ints("broadcast_dimensions"), operand(op)
    if type_of(source).size != op.type.size or list(dims) != sorted(dims):
        return None
    return make.reshape(source, op.type.shape)


@simplify("stablehlo.broadcast_in_dim")
def broadcast_of_iota(op: Op) -> ir.Value | None:
    """broadcast(iota(d), dims) == iota(dims[d]), where dimension d is not repeated."""
    inner = maker(operand(op), "iota")
    if inner is None:
        return None
    source = inner.integer("iota_dimension")
    target = op.ints("broadcast_dimensions")[source]
    return make.iota(op.type, target) if inner.type.shape[source] == op.type.shape[target] else None


# --- slice


@simplify("stablehlo.slice")
def slice_of_slice(op: Op) -> ir.Value | None:
    """slice(slice(x, a, s), b, t) == slice(x, a + b s, s t)."""
    inner = maker(operand(op), "slice")
    if inner is None:
        return None
    starts, limits, strides = [], [], []
    for a, s, b, t, n in zip(
        inner.ints("start_indices"), _strides(inner), *_start_stride(op), op.type.shape, strict=True
    ):
        starts.append(a + b * s)
        strides.append(s * t)
        limits.append(a + b * s + max(0, n - 1) * s * t + (1 if n else 0))
    return make.slice_(operand(inner), starts, limits, strides)


@simplify("stablehlo.slice")
def slice_of_concatenate(op: Op) -> ir.Value | None:
    """slice(concatenate(.., x, ..)) == slice(x), where it lies within x."""
    inner = maker(operand(op), "concatenate")
    if inner is None or op.type.size == 0:
        return None
    dim = inner.integer("dimension")
    starts, limits = list(op.ints("start_indices")), list(op.ints("limit_indices"))
    last = starts[dim] + (op.type.shape[dim] - 1) * _strides(op)[dim]
    at = 0
    for part in operands(inner):
        size = type_of(part).shape[dim]
        if at <= starts[dim] and last < at + size:
            starts[dim], limits[dim] = starts[dim] - at, last - at + 1
            return make.slice_(part, starts, limits, _strides(op))
        at += size
    return None


@simplify("stablehlo.slice")
def slice_of_pad(op: Op) -> ir.Value | None:
    """slice(pad(x)) == slice(x), where it holds no padding."""
    inner = maker(operand(op), "pad")
    if inner is None or op.type.size == 0 or any(_interior(inner)):
        return None
    source = type_of(operand(inner)).shape
    starts = [a - low for a, low in zip(op.ints("start_indices"), inner.ints("edge_padding_low"), strict=True)]
    limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, op.type.shape, _strides(op), strict=True)]
    if any(a < 0 or b > n for a, b, n in zip(starts, limits, source, strict=True)):
        return None
    return make.slice_(operand(inner), starts, limits, _strides(op))


@simplify("stablehlo.slice")
def slice_of_broadcast(op: Op) -> ir.Value | None:
    """slice(broadcast(x)) == broadcast(slice(x)): what repeats is repeated less often."""
    inner = maker(operand(op), "broadcast_in_dim")
    if inner is None:
        return None
    dims = inner.ints("broadcast_dimensions")
    source = type_of(operand(inner)).shape
    starts, limits, strides = [0] * len(source), list(source), [1] * len(source)
    for i, d in enumerate(dims):
        if source[i] == inner.type.shape[d]:
            starts[i], strides[i] = op.ints("start_indices")[d], _strides(op)[d]
            limits[i] = op.ints("limit_indices")[d]
        elif op.type.shape[d] == 0:
            return None
    return make.broadcast(make.slice_(operand(inner), starts, limits, strides), op.type.shape, dims)


@simplify("stablehlo.slice")
def slice_of_iota(op: Op) -> ir.Value | None:
    """slice(iota(d)) == iota(d), where dimension d is taken from its start."""
    inner = maker(operand(op), "iota")
    if inner is None:
        return None
    dim = inner.integer("iota_dimension")
    whole = op.ints("start_indices")[dim] == 0 and _strides(op)[dim] == 1
    return make.iota(op.type, dim) if whole else None


# --- pad, concatenate, reverse


@simplify("stablehlo.pad")
def pad_less_than_nothing(op: Op) -> ir.Value | None:
    """pad(x, low -a, high -b) == slice(x, a, n - b)."""
    low, high = op.ints("edge_padding_low"), op.ints("edge_padding_high")
    if any(_interior(op)) or any(n > 0 for n in low + high):
        return None
    shape = type_of(operand(op)).shape
    limits = [n + b for n, b in zip(shape, high, strict=True)]
    return make.slice_(operand(op), [-a for a in low], limits, [1] * len(shape))


@simplify("stablehlo.pad")
def pad_of_pad(op: Op) -> ir.Value | None:
    """pad(pad(x, v, a), v, b) == pad(x, v, a + b), where nothing is taken away and nothing is put between."""
    inner = maker(operand(op), "pad")
    if inner is None or operand(inner, 1) != operand(op, 1) or any(_interior(inner) + _interior(op)):
        return None
    edges = [(of.ints("edge_padding_low"), of.ints("edge_padding_high")) for of in (inner, op)]
    if any(n < 0 for low, high in edges for n in low + high):
        return None
    low, high = ([a + b for a, b in zip(edges[0][i], edges[1][i], strict=True)] for i in (0, 1))
    return make.pad(operand(inner), operand(op, 1), low, high, _interior(op))


@simplify("stablehlo.concatenate")
def concatenate_of_concatenate(op: Op) -> ir.Value | None:
    """concatenate(a, concatenate(b, c), d) == concatenate(a, b, c, d), along one dimension; parts without elements go."""
    dim = op.integer("dimension")
    parts: list[ir.Value] = []
    for part in operands(op):
        inner = maker(part, "concatenate")
        if inner is not None and inner.integer("dimension") == dim and len(operands(inner)) + len(parts) < 64:
            parts.extend(operands(inner))
        elif type_of(part).shape[dim] != 0:
            parts.append(part)
    if not parts or parts == operands(op):
        return operand(op) if len(operands(op)) == 1 else None
    return make.concatenate(parts, dim)


@simplify("stablehlo.concatenate")
def concatenate_of_slices(op: Op) -> ir.Value | None:
    """concatenate(slice(x, a, b), slice(x, b, c)) == slice(x, a, c)."""
    dim = op.integer("dimension")
    parts = operands(op)
    joined = [parts[0]]
    for part in parts[1:]:
        both = _joined_slices(joined[-1], part, dim)
        joined[-1:] = [both] if both is not None else [joined[-1], part]
    return make.concatenate(joined, dim) if len(joined) < len(parts) else None


def _joined_slices(first: ir.Value, second: ir.Value, dim: int) -> ir.Value | None:
    one, two = maker(first, "slice"), maker(second, "slice")
    if not (one and two) or operand(one) != operand(two) or any(s != 1 for s in (*_strides(one), *_strides(two))):
        return None
    starts, limits = list(one.ints("start_indices")), list(one.ints("limit_indices"))
    other_starts, other_limits = list(two.ints("start_indices")), list(two.ints("limit_indices"))
    if other_starts[dim] != limits[dim]:
        return None
    limits[dim] = other_limits[dim]
    other_starts[dim] = starts[dim]
    if (starts, limits) != (other_starts, other_limits):
        return None
    return make.slice_(operand(one), starts, limits, _strides(one))


@simplify("stablehlo.reverse")
def reverse_units(op: Op) -> ir.Value | None:
    """reverse(x, d) == x, where dimension d has size 1."""
    dims = op.ints("dimensions")
    wanted = [d for d in dims if op.type.shape[d] > 1]
    return make.reverse(operand(op), wanted) if len(wanted) < len(dims) else None


@simplify("stablehlo.reverse")
def reverse_of_reverse(op: Op) -> ir.Value | None:
    """reverse(reverse(x, d), e) == reverse(x, d xor e)."""
    inner = maker(operand(op), "reverse")
    if inner is None:
        return None
    return make.reverse(operand(inner), sorted(set(op.ints("dimensions")) ^ set(inner.ints("dimensions"))))


@simplify("stablehlo.reverse")
def reverse_of_broadcast(op: Op) -> ir.Value | None:
    """reverse(broadcast(x), d) == broadcast(x), where dimension d repeats."""
    inner = maker(operand(op), "broadcast_in_dim")
    if inner is None:
        return None
    source = type_of(operand(inner)).shape
    kept = {d for d, n in zip(inner.ints("broadcast_dimensions"), source, strict=True) if n != 1}
    return operand(op) if not kept & set(op.ints("dimensions")) else None


def _interior(op: Op) -> tuple[int, ...]:
    return op.ints("interior_padding")


def _strides(op: Op) -> tuple[int, ...]:
    return op.ints("strides")


def _start_stride(op: Op) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return op.ints("start_indices"), _strides(op)
