// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-fold-transposes,cse)' | FileCheck %s

// CHECK-LABEL: func.func @weights
// CHECK-SAME: (%[[X:.*]]: tensor<4x5xf32>, %[[W:.*]]: tensor<6x5xf32>)
// CHECK-NEXT: stablehlo.dot_general %[[X]], %[[W]], contracting_dims = [1] x [1]
func.func @weights(%x: tensor<4x5xf32>, %w: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %t = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %0 = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0]
    : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// Both sides, with a batch dimension that moves to the front.
// CHECK-LABEL: func.func @batched
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg1, batching_dims = [1] x [1], contracting_dims = [2] x [0]
func.func @batched(%x: tensor<4x2x5xf32>, %y: tensor<5x2x6xf32>) -> tensor<2x4x6xf32> {
  %tx = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<4x2x5xf32>) -> tensor<2x4x5xf32>
  %ty = stablehlo.transpose %y, dims = [1, 0, 2] : (tensor<5x2x6xf32>) -> tensor<2x5x6xf32>
  %0 = stablehlo.dot_general %tx, %ty, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  return %0 : tensor<2x4x6xf32>
}

// The free dimensions change places: the result would be another one.
// CHECK-LABEL: func.func @free_dimensions_swapped
// CHECK: stablehlo.transpose
func.func @free_dimensions_swapped(%x: tensor<4x3x5xf32>, %w: tensor<5x6xf32>) -> tensor<3x4x6xf32> {
  %t = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<4x3x5xf32>) -> tensor<3x4x5xf32>
  %0 = stablehlo.dot_general %t, %w, contracting_dims = [2] x [0]
    : (tensor<3x4x5xf32>, tensor<5x6xf32>) -> tensor<3x4x6xf32>
  return %0 : tensor<3x4x6xf32>
}
