"""top_k of every type and every k: few kept in order, many kept as they come, rows shorter and longer than blocks."""

from __future__ import annotations

import numpy as np
import pytest
from ops.test_sort_orders import TYPES, expected, kinds, numbers, ordered, program

import stablehlo_py
from stablehlo_py import Options


@pytest.mark.parametrize("t", [t for t in TYPES if t != "i1"])
@pytest.mark.parametrize(
    ("rows", "length", "k"), [(3, 40, 5), (2, 1500, 7), (1, 3000, 100), (2, 2500, 300), (3, 90, 80)]
)
def test_against_numpy(t: str, rows: int, length: int, k: int) -> None:
    rng = np.random.default_rng(length)
    x = numbers(TYPES[t], (rows, length), rng, 2000)
    text = f"""
func.func @main(%x: tensor<{rows}x{length}x{t}>) -> (tensor<{rows}x{k}x{t}>, tensor<{rows}x{k}xi32>) {{
  %0:2 = chlo.top_k(%x, k = {k}) : tensor<{rows}x{length}x{t}> -> (tensor<{rows}x{k}x{t}>, tensor<{rows}x{k}xi32>)
  return %0#0, %0#1 : tensor<{rows}x{k}x{t}>, tensor<{rows}x{k}xi32>
}}"""
    key = ordered(x, "GT", "TOTALORDER")
    places = np.argsort(key, axis=1, kind="stable")[:, :k]
    for threads in (1, 2):
        values, indices = stablehlo_py.compile(text, cache=False, options=Options(threads=threads))(x)
        np.testing.assert_array_equal(indices, places)
        assert values.tobytes() == np.take_along_axis(x, places, 1).tobytes()


@pytest.mark.parametrize("k", [3, 70])
def test_rising_and_falling(k: int) -> None:
    """Every element beats all before it, or none does."""
    x = np.stack([np.arange(5000), -np.arange(5000), np.zeros(5000)]).astype(np.float32)
    text = f"""
func.func @main(%x: tensor<3x5000xf32>) -> (tensor<3x{k}xf32>, tensor<3x{k}xi32>) {{
  %0:2 = chlo.top_k(%x, k = {k}) : tensor<3x5000xf32> -> (tensor<3x{k}xf32>, tensor<3x{k}xi32>)
  return %0#0, %0#1 : tensor<3x{k}xf32>, tensor<3x{k}xi32>
}}"""
    _, indices = stablehlo_py.compile(text, cache=False)(x)
    np.testing.assert_array_equal(indices, np.argsort(-x, axis=1, kind="stable")[:, :k])


@pytest.mark.parametrize("t", [t for t in TYPES if t != "i1"])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_first_few_of_a_sort(t: str, direction: str) -> None:
    """A sort of which only the first elements are read gives those of the whole sort."""
    rows, length, k = 2, 300, 7
    rng = np.random.default_rng(1)
    x, payload = numbers(TYPES[t], (rows, length), rng, 40), numbers(np.float32, (rows, length), rng, 99)
    places = np.broadcast_to(np.arange(length, dtype=np.int32), x.shape)
    for kind in kinds(t):
        keys = [(t, direction, kind)]
        whole = program((rows, length), 1, keys, ["f32"], True)
        head, _, _ = whole.rpartition("    return")
        types = [t, "f32", "i32"]
        slices = "\n".join(
            f"    %f{i} = stablehlo.slice %s#{i} [0:{rows}, 0:{k}] : (tensor<{rows}x{length}x{e}>) -> tensor<{rows}x{k}x{e}>"
            for i, e in enumerate(types)
        )
        results = ", ".join(f"tensor<{rows}x{k}x{e}>" for e in types)
        old = ", ".join(f"tensor<{rows}x{length}x{e}>" for e in types)
        head = head.replace(f"-> ({old}) {{\n", f"-> ({results}) {{\n", 1)
        text = f"{head}{slices}\n    return %f0, %f1, %f2 : {results}\n}}"
        got = stablehlo_py.compile(text, cache=False)(x, payload)
        for one, want in zip(got, expected([x, payload, places], keys, 1), strict=True):
            assert one.tobytes() == np.ascontiguousarray(want[:, :k]).tobytes()
