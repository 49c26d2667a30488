// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-known-calls)' | FileCheck %s

// The computation that a call names becomes the region of the op; nothing calls it any more.
// CHECK-LABEL: func.func @main
// CHECK: %[[SORTED:.*]]:2 = "stablehlo.sort"(%arg0, %arg1) <{dimension = 1 : i64, is_stable = true}>
// CHECK: stablehlo.compare GT
// CHECK: stablehlo.slice %[[SORTED]]#0 [0:2, 0:3]
// CHECK: stablehlo.slice %[[SORTED]]#1 [0:2, 0:3]
// CHECK: chlo.top_k(%arg0, k = 2) : tensor<2x8xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
// CHECK: "stablehlo.reduce_window"(%arg0
// CHECK-SAME: window_dimensions = array<i64: 1, 2>
// CHECK: (tensor<2x8xf32>, tensor<f32>) -> tensor<2x4xf32>
// CHECK-NOT: custom_call
// CHECK-NOT: func.func
func.func @main(%x: tensor<2x8xf32>, %i: tensor<2x8xi32>, %a: tensor<f32>, %b: tensor<i32>)
    -> (tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>, tensor<2x4xf32>) {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %a, %b) {called_computations = [@greater],
    mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 3 : i64, recall_target = 0.95 : f32}}
    : (tensor<2x8xf32>, tensor<2x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  %k = stablehlo.constant dense<2> : tensor<i32>
  %1:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
    : (tensor<2x8xf32>, tensor<i32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
  %window = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  %one = stablehlo.constant dense<1> : tensor<2xi32>
  %none = stablehlo.constant dense<0> : tensor<2x2xi32>
  %2 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %a, %window, %window, %one, %one, %none)
    {called_computations = [@sum]} : (tensor<2x8xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>,
    tensor<2xi32>, tensor<2x2xi32>) -> tensor<2x4xf32>
  return %0#0, %0#1, %1#0, %2 : tensor<2x3xf32>, tensor<2x3xi32>, tensor<2x2xf32>, tensor<2x4xf32>
}

func.func private @greater(%x: tensor<f32>, %y: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}

func.func private @sum(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.add %x, %y : tensor<f32>
  return %0 : tensor<f32>
}
