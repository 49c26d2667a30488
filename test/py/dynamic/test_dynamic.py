"""Programs with symbolic dimensions: compiled for each call's shapes, kept, and clear about what does not fit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from ops.agree import numbers, same

import stablehlo_py
from stablehlo_py import BadInput, CompileError, UnsupportedOp
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.reference.interpreter import interpret
from stablehlo_py.runtime.dynamic import DynamicExecutable
from stablehlo_py.runtime.executable import Executable

ADD = """func.func @main(%a: tensor<?x3xf32>, %b: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %c = stablehlo.add %a, %b : tensor<?x3xf32>
  return %c : tensor<?x3xf32>
}"""


def dynamic(text: str) -> DynamicExecutable:
    executable = stablehlo_py.compile(text)
    assert isinstance(executable, DynamicExecutable)
    return executable


def agrees(text: str, *calls: tuple[np.ndarray, ...]) -> None:
    """For every call's shapes, the program compiled gives what the reference interpreter gives."""
    executable = dynamic(text)
    for arrays in calls:
        with new_context(), ir.Location.unknown():
            wanted = interpret(ir.Module.parse(text), *arrays)
        same(executable(*arrays), wanted, 0)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def test_each_combination_of_shapes_is_compiled_once():
    executable = dynamic(ADD)
    assert str(executable.signature) == "(float32[?,3], float32[?,3]) -> (float32[?,3])"
    for size in (2, 5, 0):
        (result,) = executable(ones(size, 3), ones(size, 3))
        assert result.shape == (size, 3) and np.all(result == 2)
    first = executable.specialized(ones(2, 3), ones(2, 3))
    assert isinstance(first, Executable)
    assert executable.specialized(ones(2, 3), ones(2, 3)) is first
    assert executable.specialized(ones(5, 3), ones(5, 3)) is not first


def test_the_last_shapes_are_shown():
    executable = dynamic(ADD)
    with pytest.raises(CompileError, match="was not called yet"):
        executable.as_text()
    executable(ones(2, 3), ones(2, 3))
    executable(ones(4, 3), ones(4, 3))
    assert "float32[4,3]" in executable.as_text()
    assert "tensor<4x3xf32>" in executable.as_text("simplify")
    assert executable.program.arguments[0].shape == (4, 3)
    assert "passes" in executable.timing or "cache" in executable.timing


def test_only_so_many_are_kept():
    executable = dynamic(ADD)
    executable.max_kept = 2
    first = executable.specialized(ones(1, 3), ones(1, 3))
    second = executable.specialized(ones(2, 3), ones(2, 3))
    assert executable.specialized(ones(1, 3), ones(1, 3)) is first
    executable(ones(3, 3), ones(3, 3))  # the least recently used, for 2 rows, goes
    assert executable.specialized(ones(1, 3), ones(1, 3)) is first
    assert executable.specialized(ones(2, 3), ones(2, 3)) is not second


def test_threads_share_what_one_compiles():
    executable = dynamic(ADD)
    sizes = [1, 2, 3, 1, 2, 3] * 3
    with ThreadPoolExecutor(6) as pool:
        made = list(pool.map(lambda n: executable.specialized(ones(n, 3), ones(n, 3)), sizes))
    assert len({id(one) for one in made}) == 3
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda n: executable(n * ones(n, 3), ones(n, 3))[0], sizes))
    for size, result in zip(sizes, results, strict=True):
        np.testing.assert_array_equal(result, np.full((size, 3), size + 1, np.float32))


@pytest.mark.parametrize(
    "arrays, message",
    [
        ((ones(2, 3),), r"1 arguments given, 2 wanted: float32\[\?,3\], float32\[\?,3\]"),
        ((ones(2, 3), ones(2, 4)), r"argument 1 .* dimension 1 is 4, not 3"),
        ((ones(2, 3), ones(2)), r"argument 1 .* 1 dimensions, not 2"),
        ((ones(2, 3).astype(int), ones(2, 3)), r"argument 0 .* convert it: array.astype\('float32'\)"),
    ],
)
def test_arguments_that_do_not_fit_the_signature(arrays: tuple[np.ndarray, ...], message: str):
    with pytest.raises(TypeError, match=message):
        dynamic(ADD)(*arrays)


def test_arguments_that_do_not_fit_each_other():
    executable = dynamic(ADD)
    with pytest.raises(BadInput, match="do not fit together") as caught:
        executable(ones(2, 3), ones(3, 3))
    assert "argument 0: float32[2,3], argument 1: float32[3,3]" in str(caught.value)
    assert executable(ones(2, 3), ones(2, 3))[0].shape == (2, 3)  # a failure leaves nothing behind


def test_values_that_decide_shapes():
    text = """func.func @main(%n: tensor<i64>, %x: tensor<?x4xf32>) -> (tensor<?xi32>, tensor<?x4xf32>) {
      %two = stablehlo.constant dense<2> : tensor<i64>
      %m = stablehlo.multiply %n, %two : tensor<i64>
      %m1 = stablehlo.reshape %m : (tensor<i64>) -> tensor<1xi64>
      %iota = stablehlo.dynamic_iota %m1, dim = 0 : (tensor<1xi64>) -> tensor<?xi32>
      %n1 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
      %four = stablehlo.constant dense<4> : tensor<1xi64>
      %shape = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %ones = stablehlo.dynamic_broadcast_in_dim %one, %shape, dims = [] : (tensor<f32>, tensor<2xi64>) -> tensor<?x4xf32>
      %sum = stablehlo.add %x, %ones : tensor<?x4xf32>
      return %iota, %sum : tensor<?xi32>, tensor<?x4xf32>
    }"""
    agrees(text, *((np.asarray(n), numbers((n, 4))) for n in (2, 3, 5)))
    with pytest.raises(BadInput, match="do not fit together") as caught:
        dynamic(text)(np.asarray(3), ones(2, 4))
    assert "argument 0: int64[] = 3, argument 1: float32[2,4]" in str(caught.value)


def test_a_static_signature_may_hide_dynamic_shapes():
    text = """func.func @main(%x: tensor<6xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> {
      %r = stablehlo.dynamic_reshape %x, %s : (tensor<6xf32>, tensor<2xi32>) -> tensor<?x?xf32>
      return %r : tensor<?x?xf32>
    }"""
    x = np.arange(6, dtype=np.float32)
    agrees(text, (x, np.array([2, 3], np.int32)), (x, np.array([6, 1], np.int32)))
    with pytest.raises(BadInput, match="do not fit together"):
        dynamic(text)(x, np.array([2, 2], np.int32))


def test_shape_arithmetic_in_floats():
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f64>
      %two = stablehlo.constant dense<2.0> : tensor<f64>
      %half = stablehlo.divide %f, %two : tensor<f64>
      %up = stablehlo.ceil %half : tensor<f64>
      %m = stablehlo.convert %up : (tensor<f64>) -> tensor<i32>
      %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_iota %m1, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      %s = stablehlo.add %r, %r : tensor<?xf32>
      return %s : tensor<?xf32>
    }"""
    agrees(text, (ones(4),), (ones(5),), (ones(1),))


def test_shape_arithmetic_with_a_body():
    text = """func.func @main(%x: tensor<?x4xf32>) -> tensor<?xf32> {
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
      %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %four = stablehlo.constant dense<4> : tensor<1xi32>
      %sizes = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %size = stablehlo.reduce(%sizes init: %one) applies stablehlo.multiply across dimensions = [0]
        : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      %flat = stablehlo.reshape %size : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_reshape %x, %flat : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    agrees(text, (numbers((3, 4)),), (numbers((1, 4)),))


def test_shapes_in_the_dialects_that_pytorch_uses():
    text = """func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x1xf32>) -> (tensor<?xf32>, tensor<?x4xf32>) {
      %c0 = arith.constant 0 : index
      %c4 = arith.constant 4 : i64
      %d = tensor.dim %x, %c0 : tensor<?x4xf32>
      %n = arith.index_cast %d : index to i64
      %m = arith.muli %n, %c4 : i64
      %flat = tensor.from_elements %m : tensor<1xi64>
      %r = stablehlo.dynamic_reshape %x, %flat : (tensor<?x4xf32>, tensor<1xi64>) -> tensor<?xf32>
      %sx = shape.shape_of %x : tensor<?x4xf32> -> tensor<2xindex>
      %sy = shape.shape_of %y : tensor<?x1xf32> -> tensor<2xindex>
      %w = shape.cstr_broadcastable %sx, %sy : tensor<2xindex>, tensor<2xindex>
      %sum = shape.assuming %w -> (tensor<?x4xf32>) {
        %s = shape.broadcast %sx, %sy : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
        %bx = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [0, 1] : (tensor<?x4xf32>, tensor<2xindex>) -> tensor<?x4xf32>
        %by = stablehlo.dynamic_broadcast_in_dim %y, %s, dims = [0, 1] : (tensor<?x1xf32>, tensor<2xindex>) -> tensor<?x4xf32>
        %a = stablehlo.add %bx, %by : tensor<?x4xf32>
        shape.assuming_yield %a : tensor<?x4xf32>
      }
      return %r, %sum : tensor<?xf32>, tensor<?x4xf32>
    }"""
    executable = dynamic(text)
    for rows, others in ((3, 3), (5, 1), (1, 2)):
        x, y = numbers((rows, 4)), numbers((others, 1), seed=1)
        flat, total = executable(x, y)
        np.testing.assert_array_equal(flat, x.ravel())
        np.testing.assert_array_equal(total, x + y)
    with pytest.raises(BadInput, match="do not fit together"):
        executable(ones(2, 4), ones(3, 1))


def test_ops_that_take_positions():
    text = """func.func @main(%x: tensor<?xf32>, %from: tensor<1xi64>, %to: tensor<1xi64>) -> (tensor<?xf32>, tensor<?xf32>) {
      %step = stablehlo.constant dense<2> : tensor<1xi64>
      %part = stablehlo.real_dynamic_slice %x, %from, %to, %step
        : (tensor<?xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %padded = stablehlo.dynamic_pad %part, %zero, %from, %to, %step
        : (tensor<?xf32>, tensor<f32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<?xf32>
      return %part, %padded : tensor<?xf32>, tensor<?xf32>
    }"""
    x, at = numbers((7,)), lambda n: np.array([n], np.int64)
    agrees(text, (x, at(0), at(7)), (x, at(2), at(3)), (x[:5], at(1), at(4)))
    for wrong in (-1, 9):
        with pytest.raises(BadInput, match="do not fit together"):
            dynamic(text)(x, at(wrong), at(7))


def test_a_dimension_that_is_set():
    text = """func.func @main(%x: tensor<5xf32>, %n: tensor<i32>) -> tensor<?xf32> {
      %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<5>>
      %s = stablehlo.add %r, %r : (tensor<?xf32, #stablehlo.bounds<5>>, tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<?xf32>
      return %s : tensor<?xf32>
    }"""
    x = np.arange(5, dtype=np.float32)
    assert dynamic(text)(x, np.int32(3))[0].tolist() == [0, 2, 4]
    with pytest.raises(BadInput, match="dimension 0 of 5 elements is set to 7"):
        dynamic(text)(x, np.int32(7))


def test_loops_keep_their_shapes():
    text = """func.func @main(%x: tensor<?xf32>, %n: tensor<i32>) -> tensor<?xf32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<?xf32>
        cond {
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          %j = stablehlo.add %i, %one : tensor<i32>
          %z = stablehlo.BODY : tensor<?xf32>
          stablehlo.return %j, %z : tensor<i32>, tensor<?xf32>
        }
      return %r#1 : tensor<?xf32>
    }"""
    agrees(text.replace("BODY", "add %y, %y"), (ones(3), np.int32(2)), (ones(4), np.int32(0)))
    grows = text.replace(
        "BODY : tensor<?xf32>", "concatenate %y, %y, dim = 0 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>"
    )
    with pytest.raises(BadInput):
        dynamic(grows)(ones(3), np.int32(2))


def test_shapes_that_only_a_run_knows_are_refused():
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
      %n = stablehlo.convert %s : (tensor<f32>) -> tensor<i32>
      %m = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.dynamic_iota %m, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    with pytest.raises(BadInput, match=r"shapes depend on the elements of argument 0, tensor<\?xf32>"):
        stablehlo_py.compile(text)


def test_sizes_that_no_tensor_has():
    text = """func.func @main(%n: tensor<1xi64>) -> tensor<?xf32> {
      %r = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>
      return %r : tensor<?xf32>
    }"""
    executable = dynamic(text)
    for size in (-2, 2**62):
        with pytest.raises(BadInput):
            executable(np.array([size], np.int64))
    assert executable(np.array([0], np.int64))[0].shape == (0,)


def test_quantized_programs_too():
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?x!quant.uniform<i8:f32, 0.5:3>> {
      %q = stablehlo.uniform_quantize %x : (tensor<?xf32>) -> tensor<?x!quant.uniform<i8:f32, 0.5:3>>
      return %q : tensor<?x!quant.uniform<i8:f32, 0.5:3>>
    }"""
    executable = dynamic(text)
    assert str(executable.signature) == "(float32[?]) -> (int8[?])"
    assert executable(ones(3))[0].tolist() == [5, 5, 5]


def test_strides_for_dimensions_that_are_not_there():
    text = """func.func @main(%x: tensor<1x?x2xf32>, %k: tensor<2x2x3xf32>, %p: tensor<1x2xi32>) -> tensor<1x?x3xf32> {
      %r = "stablehlo.dynamic_conv"(%x, %k, %p) {batch_group_count = 1 : i64, feature_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>, window_strides = array<i64: 2, STRIDE>}
        : (tensor<1x?x2xf32>, tensor<2x2x3xf32>, tensor<1x2xi32>) -> tensor<1x?x3xf32>
      return %r : tensor<1x?x3xf32>
    }"""
    arrays = (ones(1, 5, 2), ones(2, 2, 3), np.array([[1, 0]], np.int32))
    assert dynamic(text.replace("STRIDE", "2"))(*arrays)[0].ravel().tolist() == [2] * 3 + [4] * 6
    with pytest.raises(BadInput, match="window-strides"):
        dynamic(text.replace("STRIDE", "3"))(*arrays)


SCALARS = """func.func @main(%x: tensor<3xf32>, %i: tensor<i64>) -> (tensor<f32>, tensor<2xi64>, tensor<i32>) {
  %one = arith.constant 1 : index
  %e = tensor.extract %x[%one] : tensor<3xf32>
  %square = arith.mulf %e, %e : f32
  %r = tensor.from_elements %square : tensor<f32>
  %j = tensor.extract %i[] : tensor<i64>
  %zero = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %negative = arith.cmpi slt, %j, %zero : i64
  %wrapped = arith.addi %j, %three : i64
  %s = arith.select %negative, %wrapped, %j : i64
  %v = tensor.from_elements %s, %j : tensor<2xi64>
  %b = arith.EXTEND %negative : i1 to i32
  %w = tensor.from_elements %b : tensor<i32>
  return %r, %v, %w : tensor<f32>, tensor<2xi64>, tensor<i32>
}"""


def test_scalars_of_other_dialects():
    executable = stablehlo_py.compile(SCALARS.replace("EXTEND", "extui"))
    x = np.array([1, 2, 3], np.float32)
    for index, wrapped in ((-1, 2), (2, 2)):
        square, pair, negative = executable(x, np.int64(index))
        assert (square.item(), pair.tolist(), negative.item()) == (4, [wrapped, index], int(index < 0))


def test_scalars_that_mean_something_else_are_refused():
    with pytest.raises(UnsupportedOp, match=r"arith\.extsi"):  # of a true i1 it is -1
        stablehlo_py.compile(SCALARS.replace("EXTEND", "extsi"))
