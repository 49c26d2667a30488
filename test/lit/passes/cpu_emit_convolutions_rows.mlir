// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg | stablehlo-opt --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx2})' | FileCheck %s

// A tile goes on from one row of the image in the next: a table has where the places are, which the zeros keep apart.
// CHECK-LABEL: func.func public @convolution_0
// CHECK: %[[TABLE:.*]] = memref.alloc() {{.*}} : memref<49xi64>
// CHECK: memref.store %{{.*}}, %[[TABLE]]
// CHECK-COUNT-5: memref.load %[[TABLE]]
// CHECK: vector.fma
func.func @main(%x: tensor<1x7x7x64xf32>, %w: tensor<3x3x64x16xf32>) -> tensor<1x7x7x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x7x7x64xf32>, tensor<3x3x64x16xf32>) -> tensor<1x7x7x16xf32>
  return %0 : tensor<1x7x7x16xf32>
}
