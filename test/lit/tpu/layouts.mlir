// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-layouts' | FileCheck %s

// A transpose in front of a product is folded: the weights are turned as they are pushed.
// CHECK-LABEL: func.func @folded
// CHECK-NOT: stablehlo.transpose
// CHECK: "mxu.contract"{{.*}}lhs_t = false{{.*}}rhs_t = true
func.func @folded(%x: tensor<2x512x256xbf16>, %y: tensor<2x512x256xbf16>) -> tensor<2x512x512xbf16> {
  %t = stablehlo.transpose %y, dims = [0, 2, 1] : (tensor<2x512x256xbf16>) -> tensor<2x256x512xbf16>
  %r = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x512x256xbf16>, tensor<2x256x512xbf16>) -> tensor<2x512x512xbf16>
  return %r : tensor<2x512x512xbf16>
}

// Of two ways to turn the heads, the one that leaves lanes alone.
// CHECK-LABEL: func.func @heads
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0, 2]
// CHECK: "mxu.contract"{{.*}}rhs_t = true
func.func @heads(%x: tensor<4x512x64xbf16>, %k: tensor<512x4x64xbf16>) -> tensor<4x512x512xbf16> {
  %t = stablehlo.transpose %k, dims = [1, 2, 0] : (tensor<512x4x64xbf16>) -> tensor<4x64x512xbf16>
  %r = stablehlo.dot_general %x, %t, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x512x64xbf16>, tensor<4x64x512xbf16>) -> tensor<4x512x512xbf16>
  return %r : tensor<4x512x512xbf16>
}

// Eight columns would take 128 lanes each time they move: argument and result have their rows along lanes.
// CHECK-LABEL: func.func @few_columns
// CHECK: %[[W:.*]] = "mxu.laid_out"({{.*}}) : (tensor<1x512x8xbf16>) -> tensor<1x8x512xbf16>
// CHECK: %[[R:.*]] = "mxu.contract"(%[[W]], %{{.*}}) {{.*}} -> tensor<1x8x4096xbf16>
// CHECK: "mxu.laid_out"(%[[R]])
func.func @few_columns(%x: tensor<4096x512xbf16>, %w: tensor<512x8xbf16>) -> tensor<4096x8xbf16> {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4096x512xbf16>, tensor<512x8xbf16>) -> tensor<4096x8xbf16>
  return %r : tensor<4096x8xbf16>
}

// What is read as it is by others stays as it is.
// CHECK-LABEL: func.func @others_read_it
// CHECK-NOT: "mxu.laid_out"
// CHECK: "mxu.contract"{{.*}} -> tensor<1x1024x1024xbf16>
func.func @others_read_it(%x: tensor<1024x1024xbf16>, %w: tensor<1024x1024xbf16>) -> (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) {
  %r = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  %t = stablehlo.tanh %w : tensor<1024x1024xbf16>
  return %r, %t : tensor<1024x1024xbf16>, tensor<1024x1024xbf16>
}
