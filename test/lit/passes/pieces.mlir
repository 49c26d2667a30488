// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels{rows=true products=true pieces=true}' --split-input-file | FileCheck %s

// Elementwise ops read slices where they lie in memory: parts of a product make no kernels of their own.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[P:.*]] = call @dot_general_{{[0-9]+}}
// CHECK-NEXT: call @[[K:elementwise_multiply_[0-9]+]](%[[P]])
// CHECK-NEXT: return
// CHECK: func.func private @[[K]](%{{.*}}: tensor<32x256xf32>) -> tensor<32x128xf32>
// CHECK: stablehlo.slice
// CHECK: stablehlo.slice
func.func @main(%a: tensor<32x64xf32>, %b: tensor<64x256xf32>) -> tensor<32x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x64xf32>, tensor<64x256xf32>) -> tensor<32x256xf32>
  %1 = stablehlo.slice %0 [0:32, 0:128] : (tensor<32x256xf32>) -> tensor<32x128xf32>
  %2 = stablehlo.slice %0 [0:32, 128:256] : (tensor<32x256xf32>) -> tensor<32x128xf32>
  %3 = stablehlo.multiply %1, %2 : tensor<32x128xf32>
  return %3 : tensor<32x128xf32>
}

// -----

// One that another kind of op reads too is made once; so is one of short runs, which would make short loops.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[S:.*]] = call @slice_{{[0-9]+}}
// CHECK-NEXT: %[[D:.*]] = call @product_divide_{{[0-9]+}}(%[[S]])
// CHECK-NEXT: %[[T:.*]] = call @slice_{{[0-9]+}}
// CHECK-NEXT: call @elementwise_negate_{{[0-9]+}}(%[[T]])
func.func @main(%a: tensor<64x256xf32>, %b: tensor<64x256xf32>) -> (tensor<64x64xf32>, tensor<64x8xf32>) {
  %0 = stablehlo.slice %a [0:64, 0:64] : (tensor<64x256xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %2 = stablehlo.tanh %0 : tensor<64x64xf32>
  %3 = stablehlo.divide %1, %2 : tensor<64x64xf32>
  %4 = stablehlo.slice %b [0:64, 0:8] : (tensor<64x256xf32>) -> tensor<64x8xf32>
  %5 = stablehlo.negate %4 : tensor<64x8xf32>
  return %3, %5 : tensor<64x64xf32>, tensor<64x8xf32>
}

// -----

// What a slice is cut from is in memory before its reader begins: they are two kernels though their shapes are one.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[E:.*]] = call @elementwise_exponential_{{[0-9]+}}
// CHECK-NEXT: call @elementwise_add_{{[0-9]+}}(%[[E]])
// CHECK-NEXT: return
func.func @main(%a: tensor<32x128xf32>) -> tensor<32x128xf32> {
  %0 = stablehlo.exponential %a : tensor<32x128xf32>
  %1 = stablehlo.slice %0 [3:4, 0:128] : (tensor<32x128xf32>) -> tensor<1x128xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<1x128xf32>) -> tensor<32x128xf32>
  %3 = stablehlo.add %0, %2 : tensor<32x128xf32>
  return %3 : tensor<32x128xf32>
}
