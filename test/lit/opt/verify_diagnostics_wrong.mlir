// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-refuse --verify-diagnostics 2>&1 | FileCheck %s

// CHECK-DAG: verify_diagnostics_wrong.mlir:[[# @LINE + 5]]: error: unexpected error: stablehlo.subtract is refused
// CHECK-DAG: verify_diagnostics_wrong.mlir:[[# @LINE + 4]]: error: expected warning "is refused" was not produced
// CHECK-DAG: verify_diagnostics_wrong.mlir:[[# @LINE + 4]]: error: expected error "something else" was not produced
// CHECK-DAG: verify_diagnostics_wrong.mlir:[[# @LINE + 3]]: error: unexpected error: stablehlo.subtract is refused
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<4xf32> // expected-warning {{is refused}}
  %1 = stablehlo.subtract %x, %x : tensor<4xf32> // expected-error {{something else}}
  return %0 : tensor<4xf32>
}
