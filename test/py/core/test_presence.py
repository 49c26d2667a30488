"""What is known of the ops in a module without looking, and what is said of passes by what they need and add."""

from __future__ import annotations

import pytest

from stablehlo_py.core import upstream
from stablehlo_py.core.legality import Legality
from stablehlo_py.core.presence import Presence
from stablehlo_py.mlir import PassManager, ir, new_context

LOOP = """
func.func @loop(%x: memref<8xf32>) {
  %low = arith.constant 0 : index
  %high = arith.constant 8 : index
  %one = arith.constant 1 : index
  scf.for %i = %low to %high step %one {
    %a = memref.load %x[%i] : memref<8xf32>
    %b = arith.addf %a, %a : f32
    memref.store %b, %x[%i] : memref<8xf32>
  }
  return
}
"""


@pytest.fixture
def loop():
    return ir.Module.parse(LOOP, new_context())


def test_anything_may_be_there_before_a_look(loop):
    ops = Presence(loop.operation)
    assert ops.may_hold(("math.",))
    assert not ops.holds(("math.",))
    assert not ops.may_hold(("math.",))
    assert ops.holds(("math.", "scf.for"))
    assert ops.holds(("scf.",))


def test_what_was_added_may_be_there_until_the_next_look(loop):
    ops = Presence(loop.operation)
    assert not ops.holds(("linalg.generic",))
    ops.change(("linalg.fill",))
    assert not ops.may_hold(("linalg.generic",))
    assert ops.may_hold(("linalg.",))
    ops.change(("linalg.",))
    assert ops.may_hold(("linalg.generic",))
    assert not ops.holds(("linalg.generic",))
    assert not ops.may_hold(("linalg.",))


def test_what_was_there_may_only_be_gone_where_nothing_was_added(loop):
    ops = Presence(loop.operation)
    assert not ops.held(("scf.for",))
    assert ops.holds(("scf.for",))
    assert ops.held(("math.exp", "scf.for"))
    assert not ops.held(("math.exp",))
    ops.change(("memref.alloca",))
    assert ops.held(("scf.for",))
    ops.change(("arith.",))
    assert not ops.held(("scf.for",))


GENERIC = """
#d = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#r = affine_map<(i, j) -> (i)>
func.func @move(%x: memref<8x4xf32>, %y: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#d, #t], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x4xf32>)
    outs(%y : memref<4x8xf32>) { ^bb0(%a: f32, %b: f32): linalg.yield %a : f32 }
  return
}
func.func @double(%x: memref<8x4xf32>, %y: memref<4x8xf32>) {
  linalg.generic {indexing_maps = [#d, #t], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x4xf32>)
    outs(%y : memref<4x8xf32>) { ^bb0(%a: f32, %b: f32): %c = arith.addf %a, %a : f32 linalg.yield %c : f32 }
  return
}
func.func @sum(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %z: memref<8xf32>) {
  linalg.generic {indexing_maps = [#d, #d, #r], iterator_types = ["parallel", "reduction"]}
    ins(%x, %y : memref<8x4xf32>, memref<8x4xf32>) outs(%z : memref<8xf32>) { ^bb0(%a: f32, %b: f32, %c: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %c, %m : f32
      linalg.yield %s : f32 }
  return
}
"""


@pytest.mark.parametrize(("name", "kind"), [("move", "generic.move"), ("double", ""), ("sum", "generic.sum")])
def test_kinds_of_generics(name, kind):
    module = ir.Module.parse(GENERIC, new_context())
    function = next(f.operation for f in module.body.operations if f"@{name}(" in str(f))
    ops = Presence(function)
    assert [wanted for wanted in ("generic.move", "generic.sum") if ops.holds((wanted,))] == [kind] * bool(kind)
    ops.change(())  # a generic may have become another by what adds no op
    assert ops.may_hold(("generic.move",))
    assert ops.holds(("generic.move",)) == (kind == "generic.move")


def test_any_op_may_have_been_added(loop):
    ops = Presence(loop.operation)
    assert not ops.holds(("math.",))
    ops.change(None)
    assert ops.may_hold(("math.",))


def test_legality_is_known_where_nothing_forbidden_may_be_there(loop):
    ops = Presence(loop.operation)
    assert ops.permitted_by(Legality(forbid=("linalg", "scf.while")))
    assert not ops.permitted_by(Legality(forbid=("scf",)))
    assert not ops.permitted_by(Legality(allow=("scf", "func")))
    ops.change(("linalg.",))
    assert ops.permitted_by(Legality(forbid=("linalg",)))  # it looks


def test_ops_that_nobody_spoke_of_are_surprises(loop):
    spoken, unspoken = Presence(loop.operation), Presence(loop.operation)
    assert not spoken.holds(("cf.",))
    assert not unspoken.holds(("cf.",))
    spoken.change(upstream.ADDS["convert-scf-to-cf"])
    with loop.context:
        PassManager.parse("builtin.module(convert-scf-to-cf)").run(loop.operation)
    assert not spoken.surprises()
    assert {"cf.br", "cf.cond_br"} <= unspoken.surprises()


@pytest.mark.parametrize("name", upstream.ONLY_WITH)
def test_passes_do_nothing_without_their_ops(name, loop):
    assert not Presence(loop.operation).holds(upstream.ONLY_WITH[name])
    before = str(loop)
    anchor = next(iter(upstream.passes()[name].anchors), "any")
    step = f"func.func({name})" if anchor == "func.func" else name
    with loop.context:
        PassManager.parse(f"builtin.module({step})").run(loop.operation)
    if name == "expand-strided-metadata":  # it folds as well, as canonicalize does behind it
        assert sorted(str(loop).split()) == sorted(before.split())
    else:
        assert str(loop) == before
