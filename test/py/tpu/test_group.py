"""Groups of the vector unit: what belongs to one, whatever happened to the ops before."""

from __future__ import annotations

import pytest

from stablehlo_py.dialects import mxu
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.targets.tpu.constants import number_of
from stablehlo_py.targets.tpu.planning.group import find_group

TEXT = """
func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %a = stablehlo.add %x, %y : tensor<8x16xf32>
  %b = stablehlo.multiply %a, %a : tensor<8x16xf32>
  %c = stablehlo.negate %b : tensor<8x16xf32>
  return %c : tensor<8x16xf32>
}"""


@pytest.fixture
def operations():
    with new_context() as context, ir.Location.unknown():
        mxu.load(context)
        module = ir.Module.parse(TEXT)
        yield [view.operation for view in module.body.operations[0].regions[0].blocks[0].operations]


def names(group) -> list[str]:
    return [op.name.partition(".")[2] for op in group.members]


def test_what_only_a_group_uses_belongs_to_it(operations):
    add, multiply, negate, _ = operations
    place = {op.results[0]: i for i, op in enumerate([add, multiply, negate])}
    assert names(find_group(negate, set(), place)) == ["add", "multiply", "negate"]
    assert names(find_group(negate, {multiply.results[0]}, place)) == ["negate"]


def test_ops_that_changed_are_still_known(operations):
    """The hash of an op is that of its content: a set of ops would not find those that were rewritten since."""
    add, multiply, negate, _ = operations
    place = {op.results[0]: i for i, op in enumerate([add, multiply, negate])}
    taken = {add.results[0]}
    before = [hash(op) for op in (add, multiply)]
    add.operands[0] = add.operands[1]
    multiply.attributes["note"] = ir.UnitAttr.get()
    assert [hash(op) for op in (add, multiply)] != before
    assert names(find_group(negate, taken, place)) == ["multiply", "negate"]


@pytest.mark.parametrize(
    "line, number",
    [
        ("%r = stablehlo.constant dense<2> : tensor<4xi32>", 2.0),
        ("%r = stablehlo.constant dense<[1, 2]> : tensor<2xi32>", None),
        (
            "%c = stablehlo.constant dense<true> : tensor<i1>  %r = stablehlo.convert %c : (tensor<i1>) -> tensor<bf16>",
            1.0,
        ),
        (
            "%c = stablehlo.constant dense<0.1> : tensor<f32>  %r = stablehlo.convert %c : (tensor<f32>) -> tensor<bf16>",
            0.10009765625,
        ),
        (
            "%c = stablehlo.constant dense<2.5> : tensor<f32>  %r = stablehlo.convert %c : (tensor<f32>) -> tensor<i32>",
            None,
        ),
        (
            "%c = stablehlo.constant dense<3> : tensor<i32>  %r = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>",
            None,
        ),
        (
            "%c = stablehlo.constant dense<2.5> : tensor<f32>  "
            "%r = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<3xf32>",
            2.5,
        ),
    ],
)
def test_the_number_that_a_value_is(line, number):
    with new_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @main() {{ {line}  return }}")
        *_, last, _ = module.body.operations[0].regions[0].blocks[0].operations
        assert number_of(last.operation.results[0]) == number
