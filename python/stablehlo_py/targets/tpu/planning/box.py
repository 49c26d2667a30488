"""Boxes: which element of a source each element of a target is, for ops that only move elements.

    target[target_first + sum of target_step * i] = source[source_first + sum of source_step * i]   for all i < sizes

A reshape, transpose, slice, reverse or broadcast of a box is a box again, or none (`None`) where the numbers do not fit
together. All of it is arithmetic on shapes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stablehlo_py.core.types import ElementType
from stablehlo_py.records import record, replace
from stablehlo_py.targets.tpu.planning.layout import natural_layout


@record
class Factor:
    """A range of `size` steps: along a dimension of the source (a step of 0 repeats) and along one of the target."""

    size: int
    source: int
    source_step: int
    target: int
    target_step: int


@record
class Box:
    """factors: in the order of the target's dimensions, within a dimension the longest step first; none of size 1."""

    factors: tuple[Factor, ...]
    source_first: tuple[int, ...]
    target_first: tuple[int, ...]
    shape: tuple[int, ...]  # of the target

    def along(self, dim: int) -> list[Factor]:
        """The factors of a dimension of the target."""
        return [f for f in self.factors if f.target == dim]


def whole(shape: Sequence[int]) -> Box:
    """The source itself."""
    factors = tuple(Factor(size, d, 1, d, 1) for d, size in enumerate(shape) if size != 1)
    return Box(factors, (0,) * len(shape), (0,) * len(shape), tuple(shape))


def reshaped(box: Box, shape: Sequence[int]) -> Box | None:
    """A factor that stands across two new dimensions is cut in two."""
    left = list(box.factors)
    found: list[Factor] = []
    for dim in reversed(range(len(shape))):
        inside = 1
        while inside < shape[dim]:
            factor = left.pop()
            need = shape[dim] // inside
            if factor.size > need:
                if shape[dim] % inside or factor.size % need:
                    return None
                outer = replace(factor, size=factor.size // need, source_step=factor.source_step * need)
                left.append(outer)
                factor = replace(factor, size=need)
            found.append(replace(factor, target=dim, target_step=inside))
            inside *= factor.size
        if inside != shape[dim]:
            return None
    return Box(tuple(reversed(found)), box.source_first, (0,) * len(shape), tuple(shape))


def transposed(box: Box, permutation: Sequence[int]) -> Box:
    """Target dimension d is dimension permutation[d] of before."""
    factors = [replace(f, target=d) for d, old in enumerate(permutation) for f in box.along(old)]
    return Box(tuple(factors), box.source_first, (0,) * len(permutation), tuple(box.shape[d] for d in permutation))


def broadcast(box: Box, shape: Sequence[int], dims: Sequence[int]) -> Box:
    """Target dimension dims[d] is dimension d of before, repeated where that has size 1; the others repeat."""
    factors = []
    for d, size in enumerate(shape):
        old = dims.index(d) if d in dims else -1
        if old >= 0 and box.shape[old] == size:
            factors += [replace(f, target=d) for f in box.along(old)]
        elif size != 1:
            factors.append(Factor(size, 0, 0, d, 1))
    return Box(tuple(factors), box.source_first, (0,) * len(shape), tuple(shape))


def sliced(box: Box, starts: Sequence[int], sizes: Sequence[int], steps: Sequence[int]) -> Box | None:
    """Of each dimension `sizes` elements from `starts` on, `steps` apart (-1 runs backwards)."""
    first = list(box.source_first)
    kept: list[Factor] = []
    for d, (start, size, step) in enumerate(zip(starts, sizes, steps, strict=True)):
        factors = _cut(box.along(d), start, size, step, first)
        if factors is None:
            return None
        kept += factors
    return Box(tuple(kept), tuple(first), (0,) * len(box.shape), tuple(sizes))


def _cut(factors: list[Factor], start: int, size: int, step: int, first: list[int]) -> list[Factor] | None:
    """The factors of one dimension after a slice; moves `first`."""
    if not factors or (start == 0 and step == 1 and size == math.prod(f.size for f in factors)):
        return factors
    outer, inner = factors[0], factors[1:]
    if not inner:
        first[outer.source] += start * outer.source_step
        return [replace(outer, size=size, source_step=outer.source_step * step)] if size != 1 else []
    inside = math.prod(f.size for f in inner)
    if step == 1 and start % inside == 0 and size % inside == 0:
        first[outer.source] += start // inside * outer.source_step
        return [*([replace(outer, size=size // inside)] if size != inside else []), *inner]
    if start // inside == (start + step * (size - 1)) // inside:
        first[outer.source] += start // inside * outer.source_step
        return _cut(inner, start % inside, size, step, first)
    return None


def merged(box: Box) -> Box:
    """Neighbours that run on in both source and target as one factor."""
    factors: list[Factor] = []
    for f in box.factors:
        if factors and _runs_on(factors[-1], f):
            factors[-1] = replace(f, size=factors[-1].size * f.size)
        else:
            factors.append(f)
    return replace(box, factors=tuple(factors))


def _runs_on(outer: Factor, inner: Factor) -> bool:
    """Whether the two are one longer range."""
    steps = (outer.source_step, outer.target_step) == (inner.size * inner.source_step, inner.size * inner.target_step)
    return steps and (outer.source, outer.target) == (inner.source, inner.target)


def placed(box: Box, first: Sequence[int], steps: Sequence[int], shape: Sequence[int]) -> Box:
    """The box as a part of a larger target: from `first` on, its elements `steps` apart."""
    factors = tuple(replace(f, target_step=f.target_step * steps[f.target]) for f in box.factors)
    return Box(factors, box.source_first, tuple(first), tuple(shape))


def squeezed(box: Box, source_shape: Sequence[int]) -> Box:
    """The box between the squeezed shapes of its source and its target."""
    source_kept, target_kept = _kept(source_shape), _kept(box.shape)
    source_at = {d: i + max(0, 2 - len(source_kept)) for i, d in enumerate(source_kept)}
    target_at = {d: i + max(0, 2 - len(target_kept)) for i, d in enumerate(target_kept)}
    factors = tuple(
        replace(f, source=source_at[f.source] if f.source_step else 0, target=target_at[f.target]) for f in box.factors
    )
    return Box(
        factors,
        _lifted([box.source_first[d] for d in source_kept], 0),
        _lifted([box.target_first[d] for d in target_kept], 0),
        squeezed_shape(box.shape),
    )


def squeezed_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Without dimensions of size 1, but with rank 2 at least."""
    return _lifted([shape[d] for d in _kept(shape)], 1)


def _lifted(values: Sequence[int], missing: int) -> tuple[int, ...]:
    return (*(missing,) * max(0, 2 - len(values)), *values)


def _kept(shape: Sequence[int]) -> list[int]:
    return [d for d, size in enumerate(shape) if size != 1]


def same_tiles(before: Sequence[int], after: Sequence[int], element: ElementType) -> bool:
    """Whether an array lies in memory in one shape as it does in the other: a reshape that moves nothing.

    Dimensions of size 1 do not count: the layout with the least padding has them outside.
    """
    a, b = (tuple(s for s in shape if s != 1) for shape in (before, after))
    if a == b:
        return True
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-1]:
        return False
    tiles = [natural_layout(shape, element) for shape in (a, b)]
    whole = all(t.padded_shape[-2] == shape[-2] for t, shape in zip(tiles, (a, b), strict=True))
    return a[-2] == b[-2] or (whole and tiles[0].tile == tiles[1].tile)
