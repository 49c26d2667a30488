"""What is said about devices goes; programs that need several are refused."""

from __future__ import annotations

import pytest

from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reading import read_module
from stablehlo_py.reading.shardy import to_generic


@pytest.fixture(scope="module")
def context() -> ir.Context:
    return new_context()


def body(text: str, context: ir.Context) -> str:
    return str(read_module(text, context))


def test_shardings_of_a_mesh_of_eight_go(context):
    text = """module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=8]> {stablehlo.mesh = {axes = []}}
  func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>, mhlo.sharding = "{replicated}"})
      -> (tensor<8xf32> {jax.result_info = "y", sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32> loc("here")
    %1 = stablehlo.add %0, %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<8xf32>
    sdy.sharding_group %1 group_id=0 : tensor<8xf32>
    %2 = sdy.reshard %1 <@mesh, [{}]> : tensor<8xf32>
    %3 = sdy.all_gather [{"x"}] %2 out_sharding=<@mesh, [{}]> : tensor<8xf32>
    %4 = sdy.constant dense<1.0> : tensor<8xf32>
    %5 = stablehlo.multiply %3, %4 : tensor<8xf32>
    return %5 : tensor<8xf32>
  }
}
"""
    plain = body(text, context)
    assert "sdy" not in plain
    assert "mhlo.sharding" not in plain
    assert 'jax.result_info = "y"' in plain
    assert [line.split(" = ")[-1].split()[0] for line in plain.splitlines() if " = stablehlo" in line] == [
        "stablehlo.add",
        "stablehlo.constant",
        "stablehlo.multiply",
    ]


NAMED = """func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.named_computation<"f">(%arg0) in_shardings=[<@m, [{}]>] out_shardings=[<@m, [{}]>] (%arg1: tensor<8xf32>) {
    %1 = sdy.data_flow_edge %arg1 : tensor<8xf32>
    %2 = stablehlo.abs %1 : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_named_computations_are_inlined(context):
    plain = body(NAMED, context)
    assert "stablehlo.abs %arg0" in plain
    assert "sdy" not in plain


MANUAL = """module {{
  sdy.mesh @mesh = <["a"={devices}]>
  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = sdy.manual_computation(%arg0)
        in_shardings=[<@mesh, [{{"a"}}]>] out_shardings=[<@mesh, [{{"a"}}]>] manual_axes={{"a"}}
        (%arg1: tensor<{shard}xf32>) {{
      %1 = stablehlo.abs %arg1 : tensor<{shard}xf32>
      sdy.return %1 : tensor<{shard}xf32>
    }} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""


def test_manual_computation_on_one_device_is_inlined_on_two_refused(context):
    assert "stablehlo.abs %arg0" in body(MANUAL.format(devices=1, shard=4), context)
    with pytest.raises(BadInput, match="shards of several devices"):
        read_module(MANUAL.format(devices=2, shard=2), context)


def test_markers_are_their_operand(context):
    text = """func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2]<=[2]}"} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""
    assert "custom_call" not in body(text, context)
    with pytest.raises(BadInput, match="@SPMDFullToShardShape works on shards"):
        read_module(
            text.replace(
                "(tensor<4xf32>) -> tensor<4xf32>\n  return %1 : tensor<4xf32>",
                "(tensor<4xf32>) -> tensor<2xf32>\n  return %1 : tensor<2xf32>",
            ).replace("-> tensor<4xf32> {", "-> tensor<2xf32> {", 1),
            context,
        )


REDUCE = """module attributes {{mhlo.num_replicas = {replicas} : i32}} {{
  func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {{
    %0 = "stablehlo.all_reduce"(%arg0) <{{replica_groups = dense<{groups}> : tensor<1x{size}xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }}) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""


def test_collectives_and_replicas(context):
    assert "all_reduce" in body(REDUCE.format(replicas=1, groups="0", size=1), context)
    with pytest.raises(BadInput, match="all_reduce joins 2 devices") as error:
        read_module(REDUCE.format(replicas=1, groups="[[0, 1]]", size=2), context)
    assert error.value.where == "<text>:3:10"
    with pytest.raises(BadInput, match="runs on 2 replicas"):
        read_module(REDUCE.format(replicas=2, groups="[[0, 1]]", size=2), context)


def test_lines_stay_where_they_are():
    assert to_generic(NAMED, "x").count("\n") == NAMED.count("\n")


def test_strings_comments_and_attributes_are_left_alone():
    text = '// sdy.mesh @m\nfunc.func @f() attributes {sdy.x = "sdy.mesh @m", y = #sdy.mesh<[]>} {\n  return\n}\n'
    assert to_generic(text, "x") == text


def test_shardy_text_that_is_damaged(context):
    with pytest.raises(BadInput, match=r"sdy\.reshard is not written as Shardy prints it") as error:
        read_module(
            "func.func @f(%a: tensor<f32>) {\n  %0 = sdy.reshard %a <@m, [ : tensor<f32>\n  return\n}\n", context
        )
    assert error.value.where == "<text>:2:8"


def test_computations_nested_too_deep_for_the_rewriter(context):
    text = 'sdy.named_computation<"f">() () {\n' * 600 + "}" * 600
    with pytest.raises(BadInput, match=r"sdy\.named_computation is not written"):
        read_module("func.func @f() {\n" + text + "\n}\n", context)
