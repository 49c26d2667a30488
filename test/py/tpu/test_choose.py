"""Choices of least cost against trying all of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.targets.tpu.planning import choose as module
from stablehlo_py.targets.tpu.planning.choose import Table, choose, cost_of


def random_problem(rng: np.random.Generator, variables: int, tables: int) -> tuple[dict[int, int], list[Table]]:
    sizes = {v: int(rng.integers(1, 4)) for v in range(variables)}
    made = []
    for _ in range(tables):
        own = tuple(int(v) for v in rng.choice(variables, int(rng.integers(1, min(4, variables + 1))), replace=False))
        made.append(Table(own, rng.integers(0, 20, [sizes[v] for v in own]).astype(float)))
    return sizes, made


@pytest.mark.parametrize("seed", range(40))
def test_least_of_all(seed):
    rng = np.random.default_rng(seed)
    sizes, tables = random_problem(rng, int(rng.integers(1, 7)), int(rng.integers(1, 9)))
    least = min(
        cost_of(dict(enumerate(options)), tables)
        for options in itertools.product(*(range(sizes[v]) for v in sorted(sizes)))
    )
    choice = choose(sizes, tables)
    assert set(choice) == set(sizes)
    assert cost_of(choice, tables) == least


def test_a_variable_twice_in_a_table():
    table = Table((0, 0), np.array([[5.0, 0.0], [0.0, 3.0]]))
    assert choose({0: 2}, [table]) == {0: 1}


def test_many_neighbours_have_an_answer_too(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 20)
    rng = np.random.default_rng(1)
    sizes = dict.fromkeys(range(8), 3)
    tables = [Table((a, b), rng.random((3, 3))) for a, b in itertools.combinations(range(8), 2)]
    choice = choose(sizes, tables)
    usual = np.mean([cost_of({v: int(rng.integers(3)) for v in sizes}, tables) for _ in range(200)])
    assert cost_of(choice, tables) < usual


def test_a_long_chain_is_fast():
    rng = np.random.default_rng(2)
    sizes = dict.fromkeys(range(400), 4)
    tables = [Table((i, i + 1), rng.random((4, 4))) for i in range(399)]
    choice = choose(sizes, tables)
    total = np.zeros(4)
    for table in reversed(tables):
        total = (table.cost + total).min(axis=1)
    assert cost_of(choice, tables) == pytest.approx(total.min())
