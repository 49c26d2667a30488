"""Random programs from a seed: a graph of a few ops, and several graphs in one module."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import numpy as np

from stablehlo_py.records import record
from stablehlo_py.testing import (
    ops_calls,
    ops_contraction,
    ops_control,
    ops_dynamic,
    ops_elementwise,
    ops_quantized,
    ops_reduction,
    ops_shape,
)
from stablehlo_py.testing.graph import Argument, Graph, Value
from stablehlo_py.testing.values import make_array

_FAMILIES = (
    *ops_elementwise.OPS,
    *ops_shape.OPS,
    *ops_reduction.OPS,
    *ops_contraction.OPS,
    *ops_quantized.OPS,
    *ops_calls.OPS,
)
_OPS = [op for op, _ in _FAMILIES]
_TOTALS = list(itertools.accumulate(weight for _, weight in _FAMILIES))
_CONTROL = 0.05  # of the ops are control flow


@record
class Case:
    """A program with what it is run on."""

    text: str
    arguments: tuple[Argument, ...]

    def arrays(self) -> list[np.ndarray]:
        return [make_array(a.value.shape, a.value.element, a.style, a.seed) for a in self.arguments]


@record
class Part:
    """The lines of one graph and what comes out of it."""

    lines: tuple[str, ...]
    arguments: tuple[Argument, ...]
    results: tuple[Value, ...]


def random_part(seed: int, prefix: str = "", turn: int = 0) -> Part:
    """A graph of 1 to 12 ops; the same for the same seed. Eight seeds in eighty have symbolic dimensions.

    turn: other sizes of the call; mostly the lines stay the same then, as these do not depend on it.
    """
    g = Graph(Random(seed), prefix)
    if is_dynamic(seed):
        made = ops_dynamic.fill(g, turn)
        return Part(tuple(g.lines), tuple(g.arguments), (made[-1], *made[:-1][:2]))
    wanted = g.random.choice((1, 1, 2, 2, 3, 4, 5, 6, 8, 10, 12))
    for _ in range(wanted):
        _step(g)
    own = [v for v in g.values if v not in {a.value for a in g.arguments}] or g.values
    last = own[-1]
    others = g.random.sample(own[:-1], min(len(own) - 1, g.random.choice((0, 1, 2))))
    return Part(tuple(g.lines), tuple(g.arguments), (last, *others))


def is_dynamic(seed: int) -> bool:
    """Whole runs of seeds, since one open shape makes the whole module of several graphs dynamic."""
    return seed // 8 % 10 == 7


def module_of(parts: Sequence[Part]) -> Case:
    """One program of all parts side by side."""
    arguments = tuple(a for part in parts for a in part.arguments)
    results = [v for part in parts for v in part.results]
    head = ", ".join(f"{a.value.name}: {a.value.type}" for a in arguments)
    types = ", ".join(v.type for v in results)
    body = "\n  ".join(line for part in parts for line in part.lines)
    names = ", ".join(v.name for v in results)
    text = f"func.func @main({head}) -> ({types}) {{\n  {body}\n  func.return {names} : {types}\n}}\n"
    return Case(text, arguments)


def other_calls(seeds: Sequence[int], prefixes: Sequence[str], turns: int = 2) -> list[list[np.ndarray]]:
    """Arguments of other shapes for the program of the parts of these seeds, where there are such."""
    first = [random_part(seed, prefix) for seed, prefix in zip(seeds, prefixes, strict=True)]
    found = []
    for turn in range(1, turns + 1):
        parts = [random_part(seed, prefix, turn) for seed, prefix in zip(seeds, prefixes, strict=True)]
        chosen = [
            p if module_of([p]).text == module_of([own]).text else own for own, p in zip(first, parts, strict=True)
        ]
        if chosen != first:
            found.append(module_of(chosen).arrays())
    return found


def _step(g: Graph) -> None:
    """One more op, whichever can be made."""
    for _ in range(20):
        if g.chance(_CONTROL):
            made = g.random.choice((ops_control.branch, ops_control.loop))(g, _step)
        else:
            made = g.random.choices(_OPS, cum_weights=_TOTALS)[0](g)
        if made is not None:
            return
