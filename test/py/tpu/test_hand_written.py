"""A kernel written by hand: what the compiler does not emit runs in both simulators too."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stablehlo_py.machine.tpu import chip
from stablehlo_py.mlir import ir, new_context
from stablehlo_py.simulator import functional, timed
from stablehlo_py.simulator.program import block_map, read_kernel
from stablehlo_py.targets.tpu import emit

from .kernels import parse

HBM = '!mxu.ref<tensor<1x128x256xf32>, "hbm", #mxu.tiled<"T(8,128)">>'
HBM_T = '!mxu.ref<tensor<1x256x128xf32>, "hbm", #mxu.tiled<"T(8,128)">>'
BLOCK = '!mxu.ref<tensor<128x128xf32>, "vmem", #mxu.tiled<"T(8,128)">>'
OTHER = '!mxu.ref<tensor<128x128xf32>, "vmem", #mxu.tiled<"T(4,128)">>'

TRANSPOSE = f"""
func.func @f(%a: tensor<1x128x256xf32>) -> tensor<1x256x128xf32> {{
  %r = "mxu.kernel"(%a) ({{
  ^bb0(%x: {HBM}, %z: {HBM_T}):
    %b = "mxu.alloc"() {{label = "b", offset = 0 : i64, buffers = 2 : i64}} : () -> {BLOCK}
    %o = "mxu.alloc"() {{label = "o", offset = 131072 : i64, buffers = 1 : i64}} : () -> {OTHER}
    %t = "mxu.alloc"() {{label = "t", offset = 196608 : i64, buffers = 2 : i64}} : () -> {BLOCK}
    %load = "mxu.make_semaphore"() : () -> !mxu.semaphore
    %store = "mxu.make_semaphore"() : () -> !mxu.semaphore
    "mxu.loop"() ({{
    ^bb1(%j: index):
      "mxu.dma_start"(%x, %b, %load, %j) {{map = affine_map<(j) -> (0, 0, j)>}}
        : ({HBM}, {BLOCK}, !mxu.semaphore, index) -> ()
      "mxu.dma_wait"(%load) : (!mxu.semaphore) -> ()
      "mxu.relayout"(%b, %o) : ({BLOCK}, {OTHER}) -> ()
      "mxu.transpose"(%o, %t) : ({OTHER}, {BLOCK}) -> ()
      "mxu.dma_start"(%t, %z, %store, %j) {{map = affine_map<(j) -> (0, j, 0)>}}
        : ({BLOCK}, {HBM_T}, !mxu.semaphore, index) -> ()
      "mxu.dma_wait"(%store) : (!mxu.semaphore) -> ()
    }}) {{bounds = [2]}} : () -> ()
  }}) {{label = "turn", chip = "v5e", logical = [[1, 128, 256], [1, 256, 128]],
       operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>}}
    : (tensor<1x128x256xf32>) -> tensor<1x256x128xf32>
  return %r : tensor<1x256x128xf32>
}}
"""


@pytest.fixture(scope="module")
def program():
    with new_context(), ir.Location.unknown():
        module = parse(TRANSPOSE)
        return read_kernel(emit.operations_named(module.operation, "mxu.kernel")[0])


def test_values(program):
    x = np.arange(128 * 256, dtype=np.float32).reshape(1, 128, 256)
    (result,) = functional.run(program, x)
    np.testing.assert_array_equal(result[0], x[0].T)


def test_inputs_are_checked(program):
    with pytest.raises(TypeError, match=r"in0 takes f32\(1, 128, 256\), not float32\(1, 128, 128\)"):
        functional.run(program, np.zeros((1, 128, 128), np.float32))


def test_time(program):
    machine = chip("v5e")
    result = timed.time_program(program, machine)
    labels = [span.command.label for span in result.spans]
    assert labels == ["load b", "relayout", "transpose", "store t"] * 2
    # The second load runs while the first block is turned; both blocks go through the one cross-lane unit.
    loads = [span for span in result.spans if span.command.label == "load b"]
    turns = [span for span in result.spans if span.command.label in ("relayout", "transpose")]
    assert loads[1].start == loads[0].end
    assert all(a.end <= b.start for a, b in itertools.pairwise(sorted(turns, key=lambda span: span.start)))
    assert result.hbm_bytes == 2 * 4 * 128 * 256
    assert result.busy["MXU"] == 0


def test_block_maps():
    with new_context(), ir.Location.unknown():
        map = block_map(ir.Attribute.parse("affine_map<(a, b) -> (a * 4 + b, b floordiv 2, b mod 2, 7)>"))
        assert map(3, 5) == (17, 2, 1, 7)
        with pytest.raises(ValueError, match="more than block numbers need"):
            block_map(ir.Attribute.parse("affine_map<(a) -> (a ceildiv 2)>"))
