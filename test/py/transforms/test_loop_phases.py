"""Kernels of several loops, each a launch that threads share: the same bits as in one, and nothing else is touched."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret
from stablehlo_py.testing.generate import is_dynamic, module_of, random_part
from stablehlo_py.transforms.kernels import loop_phases

POOL = """
func.func @main(%x: tensor<1x112x112x64xf32>) -> tensor<1x56x56x64xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %least) <{
    padding = dense<[[0, 0], [1, 1], [1, 1], [0, 0]]> : tensor<4x2xi64>,
    window_dimensions = array<i64: 1, 3, 3, 1>, window_strides = array<i64: 1, 2, 2, 1>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<1x112x112x64xf32>, tensor<f32>) -> tensor<1x56x56x64xf32>
  return %0 : tensor<1x56x56x64xf32>
}"""
ROLL = """
func.func @main(%x: tensor<1x80x80x64xf32>) -> tensor<1x80x80x64xf32> {
  %0 = stablehlo.slice %x [0:1, 77:80, 0:80, 0:64] : (tensor<1x80x80x64xf32>) -> tensor<1x3x80x64xf32>
  %1 = stablehlo.slice %x [0:1, 0:77, 0:80, 0:64] : (tensor<1x80x80x64xf32>) -> tensor<1x77x80x64xf32>
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<1x3x80x64xf32>, tensor<1x77x80x64xf32>) -> tensor<1x80x80x64xf32>
  return %2 : tensor<1x80x80x64xf32>
}"""


@pytest.mark.parametrize("text", [POOL, ROLL], ids=["pool", "roll"])
def test_the_loops_of_one_image_are_shared(cpu: str, text: str) -> None:
    executables = [stablehlo_py.compile(text, cache=False, options=stablehlo_py.Options(threads=n)) for n in (1, 2, 3)]
    launches = executables[0].program.commands
    assert len(launches) > 1 and all(launch.end - launch.begin > 1 for launch in launches)
    x = np.random.default_rng(0).standard_normal([int(n) for n in text.split("tensor<")[1].split("x")[:4]], np.float32)
    with new_context(), ir.Location.unknown():
        (want,) = interpret(ir.Module.parse(text), x)
    for executable in executables:
        np.testing.assert_array_equal(executable(x)[0], want)


def test_small_kernels_are_one_launch() -> None:
    small = ROLL.replace("80x80x64", "80x8x64").replace("x80x64", "x8x64").replace("0:80, 0:64", "0:8, 0:64")
    executable = stablehlo_py.compile(small, cache=False)
    assert len(executable.program.commands) == 1


@pytest.fixture
def cuts_all(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every kernel that can be cut is, in as many parts as there are steps; which were cut by this."""
    monkeypatch.setattr(loop_phases, "LEAST_WORK", 0)
    for name in ("WORK_PER_PART", "AWAKE_WORK_PER_PART", "WORK_PER_CHUNK"):
        monkeypatch.setattr(f"stablehlo_py.runtime.parts.{name}", 1)
    cut: list[bool] = []
    original = loop_phases.bound

    def bound(*arguments: object) -> list[int] | None:
        launches = original(*arguments)  # type: ignore[arg-type]
        cut.append(launches is not None)
        return launches

    monkeypatch.setattr(loop_phases, "bound", bound)
    return cut


def test_random_programs_have_the_bits_of_one_launch(cuts_all: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """154: what loops leave for each other in a thread's own stack; 345: loops without a step are loops over vectors."""
    for seed in (*range(60), 154, 345):
        if is_dynamic(seed):
            continue
        case = module_of([random_part(seed)])
        arguments = case.arrays()
        parts = stablehlo_py.compile(case.text, cache=False, options=stablehlo_py.Options(threads=3))
        with monkeypatch.context() as whole:
            whole.setattr(loop_phases, "LEAST_WORK", 1 << 60)
            one = stablehlo_py.compile(case.text, cache=False, options=stablehlo_py.Options(threads=1))
        for got, want in zip(parts(*arguments), one(*arguments), strict=True):
            assert got.tobytes() == want.tobytes(), case.text
    assert sum(cuts_all) > 3
