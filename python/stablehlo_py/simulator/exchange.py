"""What cores give each other: which part of an array each core writes in one kernel and reads in another.

Parts are counted in tiles of 8 x 128 elements, from the transfers and views of the kernels themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from stablehlo_py.simulator import program as p

ROWS, LANES = 8, 128


def touched(program: p.Program, buffer: p.Buffer, cores: int) -> list[np.ndarray]:
    """For each core the tiles of an argument that it reads or writes: [outer dimensions.., rows of tiles, columns of them]."""
    *outer, rows, lanes = buffer.shape
    shape = (*outer, -(-rows // ROWS), -(-lanes // LANES))
    masks = [np.zeros(shape, bool) for _ in range(cores)]
    for core in range(cores):
        for node, index in _visits(program.body, [0] * program.index_count, core, buffer):
            masks[core][_tiles(node, index, buffer)] = True
    return masks


def crossing_bytes(made: list[np.ndarray], read: list[np.ndarray], buffer: p.Buffer) -> int:
    """Bytes that cores read and did not make themselves, all cores together; `buffer` as it is read."""
    tiles = 0
    for own, wanted in zip(made, read, strict=True):
        if own.size != wanted.size:
            return 0  # in another shape than it was made: it has gone through HBM
        tiles += int((wanted & ~own.reshape(wanted.shape)).sum())
    elements = math.prod(min(a, b) for a, b in zip((ROWS, LANES), buffer.shape[-2:], strict=True))
    return tiles * elements * max(1, buffer.element.bits // 8)


def split_name(made: list[np.ndarray]) -> str:
    """What the cores share, by what they write: `batch`, `rows` or `columns`; `both` where all of them do all."""
    first = made[0]
    if all(np.array_equal(first, other) for other in made[1:]):
        return "both"
    for dim, name in ((first.ndim - 1, "columns"), (first.ndim - 2, "rows")):
        others = tuple(d for d in range(first.ndim) if d != dim)
        if any(not np.array_equal(first.any(axis=others), other.any(axis=others)) for other in made[1:]):
            return name
    return "batch"


def _visits(
    nodes: tuple[p.Node, ...], index: list[int], core: int, buffer: p.Buffer
) -> Iterator[tuple[p.DmaStart | p.DmaStrided | p.View, list[int]]]:
    """Each transfer or view of an argument with the indices at that time, on one core."""
    for node in nodes:
        if isinstance(node, p.CoreSplit):
            index[node.index] = core
            yield from _visits(node.body, index, core, buffer)
        elif isinstance(node, p.Loop):
            if not _has(node.body, buffer):
                continue
            for values in itertools.product(*map(range, node.bounds)):
                for number, value in zip(node.indices, values, strict=True):
                    index[number] = value
                yield from _visits(node.body, index, core, buffer)
        elif isinstance(node, p.DmaStart | p.DmaStrided | p.View) and node.large is buffer:
            yield node, index


def _has(nodes: tuple[p.Node, ...], buffer: p.Buffer) -> bool:
    return any(getattr(node, "large", None) is buffer or _has(getattr(node, "body", ()), buffer) for node in nodes)


def _tiles(node: p.DmaStart | p.DmaStrided | p.View, index: list[int], buffer: p.Buffer) -> tuple[slice, ...]:
    """The tiles of one transfer."""
    values = [index[i] for i in node.indices]
    if isinstance(node, p.DmaStrided):
        starts = list(node.first(*values))
        sizes = [1] * (len(starts) - 1) + [node.count[1]]
        sizes[node.dim] = abs(node.step) * (node.count[0] - 1) + 1
        starts[node.dim] += min(0, node.step) * (node.count[0] - 1)
    else:
        sizes = [1] * (len(buffer.shape) - len(node.small.shape)) + list(node.small.shape)
        starts = [number * size for number, size in zip(node.block(*values), sizes, strict=True)]
    units = [1] * (len(starts) - 2) + [ROWS, LANES]
    return tuple(slice(a // u, -(-(a + n) // u)) for a, n, u in zip(starts, sizes, units, strict=True))
