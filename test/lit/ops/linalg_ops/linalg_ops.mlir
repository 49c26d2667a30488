// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// CHECK-LABEL: func.func @cholesky
// CHECK: scf.for
// CHECK: math.sqrt
// CHECK: scf.for
// CHECK: arith.divf
func.func @cholesky(%a: tensor<3x3xf32>) -> tensor<3x3xf32> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<3x3xf32>
  return %0 : tensor<3x3xf32>
}

// A unit diagonal is not divided by.
// CHECK-LABEL: func.func @unit_diagonal
// CHECK-COUNT-3: scf.for
// CHECK-NOT: arith.divf
// CHECK: return
func.func @unit_diagonal(%a: tensor<3x3xf32>, %b: tensor<3x2xf32>) -> tensor<3x2xf32> {
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = true,
    transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}
