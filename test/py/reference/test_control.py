"""Control flow, calls, composites, and what the interpreter says when it cannot go on."""

from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from reference.judges import agrees_with_jax, numbers, run

from stablehlo_py.core.registry import evaluate
from stablehlo_py.errors import BadInput, UnsupportedOp
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference import interpret


def test_while_with_values_from_outside():
    x = numbers((3,), np.float64)
    agrees_with_jax(lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * x), (0, x))[1], x)


def test_scan():
    x = numbers((7, 3), np.float64)
    agrees_with_jax(lambda x: lax.scan(lambda c, y: (jnp.tanh(c + y), c), x[0], x), x, rtol=1e-13)


@pytest.mark.parametrize("index", (-1, 0, 1, 2, 3))
def test_case_takes_the_last_branch_for_a_number_that_is_none(index):
    text = """
      func.func @main(%i: tensor<i32>) -> tensor<i32> {
        %r = "stablehlo.case"(%i) ({
          %a = stablehlo.constant dense<10> : tensor<i32>
          stablehlo.return %a : tensor<i32>
        }, {
          %a = stablehlo.constant dense<20> : tensor<i32>
          stablehlo.return %a : tensor<i32>
        }, {
          %a = stablehlo.constant dense<30> : tensor<i32>
          stablehlo.return %a : tensor<i32>
        }) : (tensor<i32>) -> tensor<i32>
        return %r : tensor<i32>
      }"""
    assert int(run(text, np.int32(index))[0]) == {0: 10, 1: 20}.get(index, 30)


@pytest.mark.parametrize("flag", (True, False))
def test_cond_runs_one_branch(flag):
    agrees_with_jax(lambda p, x: lax.cond(p, lambda x: x + 1, lambda x: x * 2, x), np.bool_(flag), numbers((4,)))


def test_vmapped_loop():
    agrees_with_jax(jax.vmap(lambda n: lax.while_loop(lambda s: s < n, lambda s: s * 2 + 1, 0)), np.arange(9))


def test_composite_is_its_decomposition():
    text = """
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = stablehlo.composite "own.twice" %x {decomposition = @twice} : (tensor<2xf32>) -> tensor<2xf32>
        return %r : tensor<2xf32>
      }
      func.func private @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = stablehlo.add %x, %x : tensor<2xf32>
        return %r : tensor<2xf32>
      }"""
    assert run(text, np.array([1, 2], np.float32))[0].tolist() == [2, 4]


def test_tuples_and_tokens():
    text = """
      func.func @main(%x: tensor<2xf32>, %y: tensor<i32>) -> tensor<i32> {
        %t = stablehlo.create_token : !stablehlo.token
        %u = stablehlo.after_all %t, %t : !stablehlo.token
        %p = stablehlo.tuple %x, %y : tuple<tensor<2xf32>, tensor<i32>>
        %r = stablehlo.get_tuple_element %p[1] : (tuple<tensor<2xf32>, tensor<i32>>) -> tensor<i32>
        %b:2 = stablehlo.optimization_barrier %r, %x : tensor<i32>, tensor<2xf32>
        return %b#0 : tensor<i32>
      }"""
    assert int(run(text, np.zeros(2, np.float32), np.int32(5))[0]) == 5


def test_one_device():
    text = """
      func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<ui32>) {
        %r = "stablehlo.all_reduce"(%x) ({
          ^bb0(%a: tensor<f32>, %b: tensor<f32>):
            %s = stablehlo.add %a, %b : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }) {replica_groups = dense<0> : tensor<1x1xi64>} : (tensor<2xf32>) -> tensor<2xf32>
        %id = stablehlo.partition_id : tensor<ui32>
        return %r, %id : tensor<2xf32>, tensor<ui32>
      }"""
    got = run(text, np.array([1, 2], np.float32))
    assert got[0].tolist() == [1, 2] and got[1] == 0
    with pytest.raises(UnsupportedOp, match="groups of 2 devices"):
        two = text.replace("dense<0> : tensor<1x1xi64>", "dense<[[0, 1]]> : tensor<1x2xi64>")
        interpret(ir.Module.parse(two, new_context()), np.zeros(2, np.float32))


def test_unknown_custom_call_is_refused():
    text = """
      func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
        %r = stablehlo.custom_call @strange(%x) : (tensor<2xf32>) -> tensor<2xf32>
        return %r : tensor<2xf32>
      }"""
    with pytest.raises(UnsupportedOp, match="strange"):
        run(text, np.zeros(2, np.float32))


def test_undetermined_values_are_refused():
    with pytest.raises(UnsupportedOp, match="not determined"):
        run(
            "func.func @main(%a: tensor<f32>, %s: tensor<1xi64>) -> tensor<3xf32> {\n"
            "%r = stablehlo.rng %a, %a, %s, distribution = UNIFORM "
            ": (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>\nreturn %r : tensor<3xf32> }",
            np.float32(0),
            np.array([3]),
        )


IDENTITY = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"


def test_wrong_arguments():
    with pytest.raises(TypeError, match="0 arguments given, 1 wanted"):
        run(IDENTITY)
    with pytest.raises(TypeError, match=r"argument 0 is float64\[2\], tensor<2xf32> is wanted"):
        run(IDENTITY, np.zeros(2))
    with pytest.raises(TypeError, match=r"argument 0 is float32\[3\]"):
        run(IDENTITY, np.zeros(3, np.float32))


def test_no_entry():
    with pytest.raises(BadInput, match="2 public functions and no @main"):
        run(IDENTITY.replace("@main", "@a") + IDENTITY.replace("@main", "@b"), np.zeros(2, np.float32))


def test_results_are_not_views_of_arguments():
    x = np.zeros(2, np.float32)
    run(IDENTITY, x)[0][:] = 1
    assert x.tolist() == [0, 0]


REFUSED = {"infeed", "outfeed", "send", "recv"}
SPECIFICATION = """
abs add after_all all_gather all_reduce all_to_all and atan2 batch_norm_grad batch_norm_inference batch_norm_training
bitcast_convert broadcast_in_dim case cbrt ceil cholesky clamp collective_broadcast collective_permute compare complex
concatenate constant convert convolution cosine count_leading_zeros custom_call divide dot_general
dynamic_broadcast_in_dim dynamic_conv dynamic_gather dynamic_iota dynamic_pad dynamic_reshape dynamic_slice
dynamic_update_slice exponential exponential_minus_one fft floor gather get_dimension_size get_tuple_element if imag
infeed iota is_finite log log_plus_one logistic map maximum minimum multiply negate not optimization_barrier or outfeed
pad partition_id popcnt power real recv reduce reduce_precision reduce_scatter reduce_window remainder replica_id
reshape reverse rng rng_bit_generator round_nearest_afz round_nearest_even rsqrt scatter select select_and_scatter send
shift_left shift_right_arithmetic shift_right_logical sign sine slice sort sqrt subtract tan tanh transpose
triangular_solve tuple uniform_dequantize uniform_quantize while xor
"""


def test_every_op_of_the_specification_has_a_rule():
    assert {name for name in re.findall(r"\w+", SPECIFICATION) if evaluate.find(f"stablehlo.{name}") is None} == REFUSED
