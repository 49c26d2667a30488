// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels,hlo-to-linalg{target=cpu},canonicalize,cse,kernels-to-memref,eliminate-empty-tensors,one-shot-bufferize,canonicalize,cse,kernel-scratch,kernel-mark-parallel' --split-input-file | FileCheck %s

// A copy goes row by row; rows of the one element in front are the rows.
// CHECK: func.func public @slice_0({{.*}}kernel.extent = 300
func.func @main(%x: tensor<8x300x40xf32>) -> tensor<1x300x40xf32> {
  %0 = stablehlo.slice %x [3:4, 0:300, 0:40] : (tensor<8x300x40xf32>) -> tensor<1x300x40xf32>
  return %0 : tensor<1x300x40xf32>
}

// -----

// Copies side by side write columns of the same rows.
// CHECK: func.func public @concatenate_0({{.*}}kernel.extent = 30
func.func @main(%x: tensor<30x8xf32>, %y: tensor<30x4xf32>) -> tensor<30x12xf32> {
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<30x8xf32>, tensor<30x4xf32>) -> tensor<30x12xf32>
  return %0 : tensor<30x12xf32>
}

// -----

// The rows that are copied are not those that zeros are written to first.
// CHECK-NOT: kernel.extent
func.func @main(%x: tensor<30x8xf32>) -> tensor<32x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1, 0], high = [1, 0], interior = [0, 0] : (tensor<30x8xf32>, tensor<f32>) -> tensor<32x8xf32>
  return %0 : tensor<32x8xf32>
}
