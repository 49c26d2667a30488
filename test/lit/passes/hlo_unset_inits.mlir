// RUN: stablehlo-opt %s --pass-pipeline='hlo-unset-inits' --split-input-file | FileCheck %s

// Row i in step i, from the last to the first in the other one.
// CHECK-LABEL: func.func @all_rows
// CHECK: %[[A:.*]] = stablehlo.custom_call @stablehlo_py.unset() : () -> tensor<4x3xf32>
// CHECK: %[[B:.*]] = stablehlo.custom_call @stablehlo_py.unset() : () -> tensor<3x4xf32>
// CHECK: stablehlo.while({{.*}} = %[[A]], {{.*}} = %[[B]])
func.func @all_rows(%x: tensor<1x3xf32>, %y: tensor<4x3xf32>, %u: tensor<3x1xf32>, %v: tensor<3x4xf32>) -> (tensor<4x3xf32>, tensor<3x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %y, %b = %v) : tensor<i32>, tensor<4x3xf32>, tensor<3x4xf32>
  cond {
    %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %new = stablehlo.dynamic_update_slice %a, %x, %i, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    %back = stablehlo.subtract %three, %i : tensor<i32>
    %other = stablehlo.dynamic_update_slice %b, %u, %zero, %back : (tensor<3x4xf32>, tensor<3x1xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    %next = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %next, %new, %other : tensor<i32>, tensor<4x3xf32>, tensor<3x4xf32>
  }
  return %r#1, %r#2 : tensor<4x3xf32>, tensor<3x4xf32>
}

// -----

// The first row is never written in one; the other one is read.
// CHECK-LABEL: func.func @not_all
// CHECK-NOT: custom_call
func.func @not_all(%x: tensor<1x3xf32>, %y: tensor<4x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %y, %b = %y) : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dynamic_update_slice %a, %x, %next, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    %row = stablehlo.slice %b [3:4, 0:3] : (tensor<4x3xf32>) -> tensor<1x3xf32>
    %other = stablehlo.dynamic_update_slice %b, %row, %i, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    stablehlo.return %next, %new, %other : tensor<i32>, tensor<4x3xf32>, tensor<4x3xf32>
  }
  return %r#1, %r#2 : tensor<4x3xf32>, tensor<4x3xf32>
}

// -----

// Too few steps, and none that are known.
// CHECK-LABEL: func.func @too_few_steps
// CHECK-NOT: custom_call
func.func @too_few_steps(%x: tensor<1x3xf32>, %y: tensor<4x3xf32>, %n: tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<4x3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dynamic_update_slice %a, %x, %i, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x3xf32>
  }
  %s:2 = stablehlo.while(%i = %zero, %a = %y) : tensor<i32>, tensor<4x3xf32>
  cond {
    %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dynamic_update_slice %a, %x, %i, %zero : (tensor<4x3xf32>, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> tensor<4x3xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<4x3xf32>
  }
  return %r#1, %s#1 : tensor<4x3xf32>, tensor<4x3xf32>
}
