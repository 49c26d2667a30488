"""Convolutions by windows of three, stride 1, with fewer products: Winograd's minimal filtering, F(2, 3) and F(4, 3).

Two neighbouring results of a window of three read four elements d and would take six products; these are four:

    m0 = (d0 - d2) g0                   y0 = m0 + m1 + m2
    m1 = (d1 + d2) (g0 + g1 + g2) / 2   y1 = m1 - m2 - m3
    m2 = (d2 - d1) (g0 - g1 + g2) / 2
    m3 = (d1 - d3) g2

Along two axes at once 16 products stand for 36, and since the transforms are linear, the sums over the input features are
matrix products of what is transformed. S. Winograd, Arithmetic Complexity of Computations (1980); A. Lavin and S. Gray,
Fast Algorithms for Convolutional Neural Networks (2016). The weights are transformed without the halves, and the result is
scaled once for all: so integers stay integers, and a subnormal weight loses nothing.

F(4, 3) makes four results of six elements by six products instead of twelve. It multiplies polynomials by their values at
0, 1, -1, 2, -1/2 and infinity, and its results are `scale` = 30 times too large. Integers only: floats would lose digits.

Of sums modulo 2**32, `scale` times the result is exact modulo 2**32 too. Its odd part has an inverse there, so all that is
lost of the 32 bits is its power of two, one bit for each axis. That power is small because modulo 2 there are three points,
0, 1 and infinity, and these six take each of them twice: of p/q and p'/q' the filter divides by p q' - p' q.

A result is finite only if all that it read and every step was: y reads a sum of each of the products that its elements are
in. So where a part of the result is not finite throughout, that part is computed again as plain sums.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stablehlo_py.mlir import arith, ir
from stablehlo_py.records import record
from stablehlo_py.targets.cpu.emit.nest import constant_vector

Place = tuple[int, ...]
Line = Callable[[list[ir.Value]], list[ir.Value]]


@record
class Filter:
    """What stands for the products of a window along one axis.

    results, taps, read: places of the result that a tile makes, weights, elements of the image that it reads. image, kernel,
    sums: the transforms of a line of elements, of weights, and of sums of products. image_growth, kernel_growth: how many
    times larger than the largest element or weight a transformed one may be; image_sum: the same of elements that are all
    alike; scale: how many times too large results are.
    """

    results: int
    taps: int
    image: Line
    kernel: Line
    sums: Line
    image_growth: int
    image_sum: int
    kernel_growth: int
    scale: int

    @property
    def read(self) -> int:
        return self.results + self.taps - 1


# --- F(2, 3) -------------------------------------------------------------------------------------------------------------


def _image_of_two(d: list[ir.Value]) -> list[ir.Value]:
    return [_minus(d[0], d[2]), _plus(d[1], d[2]), _minus(d[2], d[1]), _minus(d[1], d[3])]


def _kernel_of_two(g: list[ir.Value]) -> list[ir.Value]:
    outer = _plus(g[0], g[2])
    return [_twice(g[0]), _plus(outer, g[1]), _minus(outer, g[1]), _twice(g[2])]


def _sums_of_two(m: list[ir.Value]) -> list[ir.Value]:
    return [_plus(_plus(m[0], m[1]), m[2]), _minus(_minus(m[1], m[2]), m[3])]


# --- F(4, 3) -------------------------------------------------------------------------------------------------------------


def _image_of_four(d: list[ir.Value]) -> list[ir.Value]:
    """The rows 2 3 -4 -3 2 0, 0 2 5 1 -2 0, 0 2 1 -5 2 0, 0 -1 -2 1 2 0, 0 -2 1 2 -1 0 and 0 2 3 -4 -3 2."""
    odd, even = _minus(d[3], d[1]), _minus(d[4], d[2])
    odd2, even2 = _twice(odd), _twice(even)
    first = _minus(_twice(_plus(_minus(d[0], d[2]), even)), _plus(odd2, odd))
    last = _minus(_twice(_minus(_minus(d[5], d[3]), odd)), _plus(even2, even))
    early, late = (_minus(_plus(_twice(x), x), less) for x, less in ((d[2], odd2), (d[3], even2)))
    return [first, _plus(early, late), _minus(early, late), _plus(odd, even2), _minus(odd2, even), last]


def _kernel_of_four(g: list[ir.Value]) -> list[ir.Value]:
    """The rows 15 0 0, 5 5 5, 5 -5 5, 1 2 4, 4 -2 1 and 0 0 15."""
    outer, twice = _plus(g[0], g[2]), _twice(g[1])
    ones = [_times(5, _plus(outer, g[1])), _times(5, _minus(outer, g[1]))]
    others = [_plus(_plus(g[0], twice), _times(4, g[2])), _plus(_minus(_times(4, g[0]), twice), g[2])]
    return [_times(15, g[0]), *ones, *others, _times(15, g[2])]


def _sums_of_four(m: list[ir.Value]) -> list[ir.Value]:
    """The rows 1 1 1 1 8 0, 0 1 -1 2 -4 0, 0 1 1 4 2 0 and 0 1 -1 8 -1 1."""
    plus, minus = _plus(m[1], m[2]), _minus(m[1], m[2])
    a2, b2 = _twice(m[3]), _twice(m[4])
    return [
        _plus(_plus(plus, m[0]), _plus(m[3], _times(4, b2))),
        _plus(minus, _minus(a2, _twice(b2))),
        _plus(plus, _plus(_twice(a2), b2)),
        _plus(_plus(minus, m[5]), _minus(_times(4, a2), m[4])),
    ]


def same(line: list[ir.Value]) -> list[ir.Value]:
    return line


NONE = Filter(1, 1, same, same, same, image_growth=1, image_sum=1, kernel_growth=1, scale=1)
TWO = Filter(2, 3, _image_of_two, _kernel_of_two, _sums_of_two, image_growth=2, image_sum=2, kernel_growth=3, scale=2)
FOUR = Filter(
    4, 3, _image_of_four, _kernel_of_four, _sums_of_four, image_growth=14, image_sum=6, kernel_growth=15, scale=30
)


# --- several axes --------------------------------------------------------------------------------------------------------


def along(values: dict[Place, ir.Value], axes: Sequence[int], lines: Sequence[Line]) -> dict[Place, ir.Value]:
    """A transform of every line of what is given by its places, along each of the axes."""
    for axis in axes:
        size = 1 + max(place[axis] for place in values)
        done: dict[Place, ir.Value] = {}
        for place in [place for place in values if place[axis] == 0]:
            made = lines[axis]([values[_at(place, axis, n)] for n in range(size)])
            done.update({_at(place, axis, n): value for n, value in enumerate(made)})
        values = done
    return values


def _at(place: Place, axis: int, number: int) -> Place:
    return (*place[:axis], number, *place[axis + 1 :])


def _plus(a: ir.Value, b: ir.Value) -> ir.Value:
    return (arith.addf if _is_float(a) else arith.addi)(a, b)


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return (arith.subf if _is_float(a) else arith.subi)(a, b)


def _twice(a: ir.Value) -> ir.Value:
    return _plus(a, a)


def _times(factor: int, a: ir.Value) -> ir.Value:
    """Of integers; LLVM makes shifts of powers of two."""
    return arith.muli(a, constant_vector(ir.VectorType(a.type), factor))


def _is_float(value: ir.Value) -> bool:
    return isinstance(ir.VectorType(value.type).element_type, ir.FloatType)
