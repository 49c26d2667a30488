"""Random programs are well-typed, the same for the same seed, and of many kinds of ops and types."""

from __future__ import annotations

import re

from stablehlo_py.mlir import ir, new_context
from stablehlo_py.testing.generate import module_of, other_calls, random_part
from stablehlo_py.testing.mutate import damaged_artifact, mutated_text

SEEDS = range(200)
KINDS = ("!quant.uniform<", "tensor<?x", '"SPMD', '"lapack_', '"mhlo.')


def test_same_seed_same_program():
    for seed in (0, 1, 2):
        first, second = (module_of([random_part(seed)]) for _ in range(2))
        assert first.text == second.text
        for a, b in zip(first.arrays(), second.arrays(), strict=True):
            assert a.tobytes() == b.tobytes()


def test_programs_are_well_typed_and_varied():
    ops: set[str] = set()
    elements: set[str] = set()
    found: set[str] = set()
    with new_context(), ir.Location.unknown():
        for seed in SEEDS:
            text = module_of([random_part(seed)]).text
            assert ir.Module.parse(text).operation.verify(), text
            found |= {kind for kind in KINDS if kind in text}
            ops |= set(re.findall(r'"((?:stablehlo|chlo)\.\w+)"', text))
            elements |= set(re.findall(r"tensor<(?:\d+x)*([\w<>]+?)>", text))
    assert len(ops) > 85
    assert len(elements) > 24
    assert found == set(KINDS)


def test_several_graphs_share_a_module():
    parts = [random_part(seed, f"g{seed}_") for seed in range(6)]
    case = module_of(parts)
    with new_context(), ir.Location.unknown():
        assert ir.Module.parse(case.text).operation.verify()
    assert len(case.arrays()) == sum(len(p.arguments) for p in parts)


def test_open_shapes_are_called_in_several() -> None:
    found = [other_calls([seed], [""]) for seed in range(56, 64)]
    assert sum(map(len, found)) > 4
    for seed, calls in zip(range(56, 64), found, strict=True):
        first = module_of([random_part(seed)]).arrays()
        assert all([a.dtype for a in call] == [a.dtype for a in first] for call in calls)
        assert all([a.shape for a in call] != [a.shape for a in first] for call in calls)
    assert other_calls([0], [""]) == []


def test_damage_is_repeatable():
    for seed in range(5):
        assert mutated_text(seed) == mutated_text(seed)
        assert damaged_artifact(seed) == damaged_artifact(seed)
