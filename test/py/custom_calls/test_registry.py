"""The registry: functions of the user, in Python and C, from compilation to results."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from stablehlo_py import Options, UnsupportedOp, compile, register_custom_call
from stablehlo_py.cache import Cache
from stablehlo_py.custom_calls import CustomCall, find, registered_names, unregister_custom_call
from stablehlo_py.custom_calls.host import run_on_arrays
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reading import read_module
from stablehlo_py.reference.interpreter import Interpreter
from stablehlo_py.runtime.host import HostCallError
from stablehlo_py.runtime.program import ArrayType, Host, Program, walk

SCALED = """
func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.add %x, %y : tensor<3xf32>
  %1 = stablehlo.custom_call @test.scaled(%0) {api_version = 4 : i32, backend_config = {factor = 2.5 : f32}}
    : (tensor<3xf32>) -> tensor<3xf32>
  %2 = stablehlo.negate %1 : tensor<3xf32>
  return %2 : tensor<3xf32>
}
"""
X, Y = np.float32([1, 2, 3]), np.float32([4, 5, 6])


@pytest.fixture
def scaled():
    """@test.scaled, registered for one test; the list collects what it was called with."""
    calls = []

    @register_custom_call("test.scaled")
    def function(inputs, attributes, results):
        calls.append((attributes, results))
        return inputs[0] * np.float32(attributes["factor"])

    yield calls
    unregister_custom_call("test.scaled")


def run(text: str, *arguments: np.ndarray, executor: str = "native") -> tuple[np.ndarray, ...]:
    return compile(text, cache=False, options=Options(executor=executor))(*arguments)


@pytest.mark.parametrize("executor", ["native", "python"])
def test_a_python_function_between_kernels(scaled, executor):
    (result,) = run(SCALED, X, Y, executor=executor)
    np.testing.assert_array_equal(result, -(X + Y) * np.float32(2.5))
    assert scaled == [({"factor": 2.5}, (ArrayType((3,), "float32"),))]


def test_the_reference_calls_the_same_function(scaled):
    with new_context() as context, ir.Location.unknown():
        (result,) = Interpreter(read_module(SCALED, context))(X, Y)
    np.testing.assert_array_equal(result, -(X + Y) * np.float32(2.5))
    assert len(scaled) == 1


def test_unregistered_names_are_refused_before_lowering():
    with pytest.raises(UnsupportedOp) as caught:
        compile(SCALED, cache=False)
    assert caught.value.op == "custom_call @test.scaled"
    assert "no function is registered" in str(caught.value)
    assert "register_custom_call('test.scaled'" in caught.value.hint
    assert ":4:" in caught.value.where


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cusolver_getrf_ffi", "GPU"),
        ("hipsolver_potrf_ffi", "GPU"),
        ("tpu_custom_call", "TPU"),
        ("xla_ffi_python_cpu_callback", "Python function of the process"),
    ],
)
def test_why_a_name_is_not_known(name, reason):
    with pytest.raises(UnsupportedOp, match=reason):
        find(name)


def test_a_name_has_one_function_unless_it_is_replaced(scaled):
    with pytest.raises(ValueError, match="registered already"):
        register_custom_call("test.scaled", lambda inputs, attributes, results: inputs[0])
    register_custom_call("test.scaled", lambda inputs, attributes, results: inputs[0], replace=True)
    np.testing.assert_array_equal(run(SCALED, X, Y)[0], -(X + Y))
    assert "test.scaled" in registered_names()


def test_only_functions_can_be_registered():
    with pytest.raises(TypeError, match="str"):
        register_custom_call("test.text", "not a function")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.zeros(4, np.float32), r"float32\[4\] as result 0, float32\[3\] is wanted"),
        (np.zeros(3), r"float64\[3\] as result 0"),
        ((X, X), "returned 2 arrays, 1 are wanted"),
    ],
)
def test_results_of_another_type_stop_the_program(scaled, returned, message):
    register_custom_call("test.scaled", lambda inputs, attributes, results: returned, replace=True)
    with pytest.raises(HostCallError, match=message) as caught:
        run(SCALED, X, Y)
    assert "custom_call @test.scaled" in str(caught.value)


def test_what_the_function_raises_is_the_cause(scaled):
    def fails(inputs, attributes, results):
        raise ZeroDivisionError("no")

    register_custom_call("test.scaled", fails, replace=True)
    program = compile(SCALED, cache=False)
    with pytest.raises(HostCallError, match="no") as caught:
        program(X, Y)
    assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)


def test_inputs_are_read_only(scaled):
    def writes(inputs, attributes, results):
        inputs[0][0] = 7
        return inputs[0]

    register_custom_call("test.scaled", writes, replace=True)
    with pytest.raises(HostCallError, match="read-only"):
        run(SCALED, X, Y)


def test_a_signature_is_asked_when_the_program_is_compiled(scaled):
    register_custom_call(
        "test.scaled",
        lambda inputs, attributes, results: inputs[0],
        signature=lambda call: "it takes matrices" if len(call.operands[0].shape) != 2 else None,
        replace=True,
    )
    with pytest.raises(UnsupportedOp, match="it takes matrices"):
        compile(SCALED, cache=False)


def test_a_stored_program_finds_its_function_again(scaled, tmp_path):
    cache = Cache(tmp_path)
    first = compile(SCALED, cache=cache)(X, Y)
    found = compile(SCALED, cache=cache)
    assert "cache" in found.timing
    np.testing.assert_array_equal(found(X, Y)[0], first[0])
    stored = Program.from_bytes(found.program.to_bytes())
    assert CustomCall.from_json(stored.host_calls[0]).attributes == {"factor": 2.5}
    unregister_custom_call("test.scaled")
    with pytest.raises(UnsupportedOp, match=r"test\.scaled"):
        compile(SCALED, cache=cache)


def test_attributes_survive_storage():
    attributes = {
        "flag": True,
        "size": -3,
        "text": "x",
        "raw": b"\xff\x00",
        "list": [1, "a", {"b": 2.5}],
        "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    }
    call = CustomCall("f", attributes, (ArrayType((2,), "bfloat16"),), (), ((0,),), (), ((0, 0),), "here")
    back = CustomCall.from_json(call.to_json())
    np.testing.assert_array_equal(back.attributes["array"], attributes["array"])
    assert back.attributes["array"].dtype == np.int16
    assert {k: v for k, v in back.attributes.items() if k != "array"} == {
        k: v for k, v in attributes.items() if k != "array"
    }
    assert (back.operands, back.operand_layouts, back.aliases, back.where) == (
        call.operands,
        call.operand_layouts,
        call.aliases,
        call.where,
    )


def test_inside_loops_and_branches(scaled):
    text = """
    func.func @main(%x: tensor<3xf32>, %n: tensor<i32>, %p: tensor<i1>) -> tensor<3xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %0:2 = stablehlo.while(%i = %zero, %v = %x) : tensor<i32>, tensor<3xf32> cond {
        %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %i, %one : tensor<i32>
        %2 = stablehlo.custom_call @test.scaled(%v) {api_version = 4 : i32, backend_config = {factor = 2.0 : f32}}
          : (tensor<3xf32>) -> tensor<3xf32>
        stablehlo.return %1, %2 : tensor<i32>, tensor<3xf32>
      }
      %3 = "stablehlo.if"(%p) ({
        %4 = stablehlo.custom_call @test.scaled(%0#1) {api_version = 4 : i32, backend_config = {factor = 10.0 : f32}}
          : (tensor<3xf32>) -> tensor<3xf32>
        stablehlo.return %4 : tensor<3xf32>
      }, {
        stablehlo.return %0#1 : tensor<3xf32>
      }) : (tensor<i1>) -> tensor<3xf32>
      return %3 : tensor<3xf32>
    }"""
    program = compile(text, cache=False)
    for steps, chosen, factor in ((0, False, 1), (3, False, 8), (3, True, 80)):
        (result,) = program(X, np.int32(steps), np.bool_(chosen))
        np.testing.assert_array_equal(result, X * np.float32(factor))


UNUSED = """
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {{
  %0 = stablehlo.custom_call @test.scaled(%x) {{has_side_effect = {effect}, api_version = 4 : i32,
    backend_config = {{factor = 2.0 : f32}}}} : (tensor<3xf32>) -> tensor<3xf32>
  return %x : tensor<3xf32>
}}
"""


@pytest.mark.parametrize("effect", [True, False])
def test_a_call_that_nothing_uses_stays_for_its_effect(scaled, effect):
    program = compile(UNUSED.format(effect=str(effect).lower()), cache=False)
    assert sum(isinstance(command, Host) for command in walk(program.program.commands)) == effect
    program(X)
    assert len(scaled) == effect


def test_equal_calls_with_effects_both_run_in_order():
    seen = []
    register_custom_call("test.log", lambda inputs, attributes, results: seen.append(inputs[0].item()), replace=True)
    text = """
    func.func @main(%x: tensor<i32>) -> tensor<i32> {
      stablehlo.custom_call @test.log(%x) {has_side_effect = true} : (tensor<i32>) -> ()
      %0 = stablehlo.add %x, %x : tensor<i32>
      stablehlo.custom_call @test.log(%0) {has_side_effect = true} : (tensor<i32>) -> ()
      stablehlo.custom_call @test.log(%x) {has_side_effect = true} : (tensor<i32>) -> ()
      return %0 : tensor<i32>
    }"""
    run(text, np.int32(3))
    unregister_custom_call("test.log")
    assert seen == [3, 6, 3]


# --- functions in C

BUFFERS = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p))


def floats(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,))


@pytest.mark.parametrize("form", ["function", "address"])
def test_a_c_function_gets_the_layouts_that_the_call_asks_for(form):
    """A column-major operand is read, a column-major result written."""
    seen = []

    @BUFFERS
    def function(buffers):
        seen.append(floats(buffers[0], 6).copy())
        floats(buffers[1], 6)[:] = floats(buffers[0], 6) * 2

    address = ctypes.cast(function, ctypes.c_void_p).value
    register_custom_call("test.c", function if form == "function" else address, replace=True)
    text = """
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = stablehlo.custom_call @test.c(%x) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
        result_layouts = [dense<[0, 1]> : tensor<2xindex>]} : (tensor<2x3xf32>) -> tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    (result,) = run(text, x)
    unregister_custom_call("test.c")
    np.testing.assert_array_equal(seen, [x.ravel(order="F")])
    np.testing.assert_array_equal(result, 2 * x)


def test_a_c_function_works_in_place_where_the_call_says_so():
    """The aliased result starts with the operand's contents; the program's own operand does not change."""

    @BUFFERS
    def adds_one(buffers):
        assert buffers[0] == buffers[1]
        floats(buffers[1], 3)[:] += 1

    register_custom_call("test.c", adds_one, replace=True)
    text = """
    func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
      %y = stablehlo.negate %x : tensor<3xf32>
      %0 = stablehlo.custom_call @test.c(%y) {output_operand_aliases = [#stablehlo.output_operand_alias<
        output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<3xf32>) -> tensor<3xf32>
      return %0, %y : tensor<3xf32>, tensor<3xf32>
    }"""
    result, operand = run(text, X)
    unregister_custom_call("test.c")
    np.testing.assert_array_equal(result, 1 - X)
    np.testing.assert_array_equal(operand, -X)


# --- what is registered from the start


def test_a_shape_assertion_says_what_does_not_hold():
    call = CustomCall("shape_assertion", {"error_message": "b must be even, not {0}"}, where="here")
    assert run_on_arrays(call, [np.bool_(True), np.int32(4)]) == ()
    with pytest.raises(ValueError, match="b must be even, not 5"):
        run_on_arrays(call, [np.bool_(False), np.int32(5)])


def test_comparisons_of_test_programs():
    text = """
    func.func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) -> tensor<i1> {
      stablehlo.custom_call @check.expect_almost_eq(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> ()
      %0 = stablehlo.custom_call @check.eq(%x, %y) : (tensor<2xf32>, tensor<2xf32>) -> tensor<i1>
      return %0 : tensor<i1>
    }"""
    program = compile(text, cache=False)
    one = np.float32([1, np.inf])
    assert program(one, one) == (True,)
    assert program(one, one * np.float32(1.0001)) == (False,)
    with pytest.raises(HostCallError, match="expect_almost_eq"):
        program(one, one + 1)


def test_comparisons_are_those_of_stablehlo():
    def holds(name: str, actual: np.ndarray, expected: np.ndarray, **attributes: object) -> bool:
        ty = ArrayType(actual.shape, actual.dtype.name)
        call = CustomCall(name, attributes, (ty, ty), (ArrayType((), "bool"),))
        return bool(run_on_arrays(call, [actual, expected])[0])

    tiny, nan = np.float32([1e-5]), np.float32([np.nan])
    assert holds("check.expect_eq", np.float32([0.0]), np.float32([-0.0]))
    assert not holds("check.expect_eq", nan, nan)
    assert holds("check.expect_almost_eq", nan, nan)
    assert holds("check.expect_almost_eq", tiny, 0 * tiny)
    assert not holds("check.expect_almost_eq", tiny, -tiny)  # another sign
    assert not holds("check.expect_almost_eq", np.float32([1e6]), np.float32([1e6 + 1]))  # nothing relative
    assert holds("check.expect_almost_eq", np.float32([1]), np.float32([1.5]), tolerance=0.5)
    assert not holds("check.expect_almost_eq", np.complex64([1 + 1j]), np.complex64([1 + 1.5j]))
    assert holds("check.expect_close", nan, nan)
    one = np.float32([1])
    third = one + 3 * np.spacing(one)
    assert holds("check.expect_close", one, third)
    assert not holds("check.expect_close", one, third, max_ulp_difference=2)
    assert not holds("check.expect_close", one, third, min_ulp_difference=4, max_ulp_difference=9)
    assert holds("check.expect_eq", np.int32([3]), np.int32([3]))
    assert not holds("check.eq", np.int32([3]), np.int32([4]))


def test_a_comparison_takes_two_tensors_of_one_type():
    text = """
    func.func @main(%x: tensor<2xf32>, %y: tensor<3xf32>) {
      stablehlo.custom_call @check.expect_eq(%x, %y) : (tensor<2xf32>, tensor<3xf32>) -> ()
      return
    }"""
    with pytest.raises(UnsupportedOp, match="it compares two tensors of one type"):
        compile(text, cache=False)


def test_pivots_become_a_permutation():
    text = """
    func.func @main(%p: tensor<2x3xi32>) -> tensor<2x4xi32> {
      %0 = stablehlo.custom_call @lu_pivots_to_permutation(%p) : (tensor<2x3xi32>) -> tensor<2x4xi32>
      return %0 : tensor<2x4xi32>
    }"""
    program = compile(text, cache=False)
    (result,) = program(np.int32([[1, 1, 2], [3, 2, 3]]))
    np.testing.assert_array_equal(result, [[1, 0, 2, 3], [3, 2, 0, 1]])
    with pytest.raises(HostCallError, match="pivot"):
        program(np.int32([[1, 1, 4], [0, 1, 2]]))


def test_a_window_whose_sizes_are_operands():
    text = """
    func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<1xi32>
      %two = stablehlo.constant dense<2> : tensor<1xi32>
      %none = stablehlo.constant dense<0> : tensor<1x2xi32>
      %0 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %two, %one, %one, %two, %none)
        {called_computations = [@sum]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
        tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
      return %0 : tensor<?xf32>
    }
    func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.add %x, %y : tensor<f32>
      return %0 : tensor<f32>
    }"""
    program = compile(text, cache=False)
    for count in (4, 7):
        x = np.arange(count, dtype=np.float32)
        np.testing.assert_array_equal(program(x)[0], x[:-2] + x[2:])


def test_a_tuple_is_taken_apart():
    text = """
    func.func @main(%p: tensor<2xf64>) -> tensor<2xf64> {
      %0 = stablehlo.custom_call @test.two(%p) : (tensor<2xf64>) -> tuple<tensor<i32>, tensor<2xf64>>
      %1 = stablehlo.get_tuple_element %0[1] : (tuple<tensor<i32>, tensor<2xf64>>) -> tensor<2xf64>
      return %1 : tensor<2xf64>
    }"""
    register_custom_call("test.two", lambda inputs, attributes, results: (np.int32(1), inputs[0] + 1), replace=True)
    (result,) = run(text, np.array([1.0, 2.0]))
    unregister_custom_call("test.two")
    np.testing.assert_array_equal(result, [2.0, 3.0])


def test_stages_and_the_listing_show_the_call(scaled):
    program = compile(SCALED, cache=False)
    assert "call @custom_call.test.scaled" in program.as_text("linalg")
    assert "factor" in program.as_text("linalg")
    assert "host custom_call @test.scaled(" in program.as_text()
