// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// The C library's complex functions take and give two f64; f32 is widened.
// CHECK: func.func private @csqrt(f64, f64) -> (f64, f64)
// CHECK-LABEL: func.func @sqrt
// CHECK: arith.extf
// CHECK: call @csqrt
// CHECK: arith.truncf
func.func @sqrt(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.sqrt %x : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// CHECK-LABEL: func.func @sqrt_f64
// CHECK-NOT: arith.extf
// CHECK: call @csqrt
func.func @sqrt_f64(%x: tensor<4xcomplex<f64>>) -> tensor<4xcomplex<f64>> {
  %0 = stablehlo.sqrt %x : tensor<4xcomplex<f64>>
  return %0 : tensor<4xcomplex<f64>>
}

// Multiplication stays in its own precision.
// CHECK-LABEL: func.func @multiply
// CHECK-NOT: f64
// CHECK: complex.create
func.func @multiply(%x: tensor<4xcomplex<f32>>, %y: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.multiply %x, %y : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
