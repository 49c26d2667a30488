// RUN: shlo report --target=cpu %s | FileCheck %s

// A loop that is one kernel has all the ops of its steps, the counting too.
// CHECK: loop_0 {{ *}}1 {{ *}}400 B {{ *}}404 B {{ *}}0.37 compare, dynamic_slice, add x2, dynamic_update_slice, while
// CHECK-NOT: within a loop
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
