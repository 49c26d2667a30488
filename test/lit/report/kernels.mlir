// RUN: shlo report --target=cpu %s | FileCheck %s
// RUN: shlo report --target=cpu %s --json | FileCheck %s --check-prefix=JSON
// RUN: not shlo report --target=cpu %s -o %t.html 2>&1 | FileCheck %s --check-prefix=PAGE

// CHECK: kernel {{ *}}calls {{ *}}read {{ *}}written {{ *}}flop/byte ops
// CHECK: elementwise_multiply_0 {{ *}}1* {{ *}}4.0 KiB {{ *}}4.0 KiB {{ *}}0.12 multiply
// CHECK: elementwise_compare_1 {{ *}}1* {{.*}} add, compare
// CHECK: rows_divide_2 {{ *}}1 {{ *}}4.0 KiB {{ *}}4.0 KiB {{.*}} exponential, reduce, divide
// CHECK-NEXT: from {{.*}}kernels.mlir:22, 24, 25, 27, 28
// CHECK: sort_3 {{ *}}1
// CHECK: * within a loop
// CHECK-NEXT: no kernels: while x1
// CHECK: through memory
// CHECK-NEXT: 4.0 KiB rows_divide_2 -> sort_3: sort is a kernel of its own: nothing joins what it reads

// JSON: "name": "rows_divide_2"
// JSON: "why": "sort is a kernel of its own: nothing joins what it reads"

// PAGE: the report on the CPU is a table or JSON

func.func @main(%x: tensor<32x32xf32>, %n: tensor<i32>) -> tensor<32x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.exponential %x : tensor<32x32xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<32x32xf32>, tensor<f32>) -> tensor<32xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<32xf32>) -> tensor<32x32xf32>
  %3 = stablehlo.divide %0, %2 : tensor<32x32xf32>
  %4 = "stablehlo.sort"(%3) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %5:2 = stablehlo.while(%i = %none, %y = %4) : tensor<i32>, tensor<32x32xf32>
  cond {
    %more = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    %square = stablehlo.multiply %y, %y : tensor<32x32xf32>
    stablehlo.return %next, %square : tensor<i32>, tensor<32x32xf32>
  }
  return %5#1 : tensor<32x32xf32>
}
