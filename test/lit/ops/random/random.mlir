// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// Two neighbours share a counter, half their index, and each takes one of its words.
// CHECK-LABEL: func.func @threefry
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel"]
// CHECK: arith.shrui
// CHECK: arith.select
// CHECK-NEXT: linalg.yield
// CHECK-NEXT: -> tensor<7xi32>
func.func @threefry(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<7xui32>)
  return %0#0, %0#1 : tensor<2xui64>, tensor<7xui32>
}

// Four elements share a counter.
// CHECK-LABEL: func.func @philox
// CHECK: tensor.collapse_shape %{{.*}} : tensor<3x4xi32> into tensor<12xi32>
func.func @philox(%s: tensor<3xui64>) -> (tensor<3xui64>, tensor<12xui32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<12xui32>)
  return %0#0, %0#1 : tensor<3xui64>, tensor<12xui32>
}
