// RUN: stablehlo-opt %s --pass-pipeline='hlo-loop-kernels' --split-input-file | FileCheck %s

// A loop that is known to be short is a call; the array that it changes is updated in place.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.while
// CHECK: %[[R:.*]]:2 = call @[[K:loop_[0-9]+]](%{{.*}}) : (tensor<100xf32>) -> (tensor<i32>, tensor<100xf32>)
// CHECK-NOT: stablehlo.while
// CHECK: return %[[R]]#1
// CHECK: func.func private @[[K]]({{.*}}) -> (tensor<i32>, tensor<100xf32>) attributes {kernel = "loop", kernel.inplace = array<i64: 0, 1>}
// CHECK: stablehlo.while
func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<100> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %t = %x) : tensor<i32>, tensor<100xf32>
  cond {
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %e = stablehlo.dynamic_slice %t, %i, sizes = [1] : (tensor<100xf32>, tensor<i32>) -> tensor<1xf32>
    %d = stablehlo.add %e, %e : tensor<1xf32>
    %u = stablehlo.dynamic_update_slice %t, %d, %i : (tensor<100xf32>, tensor<1xf32>, tensor<i32>) -> tensor<100xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %u : tensor<i32>, tensor<100xf32>
  }
  return %r#1 : tensor<100xf32>
}

// -----

// One that nobody knows the length of goes on as long as its kernel says so; that counts its steps.
// CHECK-LABEL: func.func @main
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK: stablehlo.while(%[[X:.*]] = %{{.*}}, %[[GOING:.*]] = %[[TRUE]])
// CHECK: stablehlo.return %[[GOING]]
// CHECK: func.call @[[K:loop_[0-9]+]](%[[X]]) : (tensor<f32>) -> (tensor<f32>, tensor<i1>)
// CHECK: func.func private @[[K]]
// CHECK: stablehlo.while(%{{.*}} = %{{.*}}, %[[COUNT:.*]] = %{{.*}}) : tensor<f32>, tensor<i32>
// CHECK: stablehlo.compare LT, %[[COUNT]], %{{.*}} : (tensor<i32>, tensor<i32>)
// CHECK: %[[AFTER:.*]] = stablehlo.compare GT
// CHECK: return %{{.*}}#0, %[[AFTER]]
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<f32>
  %r = stablehlo.while(%y = %x) : tensor<f32>
  cond {
    %go = stablehlo.compare GT, %y, %one : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %z = stablehlo.multiply %y, %half : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }
  return %r : tensor<f32>
}

// -----

// Steps on more elements than registers hold are left to kernels on vectors. They say whether another one follows.
// CHECK-LABEL: func.func @main
// CHECK: %[[TRUE:.*]] = stablehlo.constant dense<true>
// CHECK: stablehlo.while({{.*}}, %[[GOING:.*]] = %[[TRUE]])
// CHECK: cond {
// CHECK-NEXT: stablehlo.return %[[GOING]]
// CHECK: do {
// CHECK: %[[NEXT:.*]] = stablehlo.add
// CHECK: %[[MORE:.*]] = stablehlo.compare LT, %[[NEXT]],
// CHECK: stablehlo.return %[[NEXT]], %{{.*}}, %[[MORE]]
// CHECK-NOT: call
func.func @main(%x: tensor<100xf32>) -> tensor<100xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<100> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %t = %x) : tensor<i32>, tensor<100xf32>
  cond {
    %go = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %d = stablehlo.multiply %t, %t : tensor<100xf32>
    %n = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %n, %d : tensor<i32>, tensor<100xf32>
  }
  return %r#1 : tensor<100xf32>
}
