"""Wrong use of the package, each answered by one sentence that says what is wrong and what to give."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.cache import Cache
from stablehlo_py.errors import BadOption, CompileError
from stablehlo_py.targets.machine_code import CodegenOptions

TEXT = """func.func @main(%x: tensor<{0}x3xf32>) -> tensor<{0}x3xf32> {{
  %0 = stablehlo.add %x, %x : tensor<{0}x3xf32>
  return %0 : tensor<{0}x3xf32>
}}"""


@pytest.fixture(scope="module", params=["2", "?"])
def program(request):
    return stablehlo_py.compile(TEXT.format(request.param))


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("text", "argument 0 is a(n array of)? str.*, not an array of numbers; wanted is float32"),
        (None, "argument 0 is a(n array of)? .*, not an array of numbers; wanted is float32"),
        (np.array([[None]]), "argument 0 is an array of object, not an array of numbers; wanted is float32"),
        ([[1, 2], [3]], "argument 0 is no array: setting an array element with a sequence; wanted is float32"),
        (np.ones((2, 3), ">f4"), "wanted is .* in this machine's order of bytes; convert it: array.astype..float32.."),
        (np.ones((2, 3)), "argument 0 is float64.2,3., wanted is float32.*; convert it: array.astype..float32.."),
        (np.ones((2, 4), np.float32), "argument 0 is float32.2,4., wanted is float32"),
    ],
)
def test_arguments(program, argument, said):
    with pytest.raises(TypeError, match=said):
        program(argument)


def test_the_number_of_arguments(program):
    with pytest.raises(TypeError, match="2 arguments given, 1 wanted: float32"):
        program(None, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"donate": 0}, "donate is 0\n  hint: give numbers of arguments, such as .0, 2."),
        ({"donate": ("x",)}, "donate is .'x',."),
        ({"threads": "4"}, "threads is '4'\n  hint: give a whole number"),
        ({"executor": "fast"}, "no executor 'fast'\n  hint: choose among native, python"),
        ({"codegen": "znver4"}, "codegen is 'znver4'\n  hint: give CodegenOptions"),
    ],
)
def test_options(options, said):
    with pytest.raises(BadOption, match=said):
        stablehlo_py.Options(**options)


def test_what_compile_is_given():
    text = TEXT.format("2")
    with pytest.raises(BadOption, match="LLVM's levels are 0 to 3"):
        CodegenOptions(speed=9)
    with pytest.raises(BadOption, match=r"hint: give stablehlo_py\.Options"):
        stablehlo_py.compile(text, options={"threads": 2})
    with pytest.raises(BadOption, match=r"cache is ./tmp/x.\n  hint: give True, False, or stablehlo_py\.cache\.Cache"):
        stablehlo_py.compile(text, cache="/tmp/x")


def test_a_cache_in_a_folder_by_its_name(tmp_path):
    stablehlo_py.compile(TEXT.format("2"), cache=Cache(str(tmp_path)))
    assert list(Cache(tmp_path).entries())


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            """func.func @main(%x: tensor<3xf32>, %t: !stablehlo.token) -> !stablehlo.token {
              %0 = "stablehlo.send"(%x, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
                is_host_transfer = true} : (tensor<3xf32>, !stablehlo.token) -> !stablehlo.token
              return %0 : !stablehlo.token
            }""",
            "2:20: stablehlo.send is not supported: it takes or gives !stablehlo.token, and .* tensors alone\n  hint: tokens",
        ),
        (
            """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
              %true = arith.constant true
              %0 = scf.if %true -> tensor<3xf32> {
                scf.yield %x : tensor<3xf32>
              } else {
                scf.yield %x : tensor<3xf32>
              }
              return %0 : tensor<3xf32>
            }""",
            "3:20: scf.if is not supported: it reads i1, a scalar .*\n  hint: say it by stablehlo.while, if or case",
        ),
        (
            """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
              %two = arith.constant 2.0 : f32
              %0 = tensor.empty() : tensor<3xf32>
              %1 = linalg.fill ins(%two : f32) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
              return %1 : tensor<3xf32>
            }""",
            "arith.constant is not supported: it takes or gives f32, and .* tensors",
        ),
        (
            """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
              %0 = tensor.empty() : tensor<3xf32>
              %1 = linalg.exp ins(%x : tensor<3xf32>) outs(%0 : tensor<3xf32>) -> tensor<3xf32>
              return %1 : tensor<3xf32>
            }""",
            "is not supported on target cpu: no rule lowers it",
        ),
        (
            """func.func @main(%x: memref<3xf32>) -> memref<3xf32> {
              return %x : memref<3xf32>
            }""",
            "a value of type memref<3xf32> where a tensor is needed\n  hint: a program takes",
        ),
    ],
)
def test_what_is_no_tensor(body, said):
    with pytest.raises(CompileError, match=said):
        stablehlo_py.compile(body, cache=False)
