// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels' --split-input-file | FileCheck %s --check-prefixes=CHECK,FLAT
// RUN: stablehlo-opt %s --pass-pipeline='hlo-form-kernels{rows=true}' --split-input-file | FileCheck %s --check-prefixes=CHECK,ROWS

// Elementwise ops of one shape are one kernel; the splat is repeated inside it.
// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: tensor<4x5xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK-NEXT: %[[R:.*]] = call @[[K:elementwise_tanh_[0-9]+]](%{{.*}}, %{{.*}})
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @[[K]]({{.*}}) -> tensor<4x5xf32> attributes {kernel = "elementwise"}
// CHECK-DAG: stablehlo.constant dense<2.000000e+00>
// CHECK-DAG: stablehlo.broadcast_in_dim {{.*}} dims = [1]
// CHECK: stablehlo.tanh
func.func @main(%x: tensor<4x5xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<4x5xf32>
  %wide = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<5xf32>) -> tensor<4x5xf32>
  %0 = stablehlo.multiply %x, %two : tensor<4x5xf32>
  %1 = stablehlo.add %0, %wide : tensor<4x5xf32>
  %2 = stablehlo.tanh %1 : tensor<4x5xf32>
  return %2 : tensor<4x5xf32>
}

// -----

// A path that leaves the group and comes back keeps the two sides apart.
// CHECK-LABEL: func.func @main
// CHECK: call @elementwise_{{.*}}
// CHECK: call @reverse_{{.*}}
// CHECK: call @elementwise_{{.*}}
// CHECK: return
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x : tensor<4xf32>
  %1 = stablehlo.reverse %0, dims = [0] : tensor<4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// Equal kernels are one function.
// CHECK-LABEL: func.func @main
// CHECK: call @[[K:sort_[0-9]+]](%arg0)
// CHECK: call @[[K]](%arg1)
// CHECK-NOT: func.func private @sort_{{.*}}sort_
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %lt = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.sort"(%y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %lt = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %lt : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// A row program: the maximum, what it is subtracted from, and all between are one kernel when rows are asked for.
// CHECK-LABEL: func.func @main
// FLAT: call @reduce_
// FLAT: call @elementwise_
// ROWS-NEXT: %[[R:.*]] = call @rows_subtract_{{[0-9]+}}(%arg0)
// ROWS-NEXT: return %[[R]]
// ROWS: kernel = "rows", kernel.rows = 1
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<8x1xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x16xf32>
  %3 = stablehlo.subtract %x, %2 : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// -----

// The maximum of a row is not at hand in a column: read along the other dimension, the two stay apart.
// CHECK-LABEL: func.func @main
// CHECK: %[[M:.*]] = call @{{reduce|rows_reduce}}_{{[0-9]+}}(%arg0)
// CHECK: call @elementwise_subtract_{{[0-9]+}}
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.subtract %x, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// An if is a case: one kind of branch for the Program. What updates an operand says so.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.case
// CHECK: func.call @dynamic_update_slice_
// CHECK-NOT: stablehlo.if
// CHECK: func.func private @dynamic_update_slice_{{.*}}kernel.inplace = array<i64: 0, 0>
func.func @main(%p: tensor<i1>, %x: tensor<8xf32>, %u: tensor<2xf32>, %i: tensor<i32>) -> tensor<8xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dynamic_update_slice %x, %u, %i : (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %x : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
