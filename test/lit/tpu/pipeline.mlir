// RUN: stablehlo-opt %s --pipeline=tpu | FileCheck %s
// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=contractions | FileCheck %s --check-prefix=CONTRACT
// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=fusions | FileCheck %s --check-prefix=FUSE
// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=tiles | FileCheck %s --check-prefix=TILES

// The product, the bias and the relu are one kernel.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.dot_general
// CHECK: "mxu.kernel"
// CHECK: "mxu.pop"
// CHECK: "mxu.vector"{{.*}}arguments = [0, 1], function = "add"
// CHECK: "mxu.vector"{{.*}}arguments = [0, 0.0{{.*}}], function = "maximum"
// CHECK-NOT: stablehlo.add
// CHECK-NOT: stablehlo.maximum
// CONTRACT: "mxu.contract"
// CONTRACT-NOT: mxu.fusion
// FUSE: "mxu.fusion"
// FUSE: "mxu.contract"
// FUSE: stablehlo.maximum
// FUSE: "mxu.yield"
// TILES: "mxu.pad"
// TILES: "mxu.fusion"
// TILES: "mxu.tiled_contract"{{.*}}blocks = [{{.*}}], chip = "v5e"{{.*}}logical = [1, 60, 128, 256]
func.func @main(%x: tensor<60x256xf32>, %w: tensor<256x128xf32>, %b: tensor<128xf32>) -> tensor<60x128xf32> {
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<60x256xf32>, tensor<256x128xf32>) -> tensor<60x128xf32>
  %r = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xf32>) -> tensor<60x128xf32>
  %s = stablehlo.add %d, %r : tensor<60x128xf32>
  %z = stablehlo.constant dense<0.0> : tensor<60x128xf32>
  %m = stablehlo.maximum %s, %z : tensor<60x128xf32>
  return %m : tensor<60x128xf32>
}
