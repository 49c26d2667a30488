// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels{rows=true products=true}' --split-input-file | FileCheck %s

// What is done to each element of a product is in its kernel, a row read along the columns included.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: call @[[K:product_maximum_[0-9]+]]
// CHECK-NEXT: return
// CHECK: func.func private @[[K]]({{.*}}) -> tensor<16x32xf32> attributes {kernel = "product"}
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.maximum
func.func @main(%a: tensor<16x64xf32>, %b: tensor<64x32xf32>, %bias: tensor<32xf32>) -> tensor<16x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<16x32xf32>
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<32xf32>) -> tensor<16x32xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x32xf32>
  %3 = stablehlo.maximum %2, %zero : tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
}

// -----

// What makes an operand of the product stays in front of it, even where it is read again behind it.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: %[[T:.*]] = call @elementwise_tanh_{{[0-9]+}}
// CHECK-NEXT: call @product_add_{{[0-9]+}}(%[[T]]
// CHECK-NEXT: return
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %t = stablehlo.tanh %a : tensor<32x32xf32>
  %0 = stablehlo.dot_general %t, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = stablehlo.add %0, %t : tensor<32x32xf32>
  return %1 : tensor<32x32xf32>
}

// -----

// Of two products only one takes the sum of both.
// CHECK-LABEL: func.func @main
// CHECK: call @{{dot_general|product_add}}
// CHECK-NEXT: call @product_add_{{[0-9]+}}
// CHECK-NEXT: return
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = stablehlo.add %0, %1 : tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// -----

// A transposed read is not at the element's own place, a sine is not among the ops that vectors do.
// CHECK-LABEL: func.func @main
// CHECK: call @dot_general_
// CHECK: call @elementwise_sine_
func.func @main(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1, 0] : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %2 = stablehlo.sine %1 : tensor<32x32xf32>
  return %2 : tensor<32x32xf32>
}

// -----

// The sums of few rows never stay in registers: nothing joins their product.
// CHECK-LABEL: func.func @main
// CHECK: call @dot_general_
// CHECK: call @elementwise_tanh_
func.func @main(%a: tensor<4x256xf32>, %b: tensor<256x256xf32>) -> tensor<4x256xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x256xf32>, tensor<256x256xf32>) -> tensor<4x256xf32>
  %1 = stablehlo.tanh %0 : tensor<4x256xf32>
  return %1 : tensor<4x256xf32>
}
