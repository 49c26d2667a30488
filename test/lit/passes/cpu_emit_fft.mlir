// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(cpu-emit-fft{features=+avx2})' --split-input-file | FileCheck %s

// Rows of 64 values, eight at a time in the lanes: squares are turned, three passes of 4, and turned back. The twiddles of
// the second and third pass are a constant.
// CHECK: memref.global "private" constant @fft_twiddles_64_16_f32 : memref<120xf32>
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: memref<2560xf32>, %[[OUT:.*]]: memref<2560xf32>)
// CHECK: scf.for
// CHECK: builtin.unrealized_conversion_cast %[[X]]
// CHECK: llvm.load {{.*}} -> vector<8xf32>
// CHECK: vector.shuffle
// CHECK: vector.fma
// CHECK: builtin.unrealized_conversion_cast %[[OUT]]
// CHECK: llvm.store
// CHECK: } {kernel.parallel}
func.func @rows(%x: memref<20x64xcomplex<f32>>, %out: memref<20x64xcomplex<f32>>)
    attributes {kernel = "single", kernel.fft = ["FFT", array<i64: 20, 64>, "f32"]} {
  return
}

// -----

// Two dimensions: each step of the outermost loop does one element of the batch, by way of a plane of scratch.
// CHECK-LABEL: func.func @planes
// CHECK-SAME: (%[[X:.*]]: memref<3072xf32>, %[[OUT:.*]]: memref<3264xf32>)
// CHECK: %[[PLANE:.*]] = memref.alloc() {{.*}} : memref<1088xf32>
// CHECK: builtin.unrealized_conversion_cast %[[X]]
// CHECK: builtin.unrealized_conversion_cast %[[PLANE]]
// CHECK: llvm.store
// CHECK: builtin.unrealized_conversion_cast %[[PLANE]]
// CHECK: llvm.load
// CHECK: builtin.unrealized_conversion_cast %[[OUT]]
// CHECK: llvm.store
// CHECK: } {kernel.parallel}
func.func @planes(%x: memref<3x32x32xf32>, %out: memref<3x32x17xcomplex<f32>>)
    attributes {kernel = "single", kernel.fft = ["RFFT", array<i64: 3, 32, 32>, "f32"]} {
  return
}
