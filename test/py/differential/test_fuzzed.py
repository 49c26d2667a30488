"""What random programs have found, each as small as the reducer made it; and a handful of fresh ones."""

from __future__ import annotations

import io

import numpy as np
import pytest

import stablehlo_py
from stablehlo_py import reading
from stablehlo_py.core.types import element_type
from stablehlo_py.errors import BadInput
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.testing.generate import module_of, random_part
from stablehlo_py.testing.judge import judge
from stablehlo_py.testing.worker import COMPARE

ADD = (
    "({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): %s = stablehlo.add %p, %q : tensor<f32> "
    "stablehlo.return %s : tensor<f32> })"
)
COMPARE_TOTAL = (
    "({{ ^bb0(%p: tensor<{0}>, %q: tensor<{0}>): %c = stablehlo.compare LT, %p, %q, TOTALORDER : "
    "(tensor<{0}>, tensor<{0}>) -> tensor<i1> stablehlo.return %c : tensor<i1> }})"
)


def agrees(arguments: list[np.ndarray], types: list[str], result: str, body: str) -> None:
    head = ", ".join(f"%a{i}: {ty}" for i, ty in enumerate(types))
    text = f"func.func @main({head}) -> {result} {{\n  %r = {body}\n  return %r : {result}\n}}"
    assert judge(COMPARE, text, arguments) == ("ok", "")


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def test_scalar_split_into_parts():
    types = ["tensor<f32>"]
    body = "stablehlo.bitcast_convert %a0 : (tensor<f32>) -> tensor<2xf16>"
    agrees([np.array(1.5, np.float32)], types, "tensor<2xf16>", body)


def test_reduction_of_nothing():
    types = ["tensor<1x1x0x2xf32>", "tensor<f32>"]
    body = f'"stablehlo.reduce"(%a0, %a1) {ADD} {{dimensions = array<i64: 0, 2>}} : ({", ".join(types)}) -> tensor<1x2xf32>'
    agrees([floats(1, 1, 0, 2), np.array(3, np.float32)], types, "tensor<1x2xf32>", body)


def test_convolution_of_no_features():
    types = ["tensor<1x4x0xf32>", "tensor<3x0x2xf32>"]
    body = (
        "stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
        f"{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({', '.join(types)}) -> tensor<1x2x2xf32>"
    )
    agrees([floats(1, 4, 0), floats(3, 0, 2)], types, "tensor<1x2x2xf32>", body)


def test_gather_of_no_index():
    types = ["tensor<4x2xf32>", "tensor<3x0xi32>"]
    body = (
        '"stablehlo.gather"(%a0, %a1) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [], '
        f"index_vector_dim = 1>, slice_sizes = array<i64: 4, 2>}} : ({', '.join(types)}) -> tensor<3x4x2xf32>"
    )
    agrees([floats(4, 2), np.zeros((3, 0), np.int32)], types, "tensor<3x4x2xf32>", body)


@pytest.mark.parametrize("element", ["f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2FNUZ", "f8E8M0FNU", "f8E4M3FN", "f8E5M2"])
def test_total_order_of_every_byte(element):
    ty = f"tensor<256x{element}>"
    body = f'"stablehlo.sort"(%a0) {COMPARE_TOTAL.format(element)} {{dimension = 0 : i64, is_stable = true}} : ({ty}) -> {ty}'
    every = np.random.default_rng(2).permutation(256).astype(np.uint8).view(element_type(element).dtype)
    agrees([every], [ty], ty, body)


def test_overlapping_windows_are_scattered_in_the_order_of_the_indices():
    types = ["tensor<11xf32>", "tensor<1x11xui8>", "tensor<3x1x11xf32>"]
    body = (
        '"stablehlo.scatter"(%a0, %a1, %a2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], '
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}> ({ ^bb0(%p: tensor<f32>, %q: tensor<f32>): "
        f"stablehlo.return %q : tensor<f32> }}) : ({', '.join(types)}) -> tensor<11xf32>"
    )
    places = np.array([[8, 16, 13, 13, 16, 10, 13, 6, 0, 0, 6]], np.uint8)
    agrees([floats(11), places, floats(3, 1, 11)], types, "tensor<11xf32>", body)


def test_lgamma_of_infinities():
    ty = "tensor<3xf32>"
    agrees([np.array([-np.inf, np.inf, -2], np.float32)], [ty], ty, f"chlo.lgamma %a0 : {ty} -> {ty}")


def test_sign_of_infinite_complex():
    ty = "tensor<3xcomplex<f32>>"
    values = np.array([complex(np.inf, -2), complex(1, -np.inf), complex(np.nan, 1)], np.complex64)
    agrees([values], [ty], ty, f"stablehlo.sign %a0 : {ty}")


def test_logistic_of_minus_infinity():
    ty = "tensor<2xcomplex<f64>>"
    agrees([np.array([complex(-np.inf, 0.25), 1 + 2j])], [ty], ty, f"stablehlo.logistic %a0 : {ty}")


@pytest.mark.parametrize("element", ["f8E4M3B11FNUZ", "f8E4M3FNUZ", "f8E5M2", "f8E4M3FN", "f8E3M4", "f8E8M0FNU"])
@pytest.mark.parametrize("format", ["e2m1", "e4m3", "e3m0", "e5m2"])
def test_reduce_precision_of_every_byte(element, format):
    ty = f"tensor<256x{element}>"
    every = np.arange(256).astype(np.uint8).view(element_type(element).dtype)
    agrees([every], [ty], ty, f"stablehlo.reduce_precision %a0, format = {format} : {ty}")


def test_artifact_whose_name_is_not_utf_8():
    text = (
        "func.func @main() -> tensor<f32> { %0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> }"
    )
    with new_context(), ir.Location.unknown():
        buffer = io.BytesIO()
        ir.Module.parse(text.replace("@main", "@longname")).operation.write_bytecode(buffer)
    with pytest.raises(BadInput, match="UTF-8"):
        stablehlo_py.compile(buffer.getvalue().replace(b"longname", b"long\xff\xfe\xfde"))


def test_artifact_with_a_damaged_length(monkeypatch):
    """The parser asks for more memory than there is, which is an error of the artifact."""

    def parse(data: bytes, context: ir.Context) -> ir.Module:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(reading, "parse_bytecode", parse)
    with pytest.raises(BadInput, match="damaged"):
        stablehlo_py.compile(b"ML\xefR" + bytes(40))


def test_more_elements_than_memory_has_bytes():
    ty = "tensor<4294967296x4294967296x4xf32>"
    with pytest.raises(BadInput, match="larger than any memory"):
        stablehlo_py.compile(
            f"func.func @main(%x: {ty}) -> {ty} {{ %0 = stablehlo.negate %x : {ty} return %0 : {ty} }}"
        )


def test_convolution_with_a_huge_dimension_number():
    text = """func.func @main(%x: tensor<1x5x2xf32>, %w: tensor<2x1x2xf32>) -> tensor<1x5x2xf32> {
      %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[i, 9223372036854775807, o]->[b, 0, f], window = {}
        {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
        : (tensor<1x5x2xf32>, tensor<2x1x2xf32>) -> tensor<1x5x2xf32>
      return %0 : tensor<1x5x2xf32>
    }"""
    with pytest.raises(BadInput, match="crashes the MLIR parser"):
        stablehlo_py.compile(text)


@pytest.mark.parametrize("first", range(0, 24, 4))
def test_fresh_programs(first):
    case = module_of([random_part(seed, f"g{seed}_") for seed in range(first, first + 4)])
    assert judge(COMPARE, case.text, case.arrays()) == ("ok", "")
