// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// Loops (m, k, n): the innermost is parallel and contiguous in rhs and in the result.
// CHECK-LABEL: func.func @matmul
// CHECK-SAME: (%[[X:.*]]: tensor<4x5xf32>, %[[Y:.*]]: tensor<5x6xf32>)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction", "parallel"]
// CHECK-SAME: ins(%[[X]], %[[Y]] : tensor<4x5xf32>, tensor<5x6xf32>)
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @matmul(%x: tensor<4x5xf32>, %y: tensor<5x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<4x5xf32>, tensor<5x6xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// rhs is contracted along its last dimension: it is transposed first.
// CHECK-LABEL: func.func @matmul_by_transposed
// CHECK-SAME: (%[[X:.*]]: tensor<4x5xf32>, %[[Y:.*]]: tensor<6x5xf32>)
// CHECK: %[[T:.*]] = linalg.generic
// CHECK-SAME: ins(%[[Y]] : tensor<6x5xf32>)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction", "parallel"]
// CHECK-SAME: ins(%[[X]], %[[T]] : tensor<4x5xf32>, tensor<5x6xf32>)
func.func @matmul_by_transposed(%x: tensor<4x5xf32>, %y: tensor<6x5xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
    : (tensor<4x5xf32>, tensor<6x5xf32>) -> tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}

// No free dimension of rhs: nothing to transpose, the sum is innermost.
// CHECK-LABEL: func.func @matrix_vector
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
func.func @matrix_vector(%x: tensor<4x5xf32>, %y: tensor<5xf32>) -> tensor<4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Small floats are summed in f32 and rounded once.
// CHECK-LABEL: func.func @bf16
// CHECK: linalg.fill
// CHECK-SAME: outs(%{{.*}} : tensor<4x6xf32>)
// CHECK: linalg.generic
// CHECK: linalg.yield %{{.*}} : f32
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}} : tensor<4x6xf32>) outs(%{{.*}} : tensor<4x6xi16>)
func.func @bf16(%x: tensor<4x5xbf16>, %y: tensor<5x6xbf16>) -> tensor<4x6xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<4x5xbf16>, tensor<5x6xbf16>) -> tensor<4x6xbf16>
  return %0 : tensor<4x6xbf16>
}

// Integers are extended to the result's type before they are multiplied.
// CHECK-LABEL: func.func @mixed_integers
// CHECK: arith.extsi
// CHECK: arith.extsi
// CHECK: arith.muli %{{.*}} : i32
func.func @mixed_integers(%x: tensor<4x5xi8>, %y: tensor<5x6xi8>) -> tensor<4x6xi32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x5xi8>, tensor<5x6xi8>) -> tensor<4x6xi32>
  return %0 : tensor<4x6xi32>
}
