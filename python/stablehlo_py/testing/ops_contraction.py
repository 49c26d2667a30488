"""Random contractions: dot_general, convolution, cholesky, triangular_solve, fft."""

from __future__ import annotations

import math

from stablehlo_py.core.types import ElementType
from stablehlo_py.testing.graph import SIZES, Graph, Value, array, matrix
from stablehlo_py.testing.ops_reduction import calm, windows_of

WIDER = {"bf16": "f32", "f16": "f32", "f32": "f64", "i8": "i32", "ui8": "i32", "f8E4M3FN": "f32", "f8E5M2": "bf16"}


def is_number(e: ElementType) -> bool:
    return not e.is_bool


def _result(g: Graph, element: str) -> str:
    return WIDER[element] if element in WIDER and g.chance(0.4) else element


def dot_general(g: Graph) -> Value | None:
    x = calm(g, g.pick(is_number, limit=400))
    rank = len(x.shape)
    dims = g.random.sample(range(rank), rank)
    batch = dims[: g.random.choice((0, 0, 1, 2))]
    contracted = [d for d in dims if d not in batch][: g.random.choice((0, 1, 1, 1, 2))]
    free = [g.random.choice(SIZES) for _ in range(g.random.choice((0, 1, 1, 2)))]
    roles = [("b", d) for d in batch] + [("c", d) for d in contracted] + [("f", s) for s in free]
    g.random.shuffle(roles)
    shape = [s if kind == "f" else x.shape[s] for kind, s in roles]
    left_free = [s for d, s in enumerate(x.shape) if d not in batch and d not in contracted]
    result = [x.shape[d] for d in batch] + left_free + [s for kind, s in roles if kind == "f"]
    if math.prod(shape) > 1000 or math.prod(result) > 2000 or len(result) > 6 or len(shape) > 6:
        return None
    y = calm(g, g.like(shape, x.element))
    at = {role: i for i, role in enumerate(roles)}
    numbers = (
        f"lhs_batching_dimensions = {batch}, rhs_batching_dimensions = {[at['b', d] for d in batch]}, "
        f"lhs_contracting_dimensions = {contracted}, rhs_contracting_dimensions = {[at['c', d] for d in contracted]}"
    )
    text = f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    return g.emit("stablehlo.dot_general", [x, y], (result, _result(g, x.element)), text)


def convolution(g: Graph) -> Value | None:
    """Dimensions in any order, strides, dilations, padding, groups, reversal."""
    spatial = g.random.choice((0, 1, 1, 2, 2, 3))
    groups = g.random.choice((1, 1, 1, 2, 3))
    batch_groups = g.random.choice((1, 1, 2)) if groups == 1 else 1
    inside, outside = g.random.choice((1, 2, 3)), g.random.choice((1, 2, 4))
    batch = g.random.choice((1, 2, 3)) * batch_groups
    outside *= groups * batch_groups
    space = tuple(g.random.choice((1, 2, 3, 5, 7)) for _ in range(spatial))
    kernel = [g.random.choice((1, 2, 3)) for _ in range(spatial)]
    strides, left, right = ([g.random.choice((1, 1, 2)) for _ in range(spatial)] for _ in range(3))
    padding = [(g.random.choice((0, 0, 1, 2, -1)), g.random.choice((0, 1, 2))) for _ in range(spatial)]
    result = windows_of(space, kernel, strides, left, right, padding)
    if result is None or 0 in result:
        return None
    names = [str(i) for i in range(spatial)]
    layouts = [g.random.sample([*extra, *names], spatial + 2) for extra in (("b", "f"), ("i", "o"), ("b", "f"))]
    sizes = (
        {"b": batch, "f": inside * groups, **dict(zip(names, space, strict=True))},
        {"i": inside, "o": outside, **dict(zip(names, kernel, strict=True))},
        {"b": batch // batch_groups, "f": outside, **dict(zip(names, result, strict=True))},
    )
    shapes = [[size[c] for c in layout] for layout, size in zip(layouts, sizes, strict=True)]
    element = g.random.choice(
        ("f32", "f32", "f64", "bf16", "f16", "i32", "i8", "ui8", "complex<f32>", "f8E4M3FN", "i64")
    )
    x, y = calm(g, g.like(shapes[0], element)), calm(g, g.like(shapes[1], element))
    reversal = [g.chance(0.3) for _ in range(spatial)]
    layout = " -> ".join([f"[{', '.join(layouts[0])}]x[{', '.join(layouts[1])}]", f"[{', '.join(layouts[2])}]"])
    text = f"dimension_numbers = #stablehlo.conv<{layout.replace(' -> ', '->')}>"
    text += f", batch_group_count = {batch_groups} : i64, feature_group_count = {groups} : i64"
    if spatial:
        text += f", window_strides = {array(strides)}, lhs_dilation = {array(left)}, rhs_dilation = {array(right)}"
        text += f", padding = {matrix(padding)}, window_reversal = {array(reversal)}"
    return g.emit("stablehlo.convolution", [x, y], (shapes[2], _result(g, element)), text)


def _square(g: Graph, element: str) -> tuple[Value, int]:
    """A well-conditioned symmetric matrix: a product with its transpose, plus the identity times n."""
    n = g.random.choice((1, 2, 3, 5))
    batch = g.shape(most=2, limit=8)
    rank = len(batch)
    x = g.argument((*batch, n, n), element, "mild")
    dims = list(range(rank))
    numbers = (
        f"lhs_batching_dimensions = {dims}, rhs_batching_dimensions = {dims}, "
        f"lhs_contracting_dimensions = [{rank + 1}], rhs_contracting_dimensions = [{rank + 1}]"
    )
    product = g.emit(
        "stablehlo.dot_general", [x, x], (x.shape, element), f"dot_dimension_numbers = #stablehlo.dot<{numbers}>"
    )
    rows, columns = (
        g.emit("stablehlo.iota", [], (x.shape, "i32"), f"iota_dimension = {rank + k} : i64") for k in (0, 1)
    )
    same = g.emit(
        "stablehlo.compare",
        [rows, columns],
        (x.shape, "i1"),
        "comparison_direction = #stablehlo<comparison_direction EQ>",
    )
    diagonal = g.emit("stablehlo.convert", [same], (x.shape, element))
    scaled = g.emit("stablehlo.multiply", [diagonal, g.constant(x.shape, element, str(4 * n))], (x.shape, element))
    return g.emit("stablehlo.add", [product, scaled], (x.shape, element)), n


def cholesky(g: Graph) -> Value:
    """Only its own triangle is specified: the other one is set to zero."""
    x, _ = _square(g, g.random.choice(("f32", "f64")))
    lower = g.chance(0.5)
    made = g.emit("stablehlo.cholesky", [x], (x.shape, x.element), f"lower = {str(lower).lower()}")
    rank = len(x.shape)
    rows, columns = (
        g.emit("stablehlo.iota", [], (x.shape, "i32"), f"iota_dimension = {rank - k} : i64") for k in (2, 1)
    )
    direction = f"comparison_direction = #stablehlo<comparison_direction {'GE' if lower else 'LE'}>"
    mine = g.emit("stablehlo.compare", [rows, columns], (x.shape, "i1"), direction)
    return g.emit("stablehlo.select", [mine, made, g.constant(x.shape, x.element, "0")], (x.shape, x.element))


def triangular_solve(g: Graph) -> Value:
    element = g.random.choice(("f32", "f64"))
    a, n = _square(g, element)
    left, k = g.chance(0.5), g.random.choice((1, 2, 4))
    b = g.argument((*a.shape[:-2], *((n, k) if left else (k, n))), element, "mild")
    flags = ", ".join(
        f"{name} = {str(value).lower()}"
        for name, value in (("left_side", left), ("lower", g.chance(0.5)), ("unit_diagonal", False))
    )
    transpose = g.random.choice(("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    text = f"{flags}, transpose_a = #stablehlo<transpose {transpose}>"
    return g.emit("stablehlo.triangular_solve", [a, b], (b.shape, element), text)


def fft(g: Graph) -> Value:
    kind = g.random.choice(("FFT", "IFFT", "RFFT", "IRFFT"))
    wide = g.chance(0.4)
    real, pair = ("f64", "complex<f64>") if wide else ("f32", "complex<f32>")
    lengths = [g.random.choice((1, 2, 3, 4, 5, 7, 8, 13, 16)) for _ in range(g.random.choice((1, 1, 2, 3)))]
    while math.prod(lengths) > 300:
        lengths.pop()
    batch = g.shape(most=2, limit=4)
    half = [*batch, *lengths[:-1], lengths[-1] // 2 + 1]
    full = [*batch, *lengths]
    x = g.argument(half if kind == "IRFFT" else full, real if kind == "RFFT" else pair, "mild")
    result = (half if kind == "RFFT" else full, real if kind == "IRFFT" else pair)
    return g.emit(
        "stablehlo.fft", [x], result, f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {array(lengths)}"
    )


OPS = (*((dot_general, 8), (convolution, 4), (cholesky, 1), (triangular_solve, 1), (fft, 1)),)
