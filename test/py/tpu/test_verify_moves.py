"""Each rule for ops that move elements, broken once."""

from __future__ import annotations

import pytest

from stablehlo_py.mlir import ir

from .kernels import parsed

REF = '!mxu.ref<tensor<{0}>, "{1}", #mxu.tiled<"T(8,128)">>'
TABLE, OUT, INDEX = REF.format("40x256xf32", "hbm"), REF.format("24x256xf32", "hbm"), REF.format("1x24xi32", "smem")
BLOCK, LINE = REF.format("8x256xf32", "vmem"), REF.format("8x128xf32", "vmem")

# Rows of a table by index, eight at a time; lanes 3 to 70 of each go to lane 10 and following.
GOOD = f"""
func.func @f(%a: tensor<40x256xf32>, %n: tensor<1x24xi32>) -> tensor<24x256xf32> {{
  %r = "mxu.kernel"(%a, %n) ({{
  ^bb0(%x: {TABLE}, %i: {INDEX}, %z: {OUT}):
    %xb = "mxu.alloc"() {{label = "x", offset = 0 : i64, buffers = 2 : i64}} : () -> {BLOCK}
    %zb = "mxu.alloc"() {{label = "z", offset = 65536 : i64, buffers = 1 : i64}} : () -> {BLOCK}
    %lb = "mxu.alloc"() {{label = "l", offset = 131072 : i64, buffers = 1 : i64}} : () -> {LINE}
    %load = "mxu.make_semaphore"() : () -> !mxu.semaphore
    %store = "mxu.make_semaphore"() : () -> !mxu.semaphore
    "mxu.loop"() ({{
    ^bb1(%k: index):
      %v = "mxu.read_index"(%i, %k) {{map = affine_map<(k) -> (0, k * 8)>, limit = 32 : i64}} : ({INDEX}, index) -> index
      "mxu.dma_strided"(%x, %xb, %load, %k, %v) {{map = affine_map<(k, v) -> (v, 0)>, dim = 0 : i64, step = 1 : i64,
        count = [8, 256], at = 0 : i64}} : ({TABLE}, {BLOCK}, !mxu.semaphore, index, index) -> ()
      "mxu.dma_wait"(%load) : (!mxu.semaphore) -> ()
      "mxu.fill"(%zb) {{value = 0.0 : f32}} : ({BLOCK}) -> ()
      "mxu.place"(%xb, %zb) {{lanes = [10, 1, 3, 1, 68]}} : ({BLOCK}, {BLOCK}) -> ()
      "mxu.dma_strided"(%zb, %z, %store, %k) {{map = affine_map<(k) -> (k * 8, 0)>, dim = 0 : i64, step = 1 : i64,
        count = [8, 256], at = 0 : i64}} : ({BLOCK}, {OUT}, !mxu.semaphore, index) -> ()
      "mxu.dma_wait"(%store) : (!mxu.semaphore) -> ()
    }}) {{bounds = [3]}} : () -> ()
  }}) {{label = "k", chip = "v5e", logical = [[40, 200], [1, 24], [24, 200]],
       operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0>}}
    : (tensor<40x256xf32>, tensor<1x24xi32>) -> tensor<24x256xf32>
  return %r : tensor<24x256xf32>
}}
"""
WAIT = '      "mxu.dma_wait"(%load) : (!mxu.semaphore) -> ()\n'
STORED = '      "mxu.dma_wait"(%store) : (!mxu.semaphore) -> ()\n'

RULES = {
    "between an argument and a buffer": (
        "(%x, %xb, %load, %k, %v)",
        "(%xb, %xb, %load, %k, %v)",
        "between an argument",
    ),
    "element of a transfer": (
        f'"l", offset = 131072 : i64, buffers = 1 : i64}} : () -> {LINE}',
        f'"l", offset = 131072 : i64, buffers = 1 : i64}} : () -> {LINE}\n    "mxu.dma_strided"(%i, %lb, %load) {{'
        "map = affine_map<() -> (0, 0)>, dim = 0 : i64, step = 1 : i64, count = [1, 24], at = 0 : i64}"
        f" : ({INDEX}, {LINE}, !mxu.semaphore) -> ()",
        "moves i32 to f32",
    ),
    "rows have a dimension": ("dim = 0", "dim = 1", "has rows along dimension 1"),
    "rows of the buffer": ("count = [8, 256], at = 0", "count = [8, 256], at = 1", "moves 8 rows from 1 on"),
    "lanes of the buffer": ("count = [8, 256]", "count = [8, 384]", "and 384 lanes of a block"),
    "linear maps": ("(k, v) -> (v, 0)", "(k, v) -> (v floordiv 2, 0)", "has a map that is not linear"),
    "whole registers": ("(k, v) -> (v, 0)", "(k, v) -> (v, 64)", "starts at a lane that is no multiple of 128"),
    "map of the ref's rank": ("(k, v) -> (v, 0)", "(k, v) -> (v)", "has a map of 2 indices to 1"),
    "defined rows to read": ("limit = 32", "limit = 33", "moves elements 0 to 40 of dimension 0, which has 40"),
    "defined rows to write": ("(k) -> (k * 8, 0)", "(k) -> (k * 8 + 1, 0)", "moves elements 1 to 24 of dimension 0"),
    "rows backwards": ("step = 1", "step = -1", "moves elements -7 to 32 of dimension 0"),
    "lanes of the ref": ("(k, v) -> (v, 0)", "(k, v) -> (v, 128)", "moves elements 128 to 383 of dimension 1"),
    "wait before place": (WAIT, "", "place reads a buffer before the wait"),
    "wait for the store": (STORED, "", "writes to a buffer before the wait for the transfer out of it"),
    "lanes to place": ("[10, 1, 3, 1, 68]", "[10, 1, 3, 1, 300]", "takes lanes 10 to 309 of a block"),
    "lanes to place from": ("[10, 1, 3, 1, 68]", "[10, 1, 66, -1, 68]", "takes lanes -1 to 66 of a block"),
    "five numbers": ("[10, 1, 3, 1, 68]", "[10, 1, 3, 1]", "needs lanes"),
    "space of an index": ('"smem"', '"hbm"', "the scalar unit reads SMEM only"),
    "type of an index": ("1x24xi32", "1x24xf32", "reads an index from tensor<1x24xf32>"),
}


def test_the_good_kernel_is_fine():
    assert "mxu.kernel" in str(parsed(GOOD))


@pytest.mark.parametrize("rule", RULES)
def test_a_broken_rule_is_found(rule):
    old, new, message = RULES[rule]
    assert old in GOOD
    everywhere = rule in ("space of an index", "type of an index")
    broken = GOOD.replace(old, new) if everywhere else GOOD.replace(old, new, 1)
    if rule == "between an argument and a buffer":
        broken = broken.replace(f": ({TABLE}, {BLOCK}", f": ({BLOCK}, {BLOCK}")
    with pytest.raises(ir.MLIRError, match=message):
        parsed(broken)


def test_placed_rows_must_fit():
    line = f'      "mxu.place"(%xb, %lb) {{lanes = [0, 1, 0, 1, 128]}} : ({BLOCK}, {LINE}) -> ()\n'
    parsed(GOOD.replace(STORED, line + STORED))
    short = GOOD.replace(STORED, line + STORED).replace(LINE, REF.format("16x128xf32", "vmem"))
    with pytest.raises(ir.MLIRError, match="places lanes of tensor<8x256xf32> into tensor<16x128xf32>"):
        parsed(short)


def test_a_bitcast_keeps_the_lanes():
    text = """func.func @f(%x: tensor<8x16x128xf32>) -> tensor<128x128xf32> {
      %r = "mxu.bitcast"(%x) : (tensor<8x16x128xf32>) -> tensor<128x128xf32>
      return %r : tensor<128x128xf32> }"""
    parsed(text)
    with pytest.raises(ir.MLIRError, match="the lanes must stay as they are"):
        parsed(text.replace("tensor<128x128xf32>", "tensor<64x256xf32>"))
