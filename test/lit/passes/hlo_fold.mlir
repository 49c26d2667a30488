// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-fold,cse)' | FileCheck %s

// One repeated element stays one repeated element, whatever the shape.
// CHECK-LABEL: func.func @splats
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<5.000000e+00> : tensor<1000x1000xf32>
// CHECK-NEXT: return %[[C]]
func.func @splats() -> tensor<1000x1000xf32> {
  %a = stablehlo.constant dense<2.0> : tensor<f32>
  %b = stablehlo.constant dense<3.0> : tensor<1000x1000xf32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<f32>) -> tensor<1000x1000xf32>
  %1 = stablehlo.add %0, %b : tensor<1000x1000xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<1000x1000xf32>) -> tensor<1000x1000xf32>
  return %2 : tensor<1000x1000xf32>
}

// CHECK-LABEL: func.func @small
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<[3, 2, 1]> : tensor<3xi32>
// CHECK-NEXT: return %[[C]]
func.func @small() -> tensor<3xi32> {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = stablehlo.reverse %a, dims = [0] : tensor<3xi32>
  return %0 : tensor<3xi32>
}

// CHECK-LABEL: func.func @with_a_body
// CHECK-NEXT: %[[C:.*]] = stablehlo.constant dense<16> : tensor<i32>
// CHECK-NEXT: return %[[C]]
func.func @with_a_body() -> tensor<i32> {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %init = stablehlo.constant dense<10> : tensor<i32>
  %0 = stablehlo.reduce(%a init: %init) applies stablehlo.add across dimensions = [0]
    : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// A large result of small operands would make the program grow.
// CHECK-LABEL: func.func @would_grow
// CHECK: stablehlo.broadcast_in_dim
func.func @would_grow() -> tensor<1000x3xi32> {
  %a = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
  %0 = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<3xi32>) -> tensor<1000x3xi32>
  return %0 : tensor<1000x3xi32>
}

// CHECK-LABEL: func.func @random_numbers_stay
// CHECK: stablehlo.rng
func.func @random_numbers_stay() -> tensor<3xf32> {
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<3> : tensor<1xi64>
  %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
