"""exp of a number less the largest of its row takes fewer operations and gives the bits of any exp."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from stablehlo_py import Options, compile
from stablehlo_py.targets.machine_code import CodegenOptions

HEAD = """
func.func @main(%x: tensor<64x{n}x{ty}>, %y: tensor<64x{n}x{ty}>) -> (tensor<64x{n}x{ty}>, tensor<64x{n}x{ty}>) {{
  %least = stablehlo.constant dense<{least}> : tensor<{ty}>
"""
TAIL = """
  %m = stablehlo.reduce(%v init: %least) applies stablehlo.{op} across dimensions = [1]
    : (tensor<64x{n}x{ty}>, tensor<{ty}>) -> tensor<64x{ty}>
  %m2 = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<64x{ty}>) -> tensor<64x{n}x{ty}>
  %d = stablehlo.subtract {minuend}, %m2 : tensor<64x{n}x{ty}>
  %e = stablehlo.exponential %d : tensor<64x{n}x{ty}>
  return %e, %d : tensor<64x{n}x{ty}>, tensor<64x{n}x{ty}>
}}
"""
COMPUTED = "  %v = stablehlo.multiply %x, %y : tensor<64x{n}x{ty}>\n"
EXP = """
func.func @main(%x: tensor<64x{n}x{ty}>) -> tensor<64x{n}x{ty}> {{
  %e = stablehlo.exponential %x : tensor<64x{n}x{ty}>
  return %e : tensor<64x{n}x{ty}>
}}
"""
TYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16}
LEAST = {"f32": "0xFF800000", "f64": "0xFFF0000000000000", "bf16": "0xFF80"}
# without AVX-512, which has an instruction for the product with a power of two
AVX2 = Options(codegen=CodegenOptions(cpu="x86-64-v3"))


def program(ty: str, op: str = "maximum", computed: str = "", minuend: str = "%v") -> str:
    text = HEAD + computed + TAIL
    text = text if computed else text.replace("%v", "%x")
    values = {"n": 256, "ty": ty, "op": op, "least": LEAST[ty]}
    return text.format(minuend=minuend if computed or minuend != "%v" else "%x", **values)


def shifts(text: str) -> int:
    """Shifts of vectors: one makes one power of two, three make two."""
    code = compile(text, cache=False, options=AVX2).as_text("llvm-ir")
    return len(re.findall(r"= shl <", code)) + len(re.findall(r"= lshr <", code))


@pytest.mark.parametrize("options", [AVX2, None], ids=["avx2", "host"])
@pytest.mark.parametrize("computed", ["", COMPUTED])
@pytest.mark.parametrize("ty", TYPES)
def test_bits(ty: str, computed: str, options: Options | None) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal((64, 256)) * 60).astype(TYPES[ty]), np.ones((64, 256), TYPES[ty])
    x[1, 3], x[2], x[3, 3], x[4, :9] = np.nan, -np.inf, np.inf, -np.inf
    e, d = compile(program(ty, computed=computed), cache=False, options=options)(x, y)
    (wanted,) = compile(EXP.format(n=256, ty=ty), cache=False, options=AVX2)(d)
    np.testing.assert_array_equal(e.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("ty", ["f32", "f64"])
def test_fewer_operations(ty: str) -> None:
    assert shifts(program(ty)) < shifts(program(ty, op="minimum"))
    assert shifts(program(ty, computed=COMPUTED)) < shifts(program(ty, op="minimum", computed=COMPUTED))


def test_not_of_another_row_or_operand() -> None:
    assert shifts(program("f32", minuend="%y")) == shifts(program("f32", op="minimum", minuend="%y"))
