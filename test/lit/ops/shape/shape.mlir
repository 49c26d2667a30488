// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// CHECK-LABEL: func.func @broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<1x3xf32>)
// CHECK: %[[ROW:.*]] = tensor.collapse_shape %[[X]]
// CHECK-SAME: tensor<1x3xf32> into tensor<3xf32>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[ROW]] : tensor<3xf32>)
func.func @broadcast(%x: tensor<1x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// The finest common groups: nothing is moved.
// CHECK-LABEL: func.func @reshape
// CHECK: tensor.collapse_shape
// CHECK-SAME: tensor<2x3x4xf32> into tensor<6x4xf32>
// CHECK: tensor.expand_shape
// CHECK-SAME: tensor<6x4xf32> into tensor<6x2x2xf32>
// CHECK-NOT: linalg
// CHECK: return
func.func @reshape(%x: tensor<2x3x4xf32>) -> tensor<6x2x2xf32> {
  %0 = stablehlo.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x2x2xf32>
  return %0 : tensor<6x2x2xf32>
}

// CHECK-LABEL: func.func @transpose
// CHECK: linalg.generic
// CHECK: linalg.yield
func.func @transpose(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// Only a dimension of size 1 moves: the same elements under another shape.
// CHECK-LABEL: func.func @transpose_of_ones_is_a_reshape
// CHECK-NOT: linalg
// CHECK: return
func.func @transpose_of_ones_is_a_reshape(%x: tensor<2x1x3xf32>) -> tensor<1x2x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x1x3xf32>) -> tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// CHECK-LABEL: func.func @slice
// CHECK: tensor.extract_slice %{{.*}}[1, 0] [2, 2] [3, 1] : tensor<8x2xf32> to tensor<2x2xf32>
func.func @slice(%x: tensor<8x2xf32>) -> tensor<2x2xf32> {
  %0 = stablehlo.slice %x [1:7:3, 0:2] : (tensor<8x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// Negative padding takes elements away, interior padding spreads them.
// CHECK-LABEL: func.func @pad
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[ZERO:.*]]: tensor<f32>)
// CHECK: %[[KEPT:.*]] = tensor.extract_slice %[[X]][1] [3] [1]
// CHECK: linalg.fill
// CHECK: tensor.insert_slice %[[KEPT]] into %{{.*}}[1] [3] [2] : tensor<3xf32> into tensor<8xf32>
func.func @pad(%x: tensor<4xf32>, %zero: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.pad %x, %zero, low = [-1], high = [2], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @concatenate
// CHECK-SAME: (%[[X:.*]]: tensor<2x3xf32>, %[[Y:.*]]: tensor<2x1xf32>)
// CHECK: tensor.insert_slice %[[X]] into %{{.*}}[0, 0] [2, 3] [1, 1]
// CHECK: tensor.insert_slice %[[Y]] into %{{.*}}[0, 3] [2, 1] [1, 1]
func.func @concatenate(%x: tensor<2x3xf32>, %y: tensor<2x1xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @reverse
// CHECK: linalg.index 0
// CHECK: arith.subi
// CHECK: tensor.extract
func.func @reverse(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @get_dimension_size
// CHECK: arith.constant dense<5> : tensor<i32>
func.func @get_dimension_size(%x: tensor<2x5xf32>) -> tensor<i32> {
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x5xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}
