"""Random programs keep the rules of the verifier and the VMEM limits, and give the reference's values.

tools/fuzz_tpu.py runs the same for thousands of seeds.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from stablehlo_py.machine.tpu import chip
from stablehlo_py.testing import tpu_programs
from stablehlo_py.testing.tpu_programs import KINDS, memory_problems, problems, random_case

from .kernels import compile_text, product_text


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_nothing_is_wrong(first):
    assert {seed: found for seed in range(first, first + 10) if (found := problems(random_case(seed)))} == {}


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_large_programs_stay_within_memory(first):
    cases = {seed: random_case(seed, large=True) for seed in range(first, first + 10)}
    assert {seed: found for seed, case in cases.items() if (found := problems(case))} == {}


def test_the_seeds_cover_all_kinds_and_chips():
    cases = [random_case(seed) for seed in range(60)]
    assert {case.kind for case in cases} == set(KINDS)
    assert len({case.chip for case in cases}) == 5
    assert sum(case.tolerance == 0 for case in cases) >= 20


def test_a_wrong_value_is_found(monkeypatch):
    case = next(c for c in map(random_case, range(60)) if c.tolerance == 0)

    def off_by_one(module, *arrays):
        return tuple(np.asarray(a) + np.ones_like(a) for a in tpu_programs.original(module, *arrays))

    monkeypatch.setattr(tpu_programs, "original", tpu_programs.interpret, raising=False)
    monkeypatch.setattr(tpu_programs, "interpret", off_by_one)
    (found,) = problems(case)
    assert "elements differ" in found


def test_memory_is_counted():
    (kernel,) = compile_text(product_text(300, 300, 300), chip="v5e").kernels
    machine = chip("v5e")
    assert memory_problems(kernel, machine, kernel.bytes_in("vmem")) == []
    (over,) = memory_problems(kernel, machine, kernel.bytes_in("vmem") - 1)
    assert "the limit is" in over
    stacked = tuple(dataclasses.replace(a, offset=0) for a in kernel.allocations)
    assert any(
        "lies over" in p for p in memory_problems(dataclasses.replace(kernel, allocations=stacked), machine, 1 << 24)
    )
    small = machine.replace(vmem_bytes=1000)
    assert any("v5e has 1000" in p for p in memory_problems(kernel, small, 1 << 24))
