// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-split-reductions)' | FileCheck %s

// Rows first, from what changes nothing; then their sums, from where the sum starts.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<512x1024xf32>, %[[INIT:.*]]: tensor<f32>)
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<-0.000000e+00>
// CHECK: %[[ROWS:.*]] = stablehlo.reduce(%[[X]] init: %[[ZERO]]) applies stablehlo.add across dimensions = [1] : {{.*}} -> tensor<512xf32>
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[ROWS]] init: %[[INIT]]) applies stablehlo.add across dimensions = [0] : {{.*}} -> tensor<f32>
// CHECK: return %[[SUM]]
func.func @rows(%x: tensor<512x1024xf32>, %init: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// Rows of three elements are none: 128 that are longer take their place.
// CHECK-LABEL: func.func @short_rows
// CHECK: stablehlo.reshape %{{.*}} : (tensor<1048576x3xi32>) -> tensor<128x24576xi32>
// CHECK: stablehlo.constant dense<-2147483648>
// CHECK: stablehlo.maximum across dimensions = [1]
// CHECK: stablehlo.maximum across dimensions = [0]
func.func @short_rows(%x: tensor<1048576x3xi32>, %init: tensor<i32>) -> tensor<i32> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<1048576x3xi32>, tensor<i32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// A sum of bf16 is rounded once, at its end.
// CHECK-LABEL: func.func @bf16
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0, 1]
func.func @bf16(%x: tensor<512x1024xbf16>, %init: tensor<bf16>) -> tensor<bf16> {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<512x1024xbf16>, tensor<bf16>) -> tensor<bf16>
  return %0 : tensor<bf16>
}

// So few columns that threads cannot share them.
// CHECK-LABEL: func.func @columns
// CHECK: stablehlo.reduce{{.*}} across dimensions = [1, 2] : {{.*}} -> tensor<32x64xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0] : {{.*}} -> tensor<64xf32>
// CHECK: stablehlo.reshape {{.*}} -> tensor<64x1000x9xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [1] : {{.*}} -> tensor<64x9xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0] : {{.*}} -> tensor<9xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0] : {{.*}} -> tensor<1024xf32>
func.func @columns(%x: tensor<32x28x28x64xf32>, %y: tensor<64000x9xf32>, %z: tensor<640x1024xf32>, %init: tensor<f32>) -> (tensor<64xf32>, tensor<9xf32>, tensor<1024xf32>) {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<32x28x28x64xf32>, tensor<f32>) -> tensor<64xf32>
  %1 = stablehlo.reduce(%y init: %init) applies stablehlo.add across dimensions = [0] : (tensor<64000x9xf32>, tensor<f32>) -> tensor<9xf32>
  %2 = stablehlo.reduce(%z init: %init) applies stablehlo.add across dimensions = [0] : (tensor<640x1024xf32>, tensor<f32>) -> tensor<1024xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<9xf32>, tensor<1024xf32>
}

// Three blocks of columns are no equal shares; a part has 64 rows where it can.
// CHECK-LABEL: func.func @some_columns
// CHECK: stablehlo.reshape {{.*}} -> tensor<16x64x768xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0] : {{.*}} -> tensor<768xf32>
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0] : {{.*}} -> tensor<769xf32>
func.func @some_columns(%x: tensor<1024x768xf32>, %y: tensor<1024x769xf32>, %init: tensor<f32>) -> (tensor<768xf32>, tensor<769xf32>) {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0] : (tensor<1024x768xf32>, tensor<f32>) -> tensor<768xf32>
  %1 = stablehlo.reduce(%y init: %init) applies stablehlo.add across dimensions = [0] : (tensor<1024x769xf32>, tensor<f32>) -> tensor<769xf32>
  return %0, %1 : tensor<768xf32>, tensor<769xf32>
}

// Few elements, an odd number of them, and what keeps a dimension.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0, 1]
// CHECK: stablehlo.reduce{{.*}} across dimensions = [0]
// CHECK: stablehlo.reduce{{.*}} across dimensions = [1]
func.func @others(%x: tensor<32x1024xf32>, %y: tensor<1048577xf32>, %z: tensor<512x1024xf32>, %init: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<512xf32>) {
  %0 = stablehlo.reduce(%x init: %init) applies stablehlo.add across dimensions = [0, 1] : (tensor<32x1024xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.reduce(%y init: %init) applies stablehlo.add across dimensions = [0] : (tensor<1048577xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%z init: %init) applies stablehlo.add across dimensions = [1] : (tensor<512x1024xf32>, tensor<f32>) -> tensor<512xf32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<512xf32>
}
