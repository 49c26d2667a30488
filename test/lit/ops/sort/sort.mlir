// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// Runs go to and fro between the two rows of a buffer, allocated once for all slices.
// CHECK-LABEL: func.func @sort
// CHECK: bufferization.alloc_tensor() : tensor<2x7xi32>
// CHECK: scf.for
// CHECK-NOT: alloc_tensor
// CHECK: arith.cmpi slt
// CHECK: return
func.func @sort(%x: tensor<3x7xi32>) -> tensor<3x7xi32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x7xi32>) -> tensor<3x7xi32>
  return %0 : tensor<3x7xi32>
}

// One element is in order.
// CHECK-LABEL: func.func @sort_of_one
// CHECK-NOT: scf.for
// CHECK: return
func.func @sort_of_one(%x: tensor<3x1xi32>) -> tensor<3x1xi32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<3x1xi32>) -> tensor<3x1xi32>
  return %0 : tensor<3x1xi32>
}

// Floats are compared by their bits, in total order.
// CHECK-LABEL: func.func @top_k
// CHECK: arith.bitcast
// CHECK: arith.cmpi sgt
func.func @top_k(%x: tensor<9xf32>) -> (tensor<2xf32>, tensor<2xi32>) {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<9xf32> -> (tensor<2xf32>, tensor<2xi32>)
  return %0#0, %0#1 : tensor<2xf32>, tensor<2xi32>
}
