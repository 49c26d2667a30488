// RUN: stablehlo-opt %s --pass-pipeline='hlo-hoist-products' --split-input-file | FileCheck %s

// The product of each step's slice is a slice of the product of all, through a reshape and a cast.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<6x3x4xbf16>, %[[W:.*]]: tensor<4x5xf32>
// CHECK: %[[WIDE:[0-9]+]] = stablehlo.convert %[[X]]
// CHECK: %[[ALL:[0-9]+]] = stablehlo.dot_general %[[WIDE]], %[[W]], contracting_dims = [2] x [0] : {{.*}} -> tensor<6x3x5xf32>
// CHECK: stablehlo.while(%[[I:[a-zA-Z0-9_]+]] =
// CHECK: stablehlo.dynamic_slice %[[ALL]], %[[I]], {{.*}} sizes = [1, 3, 5]
// CHECK-NOT: stablehlo.dot_general
// CHECK: return
func.func @main(%x: tensor<6x3x4xbf16>, %w: tensor<4x5xf32>, %h: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %h) : tensor<i32>, tensor<3x5xf32>
  cond {
    %go = stablehlo.compare LT, %i, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 3, 4]
      : (tensor<6x3x4xbf16>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xbf16>
    %b = stablehlo.reshape %a : (tensor<1x3x4xbf16>) -> tensor<3x4xbf16>
    %c = stablehlo.convert %b : (tensor<3x4xbf16>) -> tensor<3x4xf32>
    %d = stablehlo.dot_general %c, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
    %e = stablehlo.add %s, %d : tensor<3x5xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %e : tensor<i32>, tensor<3x5xf32>
  }
  return %r#1 : tensor<3x5xf32>
}

// -----

// A loop of fewer steps than there are slices multiplies only those that it reads.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general
func.func @main(%x: tensor<6x3x4xf32>, %w: tensor<4x5xf32>, %h: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %h) : tensor<i32>, tensor<3x5xf32>
  cond {
    %go = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 3, 4]
      : (tensor<6x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
    %b = stablehlo.reshape %a : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    %d = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
    %e = stablehlo.add %s, %d : tensor<3x5xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %e : tensor<i32>, tensor<3x5xf32>
  }
  return %r#1 : tensor<3x5xf32>
}

// -----

// The slice as rhs, with its dimension of size 1: the outermost dimension of all lands behind the rows of lhs.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:[0-9]+]] = stablehlo.dot_general {{.*}} contracting_dims = [1] x [2] : {{.*}} -> tensor<5x6x3xf32>
// CHECK: stablehlo.while(%[[I:[a-zA-Z0-9_]+]] =
// CHECK: stablehlo.dynamic_slice %[[ALL]], %{{.*}}, %[[I]], %{{.*}}, sizes = [5, 1, 3]
func.func @main(%x: tensor<6x3x4xf32>, %w: tensor<5x4xf32>, %h: tensor<5x1x3xf32>) -> tensor<5x1x3xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %h) : tensor<i32>, tensor<5x1x3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %a = stablehlo.dynamic_slice %x, %i, %zero, %zero, sizes = [1, 3, 4]
      : (tensor<6x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
    %d = stablehlo.dot_general %w, %a, contracting_dims = [1] x [2] : (tensor<5x4xf32>, tensor<1x3x4xf32>) -> tensor<5x1x3xf32>
    %e = stablehlo.add %s, %d : tensor<5x1x3xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %e : tensor<i32>, tensor<5x1x3xf32>
  }
  return %r#1 : tensor<5x1x3xf32>
}
