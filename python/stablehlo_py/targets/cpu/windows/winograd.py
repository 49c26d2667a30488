"""Convolutions by windows of three, stride 1, with fewer products: Winograd's minimal filtering F(2, 3).

Two neighbouring results of a window of three read four elements d and would take six products; these are four:

    m0 = (d0 - d2) g0                   y0 = m0 + m1 + m2
    m1 = (d1 + d2) (g0 + g1 + g2) / 2   y1 = m1 - m2 - m3
    m2 = (d2 - d1) (g0 - g1 + g2) / 2
    m3 = (d1 - d3) g2

Along two axes at once 16 products stand for 36, and since the transforms are linear, the sums over the input features are
matrix products of what is transformed. S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray,
Fast Algorithms for Convolutional Neural Networks (2016). The weights are transformed without the halves, and the result is
scaled once for all: so integers stay integers, and a subnormal weight loses nothing.

A result is finite only if all that it read and every step was: y reads a sum of each of the products that its elements are
in. So where a part of the result is not finite throughout, that part is computed again as plain sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir

TAPS, RESULTS, READ = 3, 2, 4  # of one filter: weights, results, elements of the image
Place = tuple[int, ...]


def of_image(values: dict[Place, ir.Value], axes: Sequence[int]) -> dict[Place, ir.Value]:
    """Elements by their places in a tile's part of the image, as what is multiplied."""

    def line(d: list[ir.Value]) -> list[ir.Value]:
        return [_minus(d[0], d[2]), _plus(d[1], d[2]), _minus(d[2], d[1]), _minus(d[1], d[3])]

    return _along(values, axes, line)


def of_kernel(values: dict[Place, ir.Value], axes: Sequence[int]) -> dict[Place, ir.Value]:
    """Weights by their taps as what is multiplied, twice as large for each axis."""

    def line(g: list[ir.Value]) -> list[ir.Value]:
        outer = _plus(g[0], g[2])
        return [_plus(g[0], g[0]), _plus(outer, g[1]), _minus(outer, g[1]), _plus(g[2], g[2])]

    return _along(values, axes, line)


def of_products(values: dict[Place, ir.Value], axes: Sequence[int]) -> dict[Place, ir.Value]:
    """Sums of products as results by their places in a tile."""

    def line(m: list[ir.Value]) -> list[ir.Value]:
        return [_plus(_plus(m[0], m[1]), m[2]), _minus(_minus(m[1], m[2]), m[3])]

    return _along(values, axes, line)


def _along(
    values: dict[Place, ir.Value], axes: Sequence[int], line: Callable[[list[ir.Value]], list[ir.Value]]
) -> dict[Place, ir.Value]:
    """The same transform of every line along each of the axes."""
    for axis in axes:
        done: dict[Place, ir.Value] = {}
        for place in [place for place in values if place[axis] == 0]:
            along = [_at(place, axis, n) for n in range(READ)]
            for n, value in enumerate(line([values[at] for at in along if at in values])):
                done[_at(place, axis, n)] = value
        values = done
    return values


def _at(place: Place, axis: int, number: int) -> Place:
    return (*place[:axis], number, *place[axis + 1 :])


def _plus(a: ir.Value, b: ir.Value) -> ir.Value:
    return (arith.addf if _is_float(a) else arith.addi)(a, b)


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return (arith.subf if _is_float(a) else arith.subi)(a, b)


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.VectorType(value.type).element_type, ir.FloatType)
