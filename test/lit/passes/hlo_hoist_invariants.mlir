// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-hoist-invariants)' | FileCheck %s

// The transposition of the weights and the product that reads only them leave; the weights are no longer carried.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[W:.*]]: tensor<4x4xf32>, %[[N:.*]]: tensor<i32>)
// CHECK: %[[T:.*]] = stablehlo.transpose %[[W]]
// CHECK: %[[TT:.*]] = stablehlo.dot_general %[[T]], %[[T]]
// CHECK: %[[PLUS:.*]] = stablehlo.add %[[TT]], %[[W]]
// CHECK: %[[LOOP:.*]]:2 = stablehlo.while
// CHECK: stablehlo.compare {{.*}}, %[[N]]
// CHECK-NOT: stablehlo.transpose
// CHECK: stablehlo.dot_general %{{.*}}, %[[PLUS]]
// CHECK: return %[[LOOP]]#1, %[[W]]
func.func @main(%x: tensor<4xf32>, %w: tensor<4x4xf32>, %n: tensor<i32>) -> (tensor<4xf32>, tensor<4x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:4 = stablehlo.while(%i = %zero, %y = %x, %v = %w, %m = %n)
      : tensor<i32>, tensor<4xf32>, tensor<4x4xf32>, tensor<i32>
  cond {
    %go = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.transpose %v, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %tt = stablehlo.dot_general %t, %t, contracting_dims = [1] x [0]
      : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %plus = stablehlo.add %tt, %v : tensor<4x4xf32>
    %z = stablehlo.dot_general %y, %plus, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
    stablehlo.return %next, %z, %v, %m : tensor<i32>, tensor<4xf32>, tensor<4x4xf32>, tensor<i32>
  }
  return %r#1, %r#2 : tensor<4xf32>, tensor<4x4xf32>
}

// A broadcast is cheaper to repeat than to remember; what depends on the step stays.
// CHECK-LABEL: func.func @nothing_to_hoist
// CHECK: stablehlo.while
// CHECK: do
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.transpose
func.func @nothing_to_hoist(%x: tensor<4x4xf32>, %b: tensor<f32>) -> tensor<4x4xf32> {
  %0 = stablehlo.while(%y = %x) : tensor<4x4xf32>
  cond {
    %true = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %true : tensor<i1>
  } do {
    %bs = stablehlo.broadcast_in_dim %b, dims = [] : (tensor<f32>) -> tensor<4x4xf32>
    %t = stablehlo.transpose %y, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %z = stablehlo.add %t, %bs : tensor<4x4xf32>
    stablehlo.return %z : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}
