// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// 16 = 4 * 4: two stages, and nothing else.
// CHECK-LABEL: func.func @two_stages
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @two_stages(%x: tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [16] : (tensor<3x16xcomplex<f32>>) -> tensor<3x16xcomplex<f32>>
  return %0 : tensor<3x16xcomplex<f32>>
}

// A prime factor above the unrolled ones is summed in f64.
// CHECK-LABEL: func.func @prime
// CHECK: linalg.generic
// CHECK-SAME: "reduction"
// CHECK: -> tensor<1x1x13x1x1xcomplex<f64>>
func.func @prime(%x: tensor<13xcomplex<f32>>) -> tensor<13xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [13] : (tensor<13xcomplex<f32>>) -> tensor<13xcomplex<f32>>
  return %0 : tensor<13xcomplex<f32>>
}

// Half of the spectrum of a real signal.
// CHECK-LABEL: func.func @real
// CHECK: tensor.extract_slice %{{.*}} : tensor<8xcomplex<f32>> to tensor<5xcomplex<f32>>
func.func @real(%x: tensor<8xf32>) -> tensor<5xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>
  return %0 : tensor<5xcomplex<f32>>
}
