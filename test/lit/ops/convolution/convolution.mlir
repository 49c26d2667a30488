// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// Loops (batch, output, group, tap, input feature, output feature); stride and dilation are in the map.
// CHECK: affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1 * 2 + d3 * 3,
// CHECK-LABEL: func.func @strided_and_dilated
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]
func.func @strided_and_dilated(%x: tensor<1x9x2xf32>, %w: tensor<2x2x4xf32>) -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [2], pad = [[0, 0]], rhs_dilate = [3]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x2xf32>, tensor<2x2x4xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}

// One output feature a group: the groups are innermost.
// CHECK-LABEL: func.func @depthwise
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction", "parallel", "parallel"]
func.func @depthwise(%x: tensor<1x9x8xf32>, %w: tensor<3x1x8xf32>) -> tensor<1x7x8xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 8 : i64}
    : (tensor<1x9x8xf32>, tensor<3x1x8xf32>) -> tensor<1x7x8xf32>
  return %0 : tensor<1x7x8xf32>
}

// CHECK-LABEL: func.func @padded
// CHECK: linalg.fill
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 1, 0] [1, 9, 2] [1, 1, 1] : tensor<1x9x2xf32> into tensor<1x11x2xf32>
func.func @padded(%x: tensor<1x9x2xf32>, %w: tensor<3x2x4xf32>) -> tensor<1x9x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {stride = [1], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x9x2xf32>, tensor<3x2x4xf32>) -> tensor<1x9x4xf32>
  return %0 : tensor<1x9x4xf32>
}
