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

// The gradient of a weight, as JAX writes it: the other order of the operands, and of what is said about each.
// CHECK-LABEL: func.func @result
// CHECK-SAME: (%[[DY:.*]]: tensor<8x64xf32>, %[[X:.*]]: tensor<8x5xf32>)
// CHECK-NEXT: %[[DW:.*]] = stablehlo.dot_general %[[X]], %[[DY]], contracting_dims = [0] x [0], precision = [HIGH, DEFAULT]
// CHECK-SAME: -> tensor<5x64xf32>
// CHECK-NEXT: return %[[DW]]
func.func @result(%dy: tensor<8x64xf32>, %x: tensor<8x5xf32>) -> tensor<5x64xf32> {
  %0 = stablehlo.dot_general %dy, %x, contracting_dims = [0] x [0], precision = [DEFAULT, HIGH]
    : (tensor<8x64xf32>, tensor<8x5xf32>) -> tensor<64x5xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x5xf32>) -> tensor<5x64xf32>
  return %1 : tensor<5x64xf32>
}

// CHECK-LABEL: func.func @batched_result
// CHECK-NEXT: stablehlo.dot_general %arg1, %arg0, batching_dims = [1] x [0], contracting_dims = [0] x [2]
// CHECK-SAME: -> tensor<2x6x3x40xf32>
// CHECK-NOT: stablehlo.transpose
func.func @batched_result(%x: tensor<2x3x5x40xf32>, %y: tensor<5x2x6xf32>) -> tensor<2x6x3x40xf32> {
  %0 = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0]
    : (tensor<2x3x5x40xf32>, tensor<5x2x6xf32>) -> tensor<2x3x40x6xf32>
  %1 = stablehlo.transpose %0, dims = [0, 3, 1, 2] : (tensor<2x3x40x6xf32>) -> tensor<2x6x3x40xf32>
  return %1 : tensor<2x6x3x40xf32>
}

// Used as it is as well.
// CHECK-LABEL: func.func @used_twice
// CHECK: stablehlo.transpose
func.func @used_twice(%x: tensor<64x8xf32>, %y: tensor<8x5xf32>) -> (tensor<64x5xf32>, tensor<5x64xf32>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<64x8xf32>, tensor<8x5xf32>) -> tensor<64x5xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<64x5xf32>) -> tensor<5x64xf32>
  return %0, %1 : tensor<64x5xf32>, tensor<5x64xf32>
}

// Few columns would be left of it.
// CHECK-LABEL: func.func @few_columns
// CHECK: stablehlo.transpose
func.func @few_columns(%x: tensor<10x8xf32>, %y: tensor<8x500xf32>) -> tensor<500x10xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<10x8xf32>, tensor<8x500xf32>) -> tensor<10x500xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<10x500xf32>) -> tensor<500x10xf32>
  return %1 : tensor<500x10xf32>
}

// Another order than that of a swapped product.
// CHECK-LABEL: func.func @other_order
// CHECK: stablehlo.transpose
func.func @other_order(%x: tensor<8x64x8xf32>, %y: tensor<8x5xf32>) -> tensor<64x8x5xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<8x64x8xf32>, tensor<8x5xf32>) -> tensor<8x64x5xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 2] : (tensor<8x64x5xf32>) -> tensor<64x8x5xf32>
  return %1 : tensor<64x8x5xf32>
}
