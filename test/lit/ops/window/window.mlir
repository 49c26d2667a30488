// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// Pooling: result dims, window dims, channels; the innermost loop is parallel.
// CHECK-LABEL: func.func @pooling
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "parallel"]
func.func @pooling(%x: tensor<1x6x6x8xf32>, %init: tensor<f32>) -> tensor<1x3x3x8xf32> {
  %0 = "stablehlo.reduce_window"(%x, %init) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}
    : (tensor<1x6x6x8xf32>, tensor<f32>) -> tensor<1x3x3x8xf32>
  return %0 : tensor<1x3x3x8xf32>
}

// A cumulative sum is one pass with the sum in a register.
// CHECK-LABEL: func.func @cumulative_sum
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<9xf32>, f32)
// CHECK-NOT: scf.for
// CHECK: return
func.func @cumulative_sum(%x: tensor<9xf32>) -> tensor<9xf32> {
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %init) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]> : tensor<1x2xi64>}
    : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// An init value that is no identity counts in the padding: each window is summed by itself.
// CHECK-LABEL: func.func @not_cumulative
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
func.func @not_cumulative(%x: tensor<9xf32>) -> tensor<9xf32> {
  %init = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%x, %init) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 9>, padding = dense<[[8, 0]]> : tensor<1x2xi64>}
    : (tensor<9xf32>, tensor<f32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// CHECK-LABEL: func.func @select_and_scatter
// CHECK: linalg.fill
// CHECK: scf.for
// CHECK: scf.if
// CHECK: tensor.insert
func.func @select_and_scatter(%x: tensor<6xf32>, %u: tensor<3xf32>, %init: tensor<f32>) -> tensor<6xf32> {
  %0 = "stablehlo.select_and_scatter"(%x, %u, %init) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}
    : (tensor<6xf32>, tensor<3xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}
