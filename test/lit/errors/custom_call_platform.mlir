// RUN: not stablehlo-opt %s --pipeline=cpu 2>&1 | FileCheck %s

// CHECK: custom_call @cusolver_getrf_ffi is not supported: it is a function of a GPU's libraries
// CHECK: hint: export the program for the CPU
func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<i32>) {
  %0:3 = stablehlo.custom_call @cusolver_getrf_ffi(%x) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xi32>, tensor<i32>)
  return %0#0, %0#1, %0#2 : tensor<4x4xf32>, tensor<4xi32>, tensor<i32>
}
