// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg | stablehlo-opt --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-convolutions{features=+avx2})' | FileCheck %s

// Bytes go through F(4, 3): 7 rows of tiles of 4 x 4 places, 36 products for 144, of pairs in 16 bits. Results are 30 * 30 times
// too large: modulo 2^32 they are divided by 225, then by 4. The lines of a tile are transformed in loops, along one axis each.
// CHECK-LABEL: func.func public @convolution_0
// CHECK-SAME: (%[[X:.*]]: memref<50176xi8>, %[[W:.*]]: memref<9216xi8>, %[[OUT:.*]]: memref<50176xi32>, %[[BEGIN:.*]]: index, %[[END:.*]]: index)
// CHECK: unrealized_conversion_cast %[[W]]
// CHECK: arith.constant dense<15> : vector<16xi16>
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c1
// CHECK: arith.extsi {{.*}} : vector<16xi8> to vector<16xi16>
// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c36 step %c1
// CHECK: llvm.call_intrinsic "llvm.x86.avx2.pmadd.wd"
// CHECK: scf.for %{{.*}} = %c0 to %c6 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK: arith.constant dense<-2023406815> : vector<8xi32>
// CHECK: arith.muli
// CHECK: arith.constant dense<2> : vector<8xi32>
// CHECK: arith.shrsi
// CHECK-NOT: arith.cmpf
func.func @main(%x: tensor<2x28x28x32xi8>, %w: tensor<3x3x32x32xi8>) -> tensor<2x28x28x32xi32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x28x28x32xi8>, tensor<3x3x32x32xi8>) -> tensor<2x28x28x32xi32>
  return %0 : tensor<2x28x28x32xi32>
}
