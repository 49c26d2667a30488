// RUN: stablehlo-opt %s --split-input-file --verify-diagnostics

func.func @contracted_sizes(%x: tensor<1x8x128xbf16>, %y: tensor<1x64x256xbf16>) -> tensor<1x8x256xf32> {
  // expected-error @+1 {{contracts 128 with 64 elements}}
  %r = "mxu.contract"(%x, %y) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x8x128xbf16>, tensor<1x64x256xbf16>) -> tensor<1x8x256xf32>
  return %r : tensor<1x8x256xf32>
}

// -----

// A block is read before the wait for it.
!hbm = !mxu.ref<tensor<1x8x128xf32>, "hbm", #mxu.tiled<"T(8,128)">>
!vmem = !mxu.ref<tensor<8x128xf32>, "vmem", #mxu.tiled<"T(8,128)">>
func.func @read_too_early(%a: tensor<1x8x128xf32>) -> tensor<1x8x128xf32> {
  %r = "mxu.kernel"(%a) ({
  ^bb0(%x: !hbm, %z: !hbm):
    %b = "mxu.alloc"() {label = "b", offset = 0 : i64, buffers = 1 : i64} : () -> !vmem
    %o = "mxu.alloc"() {label = "o", offset = 4096 : i64, buffers = 1 : i64} : () -> !vmem
    %s = "mxu.make_semaphore"() : () -> !mxu.semaphore
    "mxu.dma_start"(%x, %b, %s) {map = affine_map<() -> (0, 0, 0)>} : (!hbm, !vmem, !mxu.semaphore) -> ()
    // expected-error @+1 {{reads a buffer before the wait for the transfer into it}}
    "mxu.vector"(%o, %b) {arguments = [0], function = "tanh", operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!vmem, !vmem) -> ()
    "mxu.dma_wait"(%s) : (!mxu.semaphore) -> ()
    "mxu.dma_start"(%o, %z, %s) {map = affine_map<() -> (0, 0, 0)>} : (!vmem, !hbm, !mxu.semaphore) -> ()
    "mxu.dma_wait"(%s) : (!mxu.semaphore) -> ()
  }) {label = "k", chip = "v5e", logical = [[1, 8, 128], [1, 8, 128]], operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x8x128xf32>) -> tensor<1x8x128xf32>
  return %r : tensor<1x8x128xf32>
}
