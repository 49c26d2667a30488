// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-top-k)' | FileCheck %s

// CHECK-LABEL: func.func @largest
// CHECK-SAME: (%[[X:.*]]: tensor<4x90xi32>)
// CHECK: %[[V:.*]], %[[I:.*]] = chlo.top_k(%[[X]], k = 3)
// CHECK-NOT: stablehlo.sort
// CHECK: return %[[V]], %[[I]]
func.func @largest(%x: tensor<4x90xi32>) -> (tensor<4x3xi32>, tensor<4x3xi32>) {
  %places = stablehlo.iota dim = 1 : tensor<4x90xi32>
  %0:2 = "stablehlo.sort"(%x, %places) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %1 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<4x90xi32>, tensor<4x90xi32>) -> (tensor<4x90xi32>, tensor<4x90xi32>)
  %v = stablehlo.slice %0#0 [0:4, 0:3] : (tensor<4x90xi32>) -> tensor<4x3xi32>
  %i = stablehlo.slice %0#1 [0:4, 0:3] : (tensor<4x90xi32>) -> tensor<4x3xi32>
  return %v, %i : tensor<4x3xi32>, tensor<4x3xi32>
}

// The smallest of a total order: negation turns it around.
// CHECK-LABEL: func.func @smallest
// CHECK: %[[N:.*]] = stablehlo.negate %{{.*}} : tensor<90xf32>
// CHECK: %[[V:.*]], %{{.*}} = chlo.top_k(%[[N]], k = 3)
// CHECK: stablehlo.negate %[[V]] : tensor<3xf32>
func.func @smallest(%x: tensor<90xf32>) -> tensor<3xf32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<90xf32>) -> tensor<90xf32>
  %v = stablehlo.slice %0 [0:3] : (tensor<90xf32>) -> tensor<3xf32>
  return %v : tensor<3xf32>
}

// Somebody reads the last ones.
// CHECK-LABEL: func.func @both_ends
// CHECK: stablehlo.sort
func.func @both_ends(%x: tensor<90xi32>) -> (tensor<3xi32>, tensor<3xi32>) {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<90xi32>) -> tensor<90xi32>
  %v = stablehlo.slice %0 [0:3] : (tensor<90xi32>) -> tensor<3xi32>
  %w = stablehlo.slice %0 [87:90] : (tensor<90xi32>) -> tensor<3xi32>
  return %v, %w : tensor<3xi32>, tensor<3xi32>
}

// Two keys are more than top_k compares.
// CHECK-LABEL: func.func @two_keys
// CHECK: stablehlo.sort
func.func @two_keys(%x: tensor<90xi32>, %y: tensor<90xi32>) -> tensor<3xi32> {
  %0:2 = "stablehlo.sort"(%x, %y) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %2 = stablehlo.compare EQ, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %3 = stablehlo.compare LT, %c, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %4 = stablehlo.and %2, %3 : tensor<i1>
      %5 = stablehlo.or %1, %4 : tensor<i1>
      stablehlo.return %5 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<90xi32>, tensor<90xi32>) -> (tensor<90xi32>, tensor<90xi32>)
  %v = stablehlo.slice %0#1 [0:3] : (tensor<90xi32>) -> tensor<3xi32>
  return %v : tensor<3xi32>
}
