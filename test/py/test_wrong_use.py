"""Wrong use of the package, each answered by one sentence that says what is wrong and what to give."""

from __future__ import annotations

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py.cache import Cache
from stablehlo_py.errors import BadOption
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
