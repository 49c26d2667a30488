"""Costs of ops and programs, against counts made by hand."""

from __future__ import annotations

import stablehlo_py.ops  # noqa: F401 - registers the rules
from stablehlo_py.analysis.cost import program_cost
from stablehlo_py.mlir import ir, new_context


def cost(text: str):  # type: ignore[no-untyped-def] - a ProgramCost
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return program_cost(next(iter(module.body.operations)).operation)


def test_elementwise_and_dot() -> None:
    found = cost("""func.func @main(%a: tensor<4x5xf32>, %b: tensor<5x6xf32>) -> tensor<4x6xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
      %1 = stablehlo.tanh %0 : tensor<4x6xf32>
      %2 = stablehlo.add %1, %1 : tensor<4x6xf32>
      return %2 : tensor<4x6xf32>
    }""")
    assert found.total.flops == 2 * 4 * 5 * 6 + 24
    assert found.total.transcendentals == 24
    assert found.by_op["stablehlo.dot_general"].bytes == 4 * (20 + 30 + 24)
    assert next(iter(found.by_op)) == "stablehlo.dot_general"


def test_convolution_counts_its_window() -> None:
    found = cost("""func.func @main(%x: tensor<1x8x8x3xf32>, %w: tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
      return %0 : tensor<1x6x6x16xf32>
    }""")
    assert found.total.flops == 2 * 6 * 6 * 16 * 3 * 3 * 3


def test_flops_by_what_they_are_done_in() -> None:
    found = cost("""func.func @main(%a: tensor<4x5xbf16>, %b: tensor<5x6xbf16>, %c: tensor<7xf64>)
        -> (tensor<4x6xbf16>, tensor<7xf64>) {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x5xbf16>, tensor<5x6xbf16>) -> tensor<4x6xbf16>
      %1 = stablehlo.add %0, %0 : tensor<4x6xbf16>
      %2 = stablehlo.multiply %c, %c : tensor<7xf64>
      return %1, %2 : tensor<4x6xbf16>, tensor<7xf64>
    }""")
    assert found.flops_by_element == {"bf16": 2 * 4 * 5 * 6, "f32": 24, "f64": 7}


LOOP = """func.func @main(%x: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %bound = stablehlo.constant dense<10> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<8xf32>
  cond {{
    %p = stablehlo.compare LT, %i, {bound} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %step = stablehlo.constant dense<3> : tensor<i32>
    %next = stablehlo.add %i, %step : tensor<i32>
    %d = stablehlo.multiply %c, %c : tensor<8xf32>
    stablehlo.return %next, %d : tensor<i32>, tensor<8xf32>
  }}
  return %r#1 : tensor<8xf32>
}}"""


def test_a_loop_of_known_length_counts_every_step() -> None:
    found = cost(LOOP.format(bound="%bound"))
    assert found.by_op["stablehlo.multiply"].flops == 8 * 4  # 0, 3, 6, 9
    assert found.unknown_loops == 0


def test_a_loop_of_unknown_length_says_so() -> None:
    found = cost(LOOP.format(bound="%n"))
    assert found.by_op["stablehlo.multiply"].flops == 8
    assert found.unknown_loops == 1


def test_the_costliest_branch_counts() -> None:
    found = cost("""func.func @main(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.add %x, %x : tensor<8xf32>
        stablehlo.return %1 : tensor<8xf32>
      }, {
        %2 = stablehlo.tanh %x : tensor<8xf32>
        %3 = stablehlo.add %2, %2 : tensor<8xf32>
        stablehlo.return %3 : tensor<8xf32>
      }) : (tensor<i1>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }""")
    assert (found.total.flops, found.total.transcendentals) == (8, 8)
