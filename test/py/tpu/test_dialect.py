"""The mxu dialect: its text and bytecode round trips, its export, its verifiers of single ops."""

from __future__ import annotations

import io

import pytest

from stablehlo_py import resources
from stablehlo_py.dialects import mxu
from stablehlo_py.dialects.mxu_export import irdl_text, main
from stablehlo_py.mlir import ir, new_context

PRODUCT = """
func.func @f(%x: tensor<1x8x128xbf16>, %y: tensor<1x128x256xbf16>) -> tensor<1x8x256xf32> {
  %r = "mxu.contract"(%x, %y) {lhs_t = false, rhs_t = false, passes = 1 : i64}
    : (tensor<1x8x128xbf16>, tensor<1x128x256xbf16>) -> tensor<1x8x256xf32>
  return %r : tensor<1x8x256xf32>
}
func.func private @g(!mxu.ref<tensor<8x128xbf16>, "vmem", #mxu.tiled<"T(8,128)(2,1)">>)
"""


@pytest.fixture
def context():
    with new_context() as context, ir.Location.unknown():
        mxu.load(context)
        yield context


def test_the_exported_file_is_what_the_classes_say():
    assert resources.dialect_path("mxu.irdl").read_text() == irdl_text()


def test_export_writes_a_file(tmp_path):
    assert main([str(tmp_path / "mxu.mlir")]) == 0
    assert (tmp_path / "mxu.mlir").read_text() == irdl_text()


def test_export_says_how_it_is_used(capsys):
    assert main(["--what"]) == 2
    assert "mxu_export" in capsys.readouterr().err


def test_loading_twice_does_nothing(context):
    mxu.load(context)


def test_two_contexts_at_a_time(context):
    with new_context() as other, ir.Location.unknown():
        mxu.load(other)
        assert "mxu.contract" in str(ir.Module.parse(PRODUCT))


def test_text_and_bytecode_round_trip(context):
    module = ir.Module.parse(PRODUCT)
    assert str(ir.Module.parse(str(module))) == str(module)
    stream = io.BytesIO()
    module.operation.write_bytecode(stream)
    assert str(ir.Module.parse(stream.getvalue())) == str(module)


def test_a_ref_tells_what_it_holds(context):
    ty = ir.Type.parse('!mxu.ref<tensor<8x128xbf16>, "vmem", #mxu.tiled<"T(8,128)(2,1)">>')
    assert list(mxu.ref_tensor(ty).shape) == [8, 128]
    assert (mxu.ref_space(ty), mxu.ref_layout(ty)) == ("vmem", "T(8,128)(2,1)")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tensor<1x128x256xbf16>", "tensor<1x64x256xbf16>", "contracts 128 with 64 elements"),
        ("tensor<1x8x256xf32>", "tensor<1x8x128xf32>", "gives .* not"),
        ("tensor<1x8x128xbf16>", "tensor<8x128xbf16>", "rank 3"),
        ("rhs_t = false", "rhs_t = true", "contracts 128 with 256 elements"),
    ],
)
def test_contract_refuses(context, old, new, message):
    with pytest.raises(ir.MLIRError, match=message):
        ir.Module.parse(PRODUCT.replace(old, new))


@pytest.mark.parametrize(
    ("small", "large", "message"), [("8x100", "8x96", "may shrink"), ("8x100", "2x8x128", "shrink")]
)
def test_pad_refuses_to_shrink(context, small, large, message):
    text = f'func.func @f(%x: tensor<{small}xf32>) {{ %0 = "mxu.pad"(%x) : (tensor<{small}xf32>) -> tensor<{large}xf32> return }}'
    with pytest.raises(ir.MLIRError, match=message):
        ir.Module.parse(text)


def test_unpad_refuses_to_grow(context):
    text = 'func.func @f(%x: tensor<8xf32>) { %0 = "mxu.unpad"(%x) : (tensor<8xf32>) -> tensor<9xf32> return }'
    with pytest.raises(ir.MLIRError, match="may grow"):
        ir.Module.parse(text)
