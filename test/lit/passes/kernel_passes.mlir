// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels{rows=true},hlo-to-linalg{target=cpu},canonicalize,cse,kernels-to-memref,eliminate-empty-tensors,one-shot-bufferize,canonicalize,cse,kernel-scratch,kernel-mark-parallel' --split-input-file | FileCheck %s
// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=loops --split-input-file | FileCheck %s --check-prefix=LOOPS

// Inputs, then outputs, all buffers; @main is gone; the result is written where it belongs; the loop can be split.
// CHECK-NOT: @main
// CHECK-LABEL: func.func public @elementwise_add_0
// CHECK-SAME: (%{{.*}}: memref<40x50xf32>, %{{.*}}: memref<2000xf32>) attributes {{.*}}kernel.extent = 2000
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: linalg.generic
// LOOPS-LABEL: func.func public @elementwise_add_0
// LOOPS-SAME: %[[BEGIN:[a-z0-9]+]]: index, %[[END:[a-z0-9]+]]: index)
// LOOPS: scf.for %{{.*}} = %[[BEGIN]] to %[[END]]
// LOOPS-NOT: scf.for
// LOOPS: return
func.func @main(%x: tensor<40x50xf32>) -> tensor<40x50xf32> {
  %0 = stablehlo.add %x, %x : tensor<40x50xf32>
  return %0 : tensor<40x50xf32>
}

// -----

// What is kept of a row is scratch, an argument after the outputs, or on the stack when small.
// CHECK-LABEL: func.func public @rows_divide_0
// CHECK-SAME: (%{{.*}}: memref<8x4096xf32>, %{{.*}}: memref<8xf32>, %{{.*}}: memref<8x4096xf32>, %[[KEPT:.*]]: memref<4096xf32>) attributes
// LOOPS-LABEL: func.func public @rows_divide_0
// LOOPS: scf.for
func.func @main(%x: tensor<8x4096xf32>) -> (tensor<8x4096xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.exponential %x : tensor<8x4096xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<8x4096xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<8xf32>) -> tensor<8x4096xf32>
  %3 = stablehlo.divide %0, %2 : tensor<8x4096xf32>
  return %3, %1 : tensor<8x4096xf32>, tensor<8xf32>
}

// -----

// An update in place works in its own output, which starts as the operand.
// CHECK-LABEL: func.func public @scatter_0
// CHECK-SAME: (%[[OPERAND:[a-z0-9]+]]: memref<64xf32>
// CHECK-NOT: memref.copy %[[OPERAND]]
// CHECK-NOT: linalg.copy ins(%[[OPERAND]]
// CHECK: return
func.func @main(%x: tensor<64xf32>, %i: tensor<3x1xi32>, %u: tensor<3xf32>) -> tensor<64xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<64xf32>, tensor<3x1xi32>, tensor<3xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
