// RUN: stablehlo-opt %s --pass-pipeline='hlo-pack-invariants' --split-input-file | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='hlo-pack-invariants,hlo-form-kernels{rows=true products=true}' --split-input-file | FileCheck %s --check-prefix=KERNEL

// Panels of 32 columns are made in front of the loop; the product's kernel takes them as they are.
// CHECK-LABEL: func.func @main
// CHECK: %[[SPLIT:[0-9]+]] = stablehlo.reshape %{{.*}} : (tensor<192x96xf32>) -> tensor<192x3x32xf32>
// CHECK: %[[P:[0-9]+]] = stablehlo.transpose %[[SPLIT]], dims = [1, 0, 2]
// CHECK: stablehlo.while
// CHECK: stablehlo.transpose %[[P]], dims = [1, 0, 2] {kernel.unpack}
// CHECK: %[[W:[0-9]+]] = stablehlo.reshape {{.*}} {kernel.unpack}
// CHECK: stablehlo.dot_general %{{.*}}, %[[W]], contracting_dims = [1] x [0]
// KERNEL-LABEL: func.func @main
// KERNEL: %[[P:[0-9]+]] = call @transpose_
// KERNEL: stablehlo.while
// KERNEL-NOT: call @transpose
// KERNEL: call @product_tanh_{{[0-9]+}}(%[[P]]
func.func @main(%x: tensor<16x192xf32>, %w: tensor<192x96xf32>, %v: tensor<96x192xf32>) -> tensor<16x192xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<16x192xf32>
  cond {
    %go = stablehlo.compare LT, %i, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<16x192xf32>, tensor<192x96xf32>) -> tensor<16x96xf32>
    %b = stablehlo.tanh %a : tensor<16x96xf32>
    %c = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<16x96xf32>) -> tensor<16x96x2xf32>
    %d = stablehlo.reshape %c : (tensor<16x96x2xf32>) -> tensor<16x192xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %d : tensor<i32>, tensor<16x192xf32>
  }
  return %r#1 : tensor<16x192xf32>
}

// -----

// Few rows read rhs once, without packing it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: kernel.unpack
func.func @main(%x: tensor<8x192xf32>, %w: tensor<192x192xf32>) -> tensor<8x192xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<8x192xf32>
  cond {
    %go = stablehlo.compare LT, %i, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] : (tensor<8x192xf32>, tensor<192x192xf32>) -> tensor<8x192xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %a : tensor<i32>, tensor<8x192xf32>
  }
  return %r#1 : tensor<8x192xf32>
}
