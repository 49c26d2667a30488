// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg --split-input-file -o %t
// RUN: stablehlo-opt %t --split-input-file --pass-pipeline='builtin.module(kernels-to-memref,one-shot-bufferize,cpu-emit-contractions{features=+avx512f,+avx512vl,+avx512bw})' | FileCheck %s

// Rows of 4 KiB come to few sets of the second-level cache: the line that two panels share is asked for twice.
// CHECK-LABEL: @dot_general_0
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
// CHECK-COUNT-3: memref.prefetch {{.*}} memref<600x1024xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
func.func @main(%a: tensor<64x600xf32>, %b: tensor<600x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x600xf32>, tensor<600x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}

// -----

// Few rows find it there: panels of two lines are asked for by two.
// CHECK-LABEL: @dot_general_0
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
// CHECK-COUNT-2: memref.prefetch {{.*}} memref<200x1024xf32>
// CHECK-NOT: memref.prefetch
// CHECK: scf.for {{.*}} iter_args({{.*}}vector<16xf32>
func.func @main(%a: tensor<64x200xf32>, %b: tensor<200x1024xf32>) -> tensor<64x1024xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<64x200xf32>, tensor<200x1024xf32>) -> tensor<64x1024xf32>
  return %0 : tensor<64x1024xf32>
}
