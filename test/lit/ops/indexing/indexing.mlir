// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// CHECK-LABEL: func.func @dynamic_slice
// CHECK: %[[AT:.*]] = arith.maxsi
// CHECK: tensor.extract_slice %{{.*}}[%[[AT]], 0] [2, 4] [1, 1] : tensor<5x4xf32> to tensor<2x4xf32>
func.func @dynamic_slice(%x: tensor<5x4xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<2x4xf32> {
  %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 4] : (tensor<5x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// A large unsigned index is not a negative one.
// CHECK-LABEL: func.func @dynamic_update_slice
// CHECK: arith.minui
// CHECK: arith.index_cast
// CHECK: tensor.insert_slice
func.func @dynamic_update_slice(%x: tensor<5xf32>, %u: tensor<2xf32>, %i: tensor<ui64>) -> tensor<5xf32> {
  %0 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<5xf32>, tensor<2xf32>, tensor<ui64>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// The start of a row is computed outside the loop over the row.
// CHECK-LABEL: func.func @gather_rows
// CHECK: scf.for
// CHECK: arith.index_cast
// CHECK: scf.for
// CHECK-NOT: arith.index_cast
// CHECK: tensor.insert
func.func @gather_rows(%x: tensor<5x4xf32>, %i: tensor<3x1xi32>) -> tensor<3x4xf32> {
  %0 = "stablehlo.gather"(%x, %i) {slice_sizes = array<i64: 1, 4>, dimension_numbers =
    #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}
    : (tensor<5x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// Single elements are one parallel loop.
// CHECK-LABEL: func.func @gather_elements
// CHECK-NOT: scf.for
// CHECK: linalg.generic
// CHECK: tensor.extract
func.func @gather_elements(%x: tensor<5xf32>, %i: tensor<3x1xi32>) -> tensor<3xf32> {
  %0 = "stablehlo.gather"(%x, %i) {slice_sizes = array<i64: 1>, dimension_numbers =
    #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}
    : (tensor<5xf32>, tensor<3x1xi32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
