"""The cache on disk: hits, damage, other versions, bounds, several processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py import building
from stablehlo_py import cache as cache_module
from stablehlo_py.cache import Cache, default_folder, key_of, pack, unpack
from stablehlo_py.cli.shlo import main

PROGRAM = """func.func @main(%a: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %a, %a : tensor<3xf32>
  return %0 : tensor<3xf32>
}"""
INPUT = np.array([1, 2, 3], np.float32)


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def compiled(store: Cache) -> tuple[bool, np.ndarray]:
    """Whether the program came from the cache, and its result."""
    executable = stablehlo_py.compile(PROGRAM, cache=store)
    return "passes" not in executable.timing, executable(INPUT)[0]


def test_the_second_compilation_is_a_hit(store: Cache) -> None:
    first, second = compiled(store), compiled(store)
    assert (first[0], second[0]) == (False, True)
    np.testing.assert_array_equal(second[1], 2 * INPUT)


def test_a_hit_still_shows_every_stage(store: Cache) -> None:
    compiled(store)
    executable = stablehlo_py.compile(PROGRAM, cache=store)
    assert "linalg.generic" in executable.as_text("linalg")
    assert "stablehlo.add" in executable.as_text("input")


def test_kernels_are_shared_between_programs(store: Cache) -> None:
    compiled(store)
    kernels = [e for e in store.entries() if e.kind == "kernel"]
    other = PROGRAM.replace("return %0", "%1 = stablehlo.add %0, %a : tensor<3xf32>\n return %0")  # %1 is dead
    stablehlo_py.compile(other, cache=store)
    assert len([e for e in store.entries() if e.kind == "kernel"]) == len(kernels)
    assert len([e for e in store.entries() if e.kind == "program"]) == 2


# {last} is the op of the last kernel; {dead} makes another program of the same kernels
UPDATE = """func.func @main(%a: tensor<4000xf32>, %u: tensor<3xf32>, %i: tensor<i32>) -> tensor<4000xf32> {{
  {dead}
  %0 = stablehlo.dynamic_update_slice %a, %u, %i : (tensor<4000xf32>, tensor<3xf32>, tensor<i32>) -> tensor<4000xf32>
  %1 = stablehlo.{last} %0 : tensor<4000xf32>
  return %1 : tensor<4000xf32>
}}"""


def test_a_kernel_from_the_cache_is_not_lowered_again(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    """What its launch needs to know comes with it: scratch memory, updates in place, how it may be split."""
    arguments = (np.arange(4000, dtype=np.float32), np.ones(3, np.float32), np.int32(7))
    first = stablehlo_py.compile(UPDATE.format(dead="", last="sine"), cache=store)
    lowered = []
    lower = building._lower
    monkeypatch.setattr(building, "_lower", lambda *of: lowered.append(of) or lower(*of))
    dead = "%9 = stablehlo.constant dense<true> : tensor<i1>"
    second = stablehlo_py.compile(UPDATE.format(dead=dead, last="sine"), cache=store)
    assert not lowered
    np.testing.assert_array_equal(second(*arguments)[0], first(*arguments)[0])
    stablehlo_py.compile(UPDATE.format(dead=dead, last="cosine"), cache=store)
    assert len(lowered) == 1


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_entry_is_a_miss(store: Cache, damage: bytes | None) -> None:
    compiled(store)
    for entry in store.entries():
        data = bytearray(entry.path.read_bytes())
        data[-1] ^= 1
        entry.path.write_bytes(bytes(data) if damage is None else damage)
    hit, result = compiled(store)
    assert not hit
    np.testing.assert_array_equal(result, 2 * INPUT)


def test_a_well_formed_entry_with_other_contents_is_a_miss(store: Cache) -> None:
    compiled(store)
    for entry in list(store.entries()):
        store.put(entry.kind, entry.key, pack([b"not a program", b"not an object"]))
    hit, result = compiled(store)
    assert not hit
    np.testing.assert_array_equal(result, 2 * INPUT)


def test_another_version_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key_of("program", "x")
    monkeypatch.setattr(cache_module, "fingerprint", lambda: "another")
    assert key_of("program", "x") != before


def test_parts_cannot_be_confused() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")


def test_the_oldest_entries_go_first(store: Cache) -> None:
    store.largest = 3000
    for i in range(5):
        store.put("kernel", f"{i:064}", bytes(1000))
        os.utime(store.folder / "kernel" / "00" / f"{i:064}", (i, i))
    assert store.shrink() == 3
    assert sorted(e.key for e in store.entries()) == [f"{i:064}" for i in (3, 4)]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    hit, result = compiled(Cache(tmp_path / "file" / "below"))
    assert not hit
    np.testing.assert_array_equal(result, 2 * INPUT)


def test_pack_and_unpack() -> None:
    parts = [b"", b"a", bytes(1000)]
    assert unpack(pack(parts)) == parts
    for bad in (b"", b"x", pack(parts)[:-1], b"\xff" * 16):
        with pytest.raises(ValueError, match="not packed parts"):
            unpack(bad)


def test_two_processes_at_once(store: Cache) -> None:
    code = (
        f"import sys, pathlib, stablehlo_py\nfrom stablehlo_py.cache import Cache\n"
        f"stablehlo_py.compile({PROGRAM!r}, cache=Cache(pathlib.Path(sys.argv[1])))"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(store.folder)]) for _ in range(2)]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    assert not store.verify()
    assert compiled(store)[0]


def test_the_command_line(store: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    compiled(store)
    folder = ["--folder", str(store.folder)]
    assert main(["cache", "ls", *folder]) == 0
    assert capsys.readouterr().out.count("\n") == 2
    assert main(["cache", "stats", *folder]) == 0
    assert "programs       1" in capsys.readouterr().out
    next(store.entries()).path.write_bytes(b"damaged")
    assert main(["cache", "verify", *folder]) == 1
    assert main(["cache", "verify", *folder]) == 0
    assert main(["cache", "clear", *folder]) == 0
    assert not list(store.entries())


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("linux", {}, "/home/me/.cache/stablehlo_py"),
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/stablehlo_py"),
        ("linux", {"XDG_CACHE_HOME": "not/absolute"}, "/home/me/.cache/stablehlo_py"),
        ("darwin", {"XDG_CACHE_HOME": "/caches"}, "/home/me/Library/Caches/stablehlo_py"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/stablehlo_py/Cache"),
        ("win32", {}, "/home/me/AppData/Local/stablehlo_py/Cache"),
    ],
)
def test_the_folder_is_where_the_system_keeps_caches(monkeypatch, platform, environment, expected):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **environment}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert default_folder() == Path(expected)
