// RUN: not stablehlo-opt %s --pipeline=gpu 2>&1 | FileCheck %s

// What no rule lowers is named with the target and the place.
// CHECK: errors.mlir:7:
// CHECK-SAME: stablehlo.custom_call is not supported on target gpu
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @nobody(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
