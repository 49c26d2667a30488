"""AMX's tiles and the operating system: asked when code that uses them is loaded, and done without where it refuses."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.cache import Cache
from stablehlo_py.errors import WrongMachine
from stablehlo_py.targets import amx, cpus
from stablehlo_py.targets.machine_code import CodegenOptions
from stablehlo_py.testing.other_cpu import HERE

PRODUCT = """func.func @main(%a: tensor<48x128xi8>, %b: tensor<128x48xi8>) -> tensor<48x48xi32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<48x128xi8>, tensor<128x48xi8>) -> tensor<48x48xi32>
  return %0 : tensor<48x48xi32>
}"""
SUM = """func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
FEATURES = "+amx-bf16,+amx-int8,+amx-tile,+avx2,-amx-fp16"
only_with_tiles = pytest.mark.skipif("+amx-tile" not in HERE[1].split(","), reason="this machine has no tiles")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """As in a process that has not asked yet."""
    fresh: list[bool] = []
    monkeypatch.setattr(amx, "_answers", fresh)
    yield fresh
    monkeypatch.undo()
    cpus.host.cache_clear()


def system(monkeypatch: pytest.MonkeyPatch, *, supported: bool, permitted: bool) -> list[int]:
    """An operating system that answers so; what it is asked for."""
    asked: list[int] = []

    def arch_prctl(code: int, argument: object) -> int:
        asked.append(code)
        if code == 0x1021:
            argument._obj.value = supported << 18
            return 0
        return 0 if permitted else -1

    monkeypatch.setattr(amx, "_arch_prctl", arch_prctl)
    return asked


def operands() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    return tuple(generator.integers(-128, 128, shape).astype(np.int8) for shape in ((48, 128), (128, 48)))


def test_a_system_that_does_not_know_tiles(monkeypatch, answers):
    system(monkeypatch, supported=False, permitted=True)
    assert amx.usable(FEATURES) == "-amx-bf16,-amx-int8,-amx-tile,+avx2,-amx-fp16"
    assert amx.usable("-amx-tile,+avx2") == "-amx-tile,+avx2"


def test_looking_is_not_asking(monkeypatch, answers):
    asked = system(monkeypatch, supported=True, permitted=True)
    assert amx.usable(FEATURES) == FEATURES
    assert asked == [0x1021]
    assert amx.ask() and amx.ask()
    assert asked == [0x1021, 0x1023]
    assert amx.usable(FEATURES) == FEATURES
    assert asked == [0x1021, 0x1023]


@only_with_tiles
def test_only_code_with_tiles_asks(monkeypatch, answers, tmp_path):
    asked = system(monkeypatch, supported=True, permitted=True)
    stablehlo_py.compile(SUM, cache=False)
    assert asked.count(0x1023) == 0
    store = Cache(tmp_path)
    stablehlo_py.compile(PRODUCT, cache=store)
    assert asked.count(0x1023) == 1
    answers.clear()
    from_disk = stablehlo_py.compile(PRODUCT, cache=store)
    assert "codegen" not in from_disk.timing
    assert asked.count(0x1023) == 2


@only_with_tiles
@pytest.mark.parametrize("is_on_disk", [False, True])
def test_a_system_that_refuses(monkeypatch, answers, tmp_path, is_on_disk):
    """Whether the program comes from the disk or is compiled, the one that runs has no tiles."""
    store = Cache(tmp_path)
    if is_on_disk:
        stablehlo_py.compile(PRODUCT, cache=store)
        answers.clear()
        cpus.host.cache_clear()
    system(monkeypatch, supported=True, permitted=False)
    executable = stablehlo_py.compile(PRODUCT, cache=store)
    a, b = operands()
    np.testing.assert_array_equal(executable(a, b)[0], a.astype(np.int32) @ b.astype(np.int32))
    assert "tileloadd" not in executable.as_text("asm")
    assert "+amx" not in cpus.host()[1]
    with pytest.raises(WrongMachine, match="amx-tile"):
        features = ",".join(x for x in HERE[1].split(",") if x.startswith("+"))
        stablehlo_py.compile(PRODUCT, options=stablehlo_py.Options(codegen=CodegenOptions(features=features)))(a, b)


@only_with_tiles
def test_without_tiles_by_choice():
    features = HERE[1].replace("+amx-tile", "-amx-tile")
    options = stablehlo_py.Options(codegen=CodegenOptions(features=features))
    executable = stablehlo_py.compile(PRODUCT, cache=False, options=options)
    assert "vpdpbusd" in executable.as_text("asm")
    assert "tileloadd" not in executable.as_text("asm")
    assert "tileloadd" in stablehlo_py.compile(PRODUCT, cache=False).as_text("asm")
    a, b = operands()
    np.testing.assert_array_equal(executable(a, b)[0], a.astype(np.int32) @ b.astype(np.int32))
