// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-fuse' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions,mxu-fuse,mxu-tiles,mxu-kernels' | FileCheck %s --check-prefix=KERNEL

// A softmax is one group: the reductions stand with what they reduce.
// CHECK-LABEL: func.func @softmax
// CHECK: "mxu.fusion"
// CHECK: stablehlo.reduce
// CHECK: stablehlo.exponential
// CHECK: stablehlo.reduce
// CHECK: stablehlo.divide
// CHECK: "mxu.yield"
// CHECK-NOT: mxu.fusion
// KERNEL-LABEL: func.func @softmax
// KERNEL: "mxu.dma_start"
// KERNEL: "mxu.reduce"{{.*}}function = "maximum", limit = 100
// KERNEL: "mxu.vector"{{.*}}function = "subtract"
// KERNEL: "mxu.vector"{{.*}}function = "exponential"
// KERNEL: "mxu.reduce"{{.*}}function = "add", limit = 100
// KERNEL: "mxu.vector"{{.*}}function = "divide"
// KERNEL: label = "vector.0"
func.func @softmax(%x: tensor<4x50x100xf32>) -> tensor<4x50x100xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [2] : (tensor<4x50x100xf32>, tensor<f32>) -> tensor<4x50xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x50xf32>) -> tensor<4x50x100xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x50x100xf32>
  %e = stablehlo.exponential %d : tensor<4x50x100xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x50x100xf32>, tensor<f32>) -> tensor<4x50xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (tensor<4x50xf32>) -> tensor<4x50x100xf32>
  %r = stablehlo.divide %e, %sb : tensor<4x50x100xf32>
  return %r : tensor<4x50x100xf32>
}

// A value that others need too is not taken in: it is an input.
// CHECK-LABEL: func.func @used_outside
// CHECK: %[[E:.*]] = "mxu.fusion"
// CHECK: stablehlo.tanh
// CHECK: %[[R:.*]] = "mxu.fusion"
// CHECK: stablehlo.negate %[[E]]
// CHECK: return %[[E]], %[[R]]
func.func @used_outside(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %e = stablehlo.tanh %x : tensor<4x64xf32>
  %r = stablehlo.negate %e : tensor<4x64xf32>
  return %e, %r : tensor<4x64xf32>, tensor<4x64xf32>
}

// The vector unit has no f64, and a conversion alone is not worth a kernel.
// CHECK-LABEL: func.func @not_grouped
// CHECK-NOT: mxu.fusion
// CHECK: return
func.func @not_grouped(%x: tensor<4x64xf64>, %y: tensor<4x64xf32>) -> (tensor<4x64xf64>, tensor<4x64xbf16>) {
  %e = stablehlo.tanh %x : tensor<4x64xf64>
  %c = stablehlo.convert %y : (tensor<4x64xf32>) -> tensor<4x64xbf16>
  return %e, %c : tensor<4x64xf64>, tensor<4x64xbf16>
}

// A reduction that does not start from its identity stays with the host, and so does one over another dimension.
// CHECK-LABEL: func.func @other_reductions
// CHECK: stablehlo.reduce
// CHECK: stablehlo.reduce
// CHECK: "mxu.fusion"
// CHECK-NOT: stablehlo.reduce
// CHECK: "mxu.yield"
func.func @other_reductions(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %t = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<64xf32>) -> tensor<64x64xf32>
  %tb = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<64xf32>) -> tensor<64x64xf32>
  %a = stablehlo.multiply %x, %sb : tensor<64x64xf32>
  %r = stablehlo.add %a, %tb : tensor<64x64xf32>
  return %r : tensor<64x64xf32>
}
