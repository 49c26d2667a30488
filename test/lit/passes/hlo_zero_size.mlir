// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-zero-size,cse)' | FileCheck %s

// CHECK-LABEL: func.func @nothing_to_compute
// CHECK-NEXT: %[[NONE:.*]] = stablehlo.constant dense<> : tensor<0x3xf32>
// CHECK-NEXT: return %[[NONE]]
func.func @nothing_to_compute(%x: tensor<0x3xf32>) -> tensor<0x3xf32> {
  %0 = stablehlo.add %x, %x : tensor<0x3xf32>
  return %0 : tensor<0x3xf32>
}

// A sum over nothing is what it starts from.
// CHECK-LABEL: func.func @sum_of_nothing
// CHECK-SAME: %[[INIT:[a-z0-9]+]]: tensor<f32>)
// CHECK: %[[SUM:.*]] = stablehlo.broadcast_in_dim %[[INIT]], dims = [] : (tensor<f32>) -> tensor<3xf32>
// CHECK-NEXT: return %[[SUM]]
func.func @sum_of_nothing(%x: tensor<0x3xf32>, %init: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    : (tensor<0x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
