// RUN: stablehlo-opt %s --split-input-file --pipeline=gpu --stop-after=gpu | FileCheck %s --check-prefix=GPU
// RUN: stablehlo-opt %s --split-input-file --pipeline=gpu | FileCheck %s --check-prefix=NVVM

// A product fills tiles: one launch over blocks of 256 threads, the zero it starts from is not stored first.
// GPU-LABEL: gpu.container_module
// GPU-NOT: linalg
// GPU: gpu.launch_func @[[K:dot_general_0_contraction_0]]::@[[K]] blocks in
// GPU: gpu.func @[[K]](
// GPU-SAME: workgroup(%{{.*}} : memref<64x17xf32, #gpu.address_space<workgroup>>
// GPU: gpu.barrier
// NVVM-LABEL: gpu.module @dot_general_0_contraction_0
// NVVM: llvm.func @dot_general_0_contraction_0({{.*}}!llvm.ptr
// NVVM-SAME: nvvm.kernel
// NVVM-NOT: scf.
// NVVM-NOT: memref.
// NVVM: nvvm.barrier
// NVVM: llvm.fmul {{.*}}contract
func.func @main(%a: tensor<128x64xf32>, %b: tensor<64x128xf32>) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x64xf32>, tensor<64x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// -----

// A long row is summed by one block: shuffles within warps, shared memory across them.
// GPU: gpu.launch_func @[[R:rows_reduce_0_rowprogram_0]]::@[[R]]
// GPU: gpu.func @[[R]](
// GPU-COUNT-5: gpu.shuffle xor
// GPU: gpu.barrier
// NVVM-LABEL: gpu.module @rows_reduce_0_rowprogram_0
// NVVM-COUNT-5: nvvm.shfl.sync bfly
func.func @main(%a: tensor<8x1024xf32>, %z: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : (tensor<8x1024xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// Elementwise ops are one kernel, a thread an element; exp is a formula, not a call.
// GPU: gpu.launch_func @[[E:elementwise.*_loops_0]]::@[[E]]
// GPU-NOT: gpu.launch_func
// GPU: gpu.func @[[E]](
// GPU: arith.mulf
// GPU-NOT: math.exp
// GPU: math.fma
// NVVM-LABEL: gpu.module @elementwise
// NVVM: llvm.fmul
func.func @main(%a: tensor<1000xf32>, %b: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = stablehlo.multiply %a, %b : tensor<1000xf32>
  %1 = stablehlo.exponential %0 : tensor<1000xf32>
  return %1 : tensor<1000xf32>
}
