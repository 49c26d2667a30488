"""Random ops that move elements: shapes, slices, padding, and reads and writes at computed places."""

from __future__ import annotations

import math

from stablehlo_py.testing.graph import MOST_ELEMENTS, SIZES, Graph, Value, array


def broadcast(g: Graph) -> Value | None:
    x = g.pick(limit=600)
    rank = g.random.randint(len(x.shape), 6)
    dims = g.random.sample(range(rank), len(x.shape))
    if g.chance(0.8):
        dims.sort()
    shape = [g.random.choice(SIZES[:7]) for _ in range(rank)]
    for d, size in zip(dims, x.shape, strict=True):
        shape[d] = shape[d] if size == 1 and g.chance(0.7) else size
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    return g.emit("stablehlo.broadcast_in_dim", [x], (shape, x.element), f"broadcast_dimensions = {array(dims)}")


def reshape(g: Graph) -> Value:
    x = g.pick()
    rest, shape = x.size, []
    while rest > 1 and len(shape) < 5:
        size = g.random.choice([d for d in range(2, rest + 1) if rest % d == 0])
        shape.append(size)
        rest //= size
    if rest != 1:
        shape.append(rest)
    while len(shape) < 6 and g.chance(0.3):
        shape.insert(g.random.randint(0, len(shape)), 1)
    return g.emit("stablehlo.reshape", [x], (shape, x.element))


def transpose(g: Graph) -> Value:
    x = g.pick()
    order = g.random.sample(range(len(x.shape)), len(x.shape))
    shape = [x.shape[d] for d in order]
    return g.emit("stablehlo.transpose", [x], (shape, x.element), f"permutation = {array(order)}")


def reverse(g: Graph) -> Value:
    x = g.pick()
    dims = [d for d in range(len(x.shape)) if g.chance(0.5)]
    return g.emit("stablehlo.reverse", [x], (x.shape, x.element), f"dimensions = {array(dims)}")


def slice_(g: Graph) -> Value:
    x = g.pick()
    starts = [g.random.randint(0, s) for s in x.shape]
    limits = [g.random.randint(lo, s) for lo, s in zip(starts, x.shape, strict=True)]
    if g.chance(0.8):
        starts = [min(s, max(0, size - 1)) for s, size in zip(starts, x.shape, strict=True)]
        limits = [max(e, min(s + 1, size)) for s, e, size in zip(starts, limits, x.shape, strict=True)]
    strides = [g.random.choice((1, 1, 2, 3)) for _ in x.shape]
    shape = [-(-(e - s) // k) for s, e, k in zip(starts, limits, strides, strict=True)]
    text = f"start_indices = {array(starts)}, limit_indices = {array(limits)}, strides = {array(strides)}"
    return g.emit("stablehlo.slice", [x], (shape, x.element), text)


def concatenate(g: Graph) -> Value | None:
    x = g.pick(rank=1, limit=1000)
    d = g.random.randrange(len(x.shape))
    parts = [x]
    for _ in range(g.random.randint(0, 3)):
        if g.chance(0.5):
            parts.append(g.like(x.shape, x.element))
        else:
            parts.append(g.like([*x.shape[:d], g.random.choice(SIZES[:6]), *x.shape[d + 1 :]], x.element))
    shape = [*x.shape[:d], sum(p.shape[d] for p in parts), *x.shape[d + 1 :]]
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    return g.emit("stablehlo.concatenate", parts, (shape, x.element), f"dimension = {d} : i64")


def pad(g: Graph) -> Value | None:
    x = g.pick(limit=600)
    low, high = ([g.random.choice((0, 0, 1, 2, -1, -2)) for _ in x.shape] for _ in range(2))
    inner = [g.random.choice((0, 0, 1, 2)) for _ in x.shape]
    shape = [s + lo + hi + max(0, s - 1) * i for s, lo, hi, i in zip(x.shape, low, high, inner, strict=True)]
    if any(s < 0 for s in shape) or math.prod(shape) > MOST_ELEMENTS:
        return None
    text = f"edge_padding_low = {array(low)}, edge_padding_high = {array(high)}, interior_padding = {array(inner)}"
    return g.emit("stablehlo.pad", [x, g.like((), x.element)], (shape, x.element), text)


def iota(g: Graph) -> Value:
    x = g.pick(lambda e: not e.is_bool, rank=1)
    return g.emit(
        "stablehlo.iota", [], (x.shape, x.element), f"iota_dimension = {g.random.randrange(len(x.shape))} : i64"
    )


def barrier(g: Graph) -> Value:
    x, y = g.pick(), g.pick()
    made = g.emit_several("stablehlo.optimization_barrier", [x, y], [(x.shape, x.element), (y.shape, y.element)])
    return g.random.choice(made)


INDEX_TYPES = ("i32", "i32", "i64", "ui8", "i8", "ui32", "i16", "ui64", "ui16")


def _starts(g: Graph, rank: int) -> list[Value]:
    element = g.random.choice(INDEX_TYPES)
    return [g.argument((), element, "index") if g.chance(0.6) else g.like((), element) for _ in range(rank)]


def dynamic_slice(g: Graph) -> Value:
    x = g.pick()
    shape = [g.random.randint(min(1, s), s) for s in x.shape]
    starts = _starts(g, len(shape))
    return g.emit("stablehlo.dynamic_slice", [x, *starts], (shape, x.element), f"slice_sizes = {array(shape)}")


def dynamic_update_slice(g: Graph) -> Value:
    x = g.pick()
    shape = [g.random.randint(min(1, s), s) for s in x.shape]
    update = g.like(shape, x.element)
    return g.emit("stablehlo.dynamic_update_slice", [x, update, *_starts(g, len(shape))], (x.shape, x.element))


def gather(g: Graph) -> Value | None:
    """Random dimension numbers: collapsed, batching and offset dimensions, index_vector_dim anywhere."""
    x = g.pick(rank=1, limit=600)
    rank = len(x.shape)
    batch_shape = list(g.shape(most=2, limit=30))
    spare = list(range(rank))
    g.random.shuffle(spare)
    batching = [d for d in spare[:1] if batch_shape and x.shape[d] in batch_shape and g.chance(0.5)]
    spare = [d for d in range(rank) if d not in batching]
    indexed = g.random.sample(spare, g.random.randint(1, len(spare))) if spare else []
    if not indexed or any(x.shape[d] == 0 for d in indexed):
        return None
    collapsed = sorted(d for d in indexed if g.chance(0.6))
    sizes = [g.random.randint(min(1, s), s) for s in x.shape]
    for d in [*collapsed, *batching]:
        sizes[d] = 1
    if any(sizes[d] > x.shape[d] for d in range(rank)):
        return None
    vector_dim = g.random.randint(0, len(batch_shape))
    indices_shape = [*batch_shape]
    if len(indexed) == 1 and g.chance(0.3):
        vector_dim = len(indices_shape)
    else:
        indices_shape.insert(vector_dim, len(indexed))
    indices_batching = []
    for d in batching:
        at = batch_shape.index(x.shape[d])
        indices_batching.append(at + (at >= vector_dim))
    window = [sizes[d] for d in range(rank) if d not in collapsed and d not in batching]
    offset = sorted(g.random.sample(range(len(window) + len(batch_shape)), len(window)))
    rest, inside = iter(batch_shape), iter(window)
    shape = [next(inside) if i in offset else next(rest) for i in range(len(window) + len(batch_shape))]
    if math.prod(shape) > MOST_ELEMENTS or len(shape) > 6:
        return None
    indices = g.argument(indices_shape, g.random.choice(INDEX_TYPES), "index")
    numbers = (
        f"offset_dims = {offset}, collapsed_slice_dims = {collapsed}, operand_batching_dims = {batching}, "
        f"start_indices_batching_dims = {indices_batching}, start_index_map = {indexed}, index_vector_dim = {vector_dim}"
    )
    text = f"dimension_numbers = #stablehlo.gather<{numbers}>, slice_sizes = {array(sizes)}, indices_are_sorted = false"
    return g.emit("stablehlo.gather", [x, indices], (shape, x.element), text)


def scatter(g: Graph) -> Value | None:
    """As gather; the body is one op, or takes the update."""
    x = g.pick(rank=1, limit=600)
    rank = len(x.shape)
    batch_shape = list(g.shape(most=2, limit=30))
    batching = [d for d in g.random.sample(range(rank), 1) if x.shape[d] in batch_shape and g.chance(0.4)]
    spare = [d for d in range(rank) if d not in batching]
    if not spare:
        return None
    indexed = g.random.sample(spare, g.random.randint(1, len(spare)))
    inserted = sorted(d for d in indexed if g.chance(0.6))
    sizes = {d: g.random.randint(min(1, x.shape[d]), x.shape[d]) for d in spare if d not in inserted}
    if g.chance(0.7):
        sizes = {d: x.shape[d] if d not in indexed else s for d, s in sizes.items()}
    vector_dim = g.random.randint(0, len(batch_shape))
    indices_shape = [*batch_shape]
    if len(indexed) == 1 and g.chance(0.3):
        vector_dim = len(indices_shape)
    else:
        indices_shape.insert(vector_dim, len(indexed))
    indices_batching = []
    for d in batching:
        at = batch_shape.index(x.shape[d])
        indices_batching.append(at + (at >= vector_dim))
    window = list(sizes.values())
    places = sorted(g.random.sample(range(len(window) + len(batch_shape)), len(window)))
    rest, inside = iter(batch_shape), iter(window)
    shape = [next(inside) if i in places else next(rest) for i in range(len(window) + len(batch_shape))]
    if math.prod(shape) > 600 or len(shape) > 6:
        return None
    indices = g.argument(indices_shape, g.random.choice(INDEX_TYPES), "index")
    numbers = (
        f"update_window_dims = {places}, inserted_window_dims = {inserted}, input_batching_dims = {batching}, "
        f"scatter_indices_batching_dims = {indices_batching}, scatter_dims_to_operand_dims = {indexed}, "
        f"index_vector_dim = {vector_dim}"
    )
    style = "any" if not x.info.is_float and not x.info.is_complex else "mild"
    updates = g.argument(shape, x.element, style)
    names = ["maximum", "minimum"] if x.info.is_bool or x.info.is_complex else ["add", "multiply", "maximum", "minimum"]
    region = g.body(f"stablehlo.{g.random.choice(names)}", x.element)
    if g.chance(0.4):
        a, b, ty = g.name(), g.name(), f"tensor<{x.element}>"
        region = f'{{ ^bb0({a}: {ty}, {b}: {ty}): "stablehlo.return"({b}) : ({ty}) -> () }}'
    text = (
        f"scatter_dimension_numbers = #stablehlo.scatter<{numbers}>, indices_are_sorted = false, unique_indices = false"
    )
    return g.emit("stablehlo.scatter", [x, indices, updates], (x.shape, x.element), text, [region])


OPS = (
    *((broadcast, 6), (reshape, 6), (transpose, 6), (reverse, 2), (slice_, 5), (concatenate, 4), (pad, 4), (iota, 2)),
    *((barrier, 1), (dynamic_slice, 2), (dynamic_update_slice, 2), (gather, 4), (scatter, 4)),
)
