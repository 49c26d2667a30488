// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg | stablehlo-opt --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx2})' | FileCheck %s

// A window of three: 14 rows of tiles of 2 x 2 places, 16 products for 36. A tile at an edge reads a copy of its part of the
// image; sums that are not finite are done again.
// CHECK-LABEL: func.func public @convolution_0
// CHECK-SAME: (%[[X:.*]]: memref<50176xf32>, %[[W:.*]]: memref<9216xf32>, %[[OUT:.*]]: memref<50176xf32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK-SAME: kernel.extent = 28 : i64
// CHECK: unrealized_conversion_cast %[[W]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: scf.if %{{.*}} -> (!llvm.ptr, index, index)
// CHECK: unrealized_conversion_cast %[[X]]
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1
// CHECK: vector.shuffle
// CHECK: vector.fma
// CHECK: unrealized_conversion_cast %[[OUT]]
// CHECK: arith.constant dense<2.500000e-01>
// CHECK: %[[MARKS:.*]] = vector.reduction <add>
// CHECK: %[[BAD:.*]] = arith.cmpf uno, %[[MARKS]], %[[MARKS]]
// CHECK: scf.if %[[BAD]]
// CHECK-NOT: linalg
func.func @main(%x: tensor<2x28x28x32xf32>, %w: tensor<3x3x32x32xf32>) -> tensor<2x28x28x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x28x28x32xf32>, tensor<3x3x32x32xf32>) -> tensor<2x28x28x32xf32>
  return %0 : tensor<2x28x28x32xf32>
}
