// RUN: not stablehlo-opt %s --pipeline=cpu 2>&1 | FileCheck %s

// A function that nobody registered is refused before anything is lowered, with the place and what to do.
// CHECK: custom_call.mlir:9:
// CHECK-SAME: custom_call @nobody_has_this is not supported: no function is registered under this name
// CHECK: hint: stablehlo_py.register_custom_call('nobody_has_this', function) makes one known
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.custom_call @nobody_has_this(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
