// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg{target=cpu})' | FileCheck %s

// Digits of 8 bits, counted in one read; the elements go to and fro between two rows. The key gives them back.
// CHECK-LABEL: func.func @by_digits
// CHECK: memref.alloc() {{.*}}: memref<3x700x1xi32>
// CHECK: memref.alloc() {{.*}}: memref<2x700xi32>
// CHECK: memref.alloc() {{.*}}: memref<4x256xi32>
// CHECK-NOT: arith.cmpi slt
// CHECK: kernel.parallel
func.func @by_digits(%x: tensor<3x700xi32>) -> tensor<3x700xi32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<3x700xi32>) -> tensor<3x700xi32>
  return %0 : tensor<3x700xi32>
}

// The operand that moves with a key of 32 bits makes a word of 64 with it.
// CHECK-LABEL: func.func @key_and_value
// CHECK: memref.alloc() {{.*}}: memref<2x700xi64>
func.func @key_and_value(%x: tensor<700xi32>, %y: tensor<700xf32>) -> (tensor<700xi32>, tensor<700xf32>) {
  %0:2 = "stablehlo.sort"(%x, %y) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<f32>):
      %1 = stablehlo.compare GT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64, is_stable = true} : (tensor<700xi32>, tensor<700xf32>) -> (tensor<700xi32>, tensor<700xf32>)
  return %0#0, %0#1 : tensor<700xi32>, tensor<700xf32>
}

// a <= b is no strict order: equal elements would change places. A merge sort does what the comparator says.
// CHECK-LABEL: func.func @not_strict
// CHECK: bufferization.alloc_tensor() : tensor<2x700xi32>
// CHECK: arith.cmpi sle
func.func @not_strict(%x: tensor<700xi32>) -> tensor<700xi32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %1 = stablehlo.compare LE, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<700xi32>) -> tensor<700xi32>
  return %0 : tensor<700xi32>
}

// The two sides are not treated alike.
// CHECK-LABEL: func.func @not_alike
// CHECK: bufferization.alloc_tensor() : tensor<2x700xi32>
func.func @not_alike(%x: tensor<700xi32>) -> tensor<700xi32> {
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %n = stablehlo.negate %b : tensor<i32>
      %1 = stablehlo.compare LT, %a, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<700xi32>) -> tensor<700xi32>
  return %0 : tensor<700xi32>
}

// Eight slices at once: words of 32 bits of the key and 3 of the place, ordered by minima and maxima.
// CHECK-LABEL: func.func @side_by_side
// CHECK: memref.alloc() {{.*}}: memref<5x8xi64>
// CHECK: arith.minsi {{.*}} : vector<8xi64>
// CHECK: kernel.parallel
func.func @side_by_side(%x: tensor<100x5xf32>) -> tensor<100x5xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.sort"(%x) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<100x5xf32>) -> tensor<100x5xf32>
  return %0 : tensor<100x5xf32>
}

// A block is looked at only where its largest beats the last of the two that are kept.
// CHECK-LABEL: func.func @top_k
// CHECK: arith.maxsi {{.*}} : vector<16xi32>
// CHECK: vector.reduction <maxsi>
// CHECK: scf.if
func.func @top_k(%x: tensor<3x900xf32>) -> (tensor<3x2xf32>, tensor<3x2xi32>) {
  %0:2 = chlo.top_k(%x, k = 2) : tensor<3x900xf32> -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return %0#0, %0#1 : tensor<3x2xf32>, tensor<3x2xi32>
}
