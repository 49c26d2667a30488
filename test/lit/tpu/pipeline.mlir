// RUN: stablehlo-opt %s --pipeline=tpu | FileCheck %s
// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=contractions | FileCheck %s --check-prefix=CONTRACT
// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=tiles | FileCheck %s --check-prefix=TILES

// The product becomes a kernel; bias and relu stay for the host.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: "mxu.kernel"
// CHECK: stablehlo.add
// CHECK: stablehlo.maximum
// CONTRACT: "mxu.contract"
// CONTRACT-NOT: mxu.kernel
// TILES: "mxu.tiled_contract"{{.*}}blocks = [{{.*}}], chip = "v5e"{{.*}}logical = [1, 64, 128, 256]
func.func @main(%x: tensor<64x256xf32>, %w: tensor<256x128xf32>, %b: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x256xf32>, tensor<256x128xf32>) -> tensor<64x128xf32>
  %s = stablehlo.add %d, %b : tensor<64x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<64x128xf32>
  %r = stablehlo.maximum %s, %z : tensor<64x128xf32>
  return %r : tensor<64x128xf32>
}
