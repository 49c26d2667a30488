// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg -o %t
// RUN: stablehlo-opt %t --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-contractions{features=+avx512f,+avx512vl,+avx512bw})' | FileCheck %s
// RUN: stablehlo-opt %t --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-contractions{features=+avx2})' | FileCheck %s --check-prefix=AVX2

// Panels that the second-level cache does not hold until the next rows are asked for beside the tiles of the one before:
// a row of a panel, four lines, in each stretch of as many steps as there are tiles. With few registers steps are too short.
// CHECK-LABEL: @dot_general_0
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
// CHECK-COUNT-4: memref.prefetch {{.*}} memref<1048576xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
// CHECK-COUNT-24: vector.fma
// AVX2-LABEL: @dot_general_0
// AVX2-NOT: memref.prefetch
// AVX2: vector.fma
func.func @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
