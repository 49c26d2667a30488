// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg | stablehlo-opt --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx2})' | FileCheck %s

// A window of five, for which there is no filter of Winograd's. Output features are in the lanes; each step copies the rows that it reads with their zeros, and packs its panel.
// CHECK-LABEL: func.func public @convolution_0
// CHECK-SAME: (%[[X:.*]]: memref<50176xf32>, %[[W:.*]]: memref<25600xf32>, %[[OUT:.*]]: memref<50176xf32>)
// CHECK: scf.for
// CHECK: vector.load %[[X]]
// CHECK: unrealized_conversion_cast %[[W]]
// CHECK: unrealized_conversion_cast %[[OUT]]
// CHECK: llvm.load {{.*}} vector<1xf32>
// CHECK: vector.shuffle
// CHECK: llvm.load {{.*}} vector<8xf32>
// CHECK: vector.fma
// CHECK: llvm.store {{.*}} vector<8xf32>
// CHECK: } {kernel.parallel}
// CHECK-NOT: linalg
func.func @main(%x: tensor<2x28x28x32xf32>, %w: tensor<5x5x32x32xf32>) -> tensor<2x28x28x32xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[2, 2], [2, 2]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x28x28x32xf32>, tensor<5x5x32x32xf32>) -> tensor<2x28x28x32xf32>
  return %0 : tensor<2x28x28x32xf32>
}
