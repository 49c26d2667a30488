"""What compiling imports: each module costs a fraction of a millisecond, and users wait for all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import stablehlo_py

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(stablehlo_py.__file__).parents[1])}
COMPILE = """
import sys
import stablehlo_py
from stablehlo_py.cache import Cache
text = "func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {\\n"
text += " %0 = stablehlo.add %x, %x : tensor<32xf32> return %0 : tensor<32xf32> }"
executable = stablehlo_py.compile(text, cache=Cache(sys.argv[1]))
print(*sys.modules)
"""


def modules_after(folder: Path) -> set[str]:
    """What a process has imported that compiles a program with its cache in a folder."""
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, str(folder)], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    return set(done.stdout.split())


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str]]:
    """After a compilation, and after one that takes the program from the cache."""
    folder = tmp_path_factory.mktemp("cache")
    return modules_after(folder), modules_after(folder)


def ours(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("stablehlo_py.")}


def test_a_program_from_the_cache_needs_no_compiler(compiled):
    _, warm = compiled
    assert not {name for name in warm if name.startswith(("torch_mlir", "llvmlite"))}
    assert not {"stablehlo_py.building", "stablehlo_py.mlir", "stablehlo_py.transforms", "stablehlo_py.ops"} & warm
    assert len(ours(warm)) <= 32


def test_a_program_from_the_cache_imports_nothing_for_other_programs(compiled):
    """Symbolic dimensions take concurrent.futures and with it logging, small floats ml_dtypes, an error subprocess."""
    _, warm = compiled
    assert not {"concurrent.futures", "logging", "ml_dtypes", "subprocess", "dataclasses"} & warm


def test_the_first_program_imports_no_more_than_it_did(compiled):
    """Nor the libraries of custom calls, which take longer than all else together."""
    first, _ = compiled
    assert not {"llvmlite", "scipy", "stablehlo_py.custom_calls.lapack"} & first
    assert not {f"stablehlo_py.ops.{name}" for name in ("batch_norm", "random", "scatter", "sort", "window")} & first
    assert not {f"stablehlo_py.ops.evaluate.{name}" for name in ("convolution", "fft", "linalg", "sort")} & first
    assert "stablehlo_py.targets.cpu.sorting" not in first
    assert len(ours(first)) <= 136


FUNCTION = """
import sys
import stablehlo_py
type = "tensor<32xf32>"
stablehlo_py.compile(
    f"func.func @main(%x: {type}) -> {type} {{ %0 = {sys.argv[1]} %x : {sys.argv[2]} return %0 : {type} }}", cache=False
)
print(*sys.modules)
"""
UNARY = "tensor<32xf32>"


@pytest.mark.parametrize(
    ("op", "types", "wanted", "unwanted"),
    [
        ("stablehlo.exponential", UNARY, "exponential", ("trigonometric", "logarithm", "power", "error_function")),
        ("stablehlo.sine", UNARY, "trigonometric", ("logarithm", "power", "error_function")),
        ("chlo.erf", f"{UNARY} -> {UNARY}", "error_function", ("special_functions", "complex_functions")),
    ],
)
def test_one_function_imports_no_other(op, types, wanted, unwanted):
    done = subprocess.run(
        [sys.executable, "-c", FUNCTION, op, types], capture_output=True, text=True, check=True, env=ENVIRONMENT
    )
    last = {name.rpartition(".")[2] for name in ours(set(done.stdout.split()))}
    assert wanted in last
    assert not last & set(unwanted)


CONSTANTS = """func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
  %y = stablehlo.multiply %x, %b : tensor<4x8xf32>
  %s = stablehlo.reduce(%y init: %z) applies stablehlo.add across dimensions = [1]
    : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %s : tensor<4xf32>
}"""


def test_constants_that_meet_in_no_op_import_no_rules():
    code = "import sys, stablehlo_py; stablehlo_py.compile(sys.argv[1], cache=False); print(*sys.modules)"
    command = [sys.executable, "-c", code, CONSTANTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    modules = ours(set(done.stdout.split()))
    assert "stablehlo_py.transforms.simplify.hlo_fold" in modules
    assert not {name for name in modules if name.startswith("stablehlo_py.ops.evaluate")}
