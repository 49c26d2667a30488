// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// The index is read and checked once a window; the operand is what the loops carry.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<5x4xf32>
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[X]])
// CHECK: %[[AT:.*]] = arith.index_cast
// CHECK: arith.cmpi ult, %[[AT]]
// CHECK: scf.if
// CHECK: scf.for
// CHECK: tensor.insert
func.func @rows(%x: tensor<5x4xf32>, %i: tensor<3x1xi32>, %u: tensor<3x4xf32>) -> tensor<5x4xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
    : (tensor<5x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}

// A window that may reach over the edge: its loop runs over what is inside, without a test for each element.
// CHECK-LABEL: func.func @windows
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: return
func.func @windows(%x: tensor<5xf32>, %i: tensor<3x1xi32>, %u: tensor<3x2xf32>) -> tensor<5xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      stablehlo.return %b : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
    : (tensor<5xf32>, tensor<3x1xi32>, tensor<3x2xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
