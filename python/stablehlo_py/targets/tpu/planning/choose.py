"""Choices of least cost: one option for each variable, where tables give the cost of options that stand together.

Dynamic programming over the graph: a variable is eliminated by adding the tables that know it and taking its best option for
each choice of the others. Exact as long as no table grows beyond `LARGEST`; a variable that would make one so large is given
the option that is best by its own tables first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from stablehlo_py.records import record

LARGEST = 1 << 18


@record(eq=False)
class Table:
    """cost[i, j, ...]: of option i of the first variable with option j of the second, ..."""

    variables: tuple[int, ...]
    cost: np.ndarray


def choose(sizes: Mapping[int, int], tables: Sequence[Table]) -> dict[int, int]:
    """The option of each variable; sizes: how many it has. Options that cost the same: the first one."""
    left = [_without_repeats(table) for table in tables]
    order: list[tuple[int, Table]] = []
    fixed: dict[int, int] = {}
    todo = dict(sizes)
    while todo:
        width = {v: _scope(v, left) for v in todo}
        variable = min(todo, key=lambda v: (math.prod(sizes[u] for u in width[v]), v))
        own = [table for table in left if variable in table.variables]
        if math.prod(sizes[u] for u in width[variable]) > LARGEST:
            # Too many neighbours: the one with most of them is decided by what its tables cost at best.
            variable = max(todo, key=lambda v: (len(width[v]), -v))
            own = [table for table in left if variable in table.variables]
            fixed[variable] = int(np.argmin(sum(_best(table, variable) for table in own)))
            left = [table for table in left if variable not in table.variables]
            left += [_sliced(table, variable, fixed[variable]) for table in own]
            del todo[variable]
            continue
        others = tuple(sorted(width[variable] - {variable}))
        total = np.zeros([sizes[u] for u in (*others, variable)])
        for table in own:
            total = total + _spread(table, (*others, variable))
        order.append((variable, Table((*others, variable), total)))
        left = [table for table in left if variable not in table.variables]
        left.append(Table(others, total.min(axis=-1)))
        del todo[variable]
    for variable, table in reversed(order):
        known = tuple(fixed[u] for u in table.variables[:-1])
        fixed[variable] = int(np.argmin(table.cost[known]))
    return fixed


def cost_of(choice: Mapping[int, int], tables: Sequence[Table]) -> float:
    """What a choice costs."""
    return float(sum(table.cost[tuple(choice[v] for v in table.variables)] for table in tables))


def _scope(variable: int, tables: Sequence[Table]) -> set[int]:
    """The variable and those that stand in a table with it."""
    return {variable}.union(*(table.variables for table in tables if variable in table.variables))


def _spread(table: Table, variables: tuple[int, ...]) -> np.ndarray:
    """The costs with an axis for each of `variables`, in their order."""
    order = sorted(range(len(table.variables)), key=lambda i: variables.index(table.variables[i]))
    cost = table.cost.transpose(order)
    present = {table.variables[i] for i in order}
    sizes = iter(cost.shape)
    return cost.reshape([next(sizes) if v in present else 1 for v in variables])


def _best(table: Table, variable: int) -> np.ndarray:
    axis = table.variables.index(variable)
    return table.cost.min(axis=tuple(i for i in range(table.cost.ndim) if i != axis))


def _sliced(table: Table, variable: int, option: int) -> Table:
    axis = table.variables.index(variable)
    rest = tuple(v for v in table.variables if v != variable)
    return Table(rest, np.take(table.cost, option, axis=axis))


def _without_repeats(table: Table) -> Table:
    """A variable that stands twice in a table has the same option in both places."""
    variables = tuple(dict.fromkeys(table.variables))
    if variables == table.variables:
        return table
    names = {v: i for i, v in enumerate(variables)}
    return Table(variables, np.einsum(table.cost, [names[v] for v in table.variables], list(range(len(variables)))))
