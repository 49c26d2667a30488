// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-normalize,hlo-to-linalg)' | FileCheck %s

// CHECK-LABEL: func.func public @main
// CHECK: math.asinh
// CHECK: math.erf
// CHECK: call @lgamma
// CHECK-NOT: chlo
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = chlo.asinh %x : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  %2 = chlo.lgamma %x : tensor<4xf32> -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
