"""Collectives on one device: the operand comes back; more devices are refused."""

from __future__ import annotations

import numpy as np
import pytest
from ops.agree import numbers

import stablehlo_py


def program(op: str) -> str:
    return f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  %0 = {op}\n  return %0 : tensor<4xf32>\n}}"


SUM = "({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> })"
TYPES = ": (tensor<4xf32>) -> tensor<4xf32>"
ALONE, TWO = "dense<0> : tensor<1x1xi64>", "dense<[[0, 1]]> : tensor<1x2xi64>"
OVER_GROUPS = {
    "all_reduce": f'"stablehlo.all_reduce"(%x) {SUM} {{replica_groups = GROUPS}} {TYPES}',
    "all_gather": f'"stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64, replica_groups = GROUPS}} {TYPES}',
    "reduce_scatter": f'"stablehlo.reduce_scatter"(%x) {SUM} '
    f"{{scatter_dimension = 0 : i64, replica_groups = GROUPS}} {TYPES}",
    "all_to_all": '"stablehlo.all_to_all"(%x) {split_dimension = 0 : i64, concat_dimension = 0 : i64, '
    f"split_count = 1 : i64, replica_groups = GROUPS}} {TYPES}",
    "collective_broadcast": f'"stablehlo.collective_broadcast"(%x) {{replica_groups = GROUPS}} {TYPES}',
}


@pytest.mark.parametrize("name", OVER_GROUPS)
def test_a_group_of_one_gives_the_operand(name: str) -> None:
    x = numbers((4,))
    (got,) = stablehlo_py.compile(program(OVER_GROUPS[name].replace("GROUPS", ALONE)))(x)
    np.testing.assert_array_equal(got, x)


def test_a_group_of_two_is_refused() -> None:
    with pytest.raises(stablehlo_py.CompileError, match="device"):
        stablehlo_py.compile(program(OVER_GROUPS["all_reduce"].replace("GROUPS", TWO)))


@pytest.mark.parametrize(("pairs", "factor"), [("dense<0> : tensor<1x2xi64>", 1.0), ("dense<> : tensor<0x2xi64>", 0.0)])
def test_collective_permute(pairs: str, factor: float) -> None:
    x = np.abs(numbers((4,)))
    op = f'"stablehlo.collective_permute"(%x) {{source_target_pairs = {pairs}}} {TYPES}'
    (got,) = stablehlo_py.compile(program(op))(x)
    np.testing.assert_array_equal(got, x * np.float32(factor))


def test_ids_are_zero() -> None:
    text = """
    func.func @main() -> (tensor<ui32>, tensor<ui32>) {
      %0 = stablehlo.replica_id : tensor<ui32>
      %1 = stablehlo.partition_id : tensor<ui32>
      return %0, %1 : tensor<ui32>, tensor<ui32>
    }"""
    assert [int(x) for x in stablehlo_py.compile(text)()] == [0, 0]
