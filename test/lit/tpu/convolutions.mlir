// RUN: stablehlo-opt %s --pass-pipeline='mxu-convolutions' | FileCheck %s

// Each position of the window is a slice; they are stacked and contracted together with the input features.
// CHECK-LABEL: func.func @two_positions
// CHECK-SAME: (%[[X:.*]]: tensor<1x5x1x3xf32>, %[[W:.*]]: tensor<2x1x3x4xf32>)
// CHECK-DAG: stablehlo.slice %[[X]] [0:1, 0:4, 0:1, 0:3]
// CHECK-DAG: stablehlo.slice %[[X]] [0:1, 1:5, 0:1, 0:3]
// CHECK: stablehlo.concatenate
// CHECK: stablehlo.dot_general {{.*}}batching_dims = [0] x [0], contracting_dims = [4] x [1]
// CHECK-SAME: (tensor<1x1x4x1x6xf32>, tensor<1x6x4xf32>)
// CHECK-NOT: stablehlo.convolution
func.func @two_positions(%x: tensor<1x5x1x3xf32>, %w: tensor<2x1x3x4xf32>) -> tensor<1x4x1x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x5x1x3xf32>, tensor<2x1x3x4xf32>) -> tensor<1x4x1x4xf32>
  return %r : tensor<1x4x1x4xf32>
}

// A window of one position needs no slices.
// CHECK-LABEL: func.func @one_position
// CHECK-NOT: stablehlo.slice
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.dot_general
func.func @one_position(%x: tensor<2x5x5x3xf32>, %w: tensor<1x1x3x4xf32>) -> tensor<2x5x5x4xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<2x5x5x3xf32>, tensor<1x1x3x4xf32>) -> tensor<2x5x5x4xf32>
  return %r : tensor<2x5x5x4xf32>
}

// A window as large as a picture stays a convolution.
// CHECK-LABEL: func.func @huge_window
// CHECK: stablehlo.convolution
func.func @huge_window(%x: tensor<1x20x20x1xf32>, %w: tensor<20x20x1x1xf32>) -> tensor<1x1x1x1xf32> {
  %r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x20x20x1xf32>, tensor<20x20x1x1xf32>) -> tensor<1x1x1x1xf32>
  return %r : tensor<1x1x1x1xf32>
}
