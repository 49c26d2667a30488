// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-fuse,mxu-tiles,mxu-kernels,mxu-fold-padding,cse' | FileCheck %s --check-prefix=FOLD
// RUN: stablehlo-opt %s --pipeline=tpu | FileCheck %s

// The second kernel takes the first one's result as it is, padding and all, and it stays in VMEM in between.
// FOLD-LABEL: func.func @chain
// FOLD: %[[H:.*]] = "mxu.kernel"
// FOLD-NOT: mxu.unpad
// FOLD: "mxu.kernel"(%[[H]], %
// FOLD: "mxu.unpad"
// CHECK-LABEL: func.func @chain
// CHECK: "mxu.kernel"
// CHECK: !mxu.ref<tensor<1x56x128xbf16>, "vmem"
// CHECK: "mxu.kernel"
// CHECK: ^bb0(%{{.*}}: !mxu.ref<tensor<1x56x128xbf16>, "vmem"
// CHECK-SAME: !mxu.ref<tensor<1x56x128xbf16>, "hbm", {{.*}}>):
func.func @chain(%x: tensor<50x70xbf16>, %w: tensor<70x100xbf16>, %v: tensor<100x30xbf16>) -> tensor<50x30xbf16> {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<50x70xbf16>, tensor<70x100xbf16>) -> tensor<50x100xbf16>
  %t = stablehlo.tanh %h : tensor<50x100xbf16>
  %r = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0] : (tensor<50x100xbf16>, tensor<100x30xbf16>) -> tensor<50x30xbf16>
  return %r : tensor<50x30xbf16>
}

// A result that the program returns has to leave, and one that is turned in between is not taken as it is.
// FOLD-LABEL: func.func @stays_in_hbm
// FOLD: stablehlo.transpose
// FOLD: "mxu.pad"
// CHECK-LABEL: func.func @stays_in_hbm
// CHECK: "mxu.kernel"
// CHECK: %{{.*}}: !mxu.ref<tensor<1x64x128xbf16>, "hbm", {{.*}}>):
func.func @stays_in_hbm(%x: tensor<64x128xbf16>, %w: tensor<128x128xbf16>) -> (tensor<64x128xbf16>, tensor<100x128xbf16>) {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xbf16>
  %p = stablehlo.reshape %h : (tensor<64x128xbf16>) -> tensor<8x8x128xbf16>
  %q = stablehlo.transpose %p, dims = [1, 0, 2] : (tensor<8x8x128xbf16>) -> tensor<8x8x128xbf16>
  %s = stablehlo.slice %q [0:8, 0:8, 0:100] : (tensor<8x8x128xbf16>) -> tensor<8x8x100xbf16>
  %f = stablehlo.reshape %s : (tensor<8x8x100xbf16>) -> tensor<64x100xbf16>
  %r = stablehlo.dot_general %f, %h, contracting_dims = [0] x [0] : (tensor<64x100xbf16>, tensor<64x128xbf16>) -> tensor<100x128xbf16>
  return %h, %r : tensor<64x128xbf16>, tensor<100x128xbf16>
}
