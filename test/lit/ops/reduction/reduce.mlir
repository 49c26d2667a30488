// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// The loops follow the operand, so memory is read in order.
// CHECK-LABEL: func.func @sum_of_columns
// CHECK-SAME: (%[[X:.*]]: tensor<4x50xf32>, %[[INIT:.*]]: tensor<f32>)
// CHECK: %[[START:.*]] = tensor.extract %[[INIT]][]
// CHECK: linalg.fill ins(%[[START]] : f32)
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["reduction", "parallel"]
// CHECK-SAME: ins(%[[X]] : tensor<4x50xf32>)
// CHECK: ^bb0(%[[ELEMENT:.*]]: f32, %[[ACC:.*]]: f32):
// CHECK: arith.addf %[[ACC]], %[[ELEMENT]]
func.func @sum_of_columns(%x: tensor<4x50xf32>, %init: tensor<f32>) -> tensor<50xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    : (tensor<4x50xf32>, tensor<f32>) -> tensor<50xf32>
  return %0 : tensor<50xf32>
}

// Three columns beside each other are no vectors: each has its sum in a register.
// CHECK-LABEL: func.func @sum_of_short_columns
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
func.func @sum_of_short_columns(%x: tensor<20x3xf32>, %init: tensor<f32>) -> tensor<3xf32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    : (tensor<20x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// Two operands, one loop nest.
// CHECK-LABEL: func.func @two_operands
// CHECK: linalg.generic
// CHECK: linalg.yield %{{.*}}, %{{.*}} : f32, i32
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @two_operands(%x: tensor<4xf32>, %i: tensor<4xi32>, %a: tensor<f32>, %b: tensor<i32>)
    -> (tensor<f32>, tensor<i32>) {
  %0:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [0]
      : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)
    reducer(%p: tensor<f32>, %q: tensor<f32>) (%r: tensor<i32>, %s: tensor<i32>) {
      %max = stablehlo.maximum %p, %q : tensor<f32>
      %sum = stablehlo.add %r, %s : tensor<i32>
      stablehlo.return %max, %sum : tensor<f32>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<f32>, tensor<i32>
}

// CHECK-LABEL: func.func @bf16_is_accumulated_in_f32
// CHECK: linalg.generic
// CHECK-SAME: outs(%{{.*}} : tensor<f32>)
// CHECK: linalg.yield %{{.*}} : f32
// CHECK: linalg.generic
// CHECK: linalg.yield %{{.*}} : i16
func.func @bf16_is_accumulated_in_f32(%x: tensor<4xbf16>, %init: tensor<bf16>) -> tensor<bf16> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0]
    : (tensor<4xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}
