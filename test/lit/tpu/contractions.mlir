// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='mxu-contractions{precision=highest}' | FileCheck %s --check-prefix=HIGHEST

// A plain product needs reshapes only; f32 goes through in one pass, in which the unit takes it as bf16.
// CHECK-LABEL: func.func @plain
// CHECK-SAME: (%[[X:.*]]: tensor<5x6xf32>, %[[Y:.*]]: tensor<6x7xf32>)
// CHECK-DAG: %[[L:.*]] = stablehlo.reshape %[[X]] : (tensor<5x6xf32>) -> tensor<1x5x6xf32>
// CHECK-DAG: %[[R:.*]] = stablehlo.reshape %[[Y]] : (tensor<6x7xf32>) -> tensor<1x6x7xf32>
// CHECK-NOT: stablehlo.convert
// CHECK: "mxu.contract"(%[[L]], %[[R]]) {lhs_t = false, passes = 1 : i64, rhs_t = false}
// CHECK-NOT: stablehlo.transpose
// CHECK-NOT: stablehlo.dot_general
// HIGHEST-LABEL: func.func @plain
// HIGHEST: "mxu.contract"{{.*}}passes = 6 : i64{{.*}}tensor<1x5x6xf32>
func.func @plain(%x: tensor<5x6xf32>, %y: tensor<6x7xf32>) -> tensor<5x7xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<5x6xf32>, tensor<6x7xf32>) -> tensor<5x7xf32>
  return %r : tensor<5x7xf32>
}

// Operands that come turned are said to be turned, and not transposed.
// CHECK-LABEL: func.func @turned
// CHECK-NOT: stablehlo.transpose
// CHECK: "mxu.contract"{{.*}}lhs_t = true{{.*}}rhs_t = true
func.func @turned(%x: tensor<6x5xbf16>, %y: tensor<7x6xbf16>) -> tensor<5x7xbf16> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [0] x [1] : (tensor<6x5xbf16>, tensor<7x6xbf16>) -> tensor<5x7xbf16>
  return %r : tensor<5x7xbf16>
}

// A batch dimension in the middle has to move.
// CHECK-LABEL: func.func @batch_in_the_middle
// CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0, 2]
// CHECK: "mxu.contract"{{.*}} : (tensor<3x5x6xbf16>, tensor<3x6x7xbf16>) -> tensor<3x5x7xbf16>
func.func @batch_in_the_middle(%x: tensor<5x3x6xbf16>, %y: tensor<3x6x7xbf16>) -> tensor<3x5x7xbf16> {
  %r = stablehlo.dot_general %x, %y, batching_dims = [1] x [0], contracting_dims = [2] x [1] : (tensor<5x3x6xbf16>, tensor<3x6x7xbf16>) -> tensor<3x5x7xbf16>
  return %r : tensor<3x5x7xbf16>
}

// Rows of several dimensions are one where whole tiles follow each other; else the weights are shared by a batch.
// CHECK-LABEL: func.func @rows_run_on
// CHECK: "mxu.contract"{{.*}} : (tensor<1x48x6xf32>, tensor<1x6x7xf32>) -> tensor<1x48x7xf32>
func.func @rows_run_on(%x: tensor<3x16x6xf32>, %y: tensor<6x7xf32>) -> tensor<3x16x7xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<3x16x6xf32>, tensor<6x7xf32>) -> tensor<3x16x7xf32>
  return %r : tensor<3x16x7xf32>
}

// CHECK-LABEL: func.func @weights_are_shared
// CHECK: "mxu.contract"{{.*}} : (tensor<3x15x6xf32>, tensor<1x6x7xf32>) -> tensor<3x15x7xf32>
func.func @weights_are_shared(%x: tensor<3x15x6xf32>, %y: tensor<6x7xf32>) -> tensor<3x15x7xf32> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [2] x [0] : (tensor<3x15x6xf32>, tensor<6x7xf32>) -> tensor<3x15x7xf32>
  return %r : tensor<3x15x7xf32>
}

// A matrix unit has no f64: the product stays for the host.
// CHECK-LABEL: func.func @no_mapping
// CHECK: stablehlo.dot_general
func.func @no_mapping(%x: tensor<5x6xf64>, %y: tensor<6x7xf64>) -> tensor<5x7xf64> {
  %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<5x6xf64>, tensor<6x7xf64>) -> tensor<5x7xf64>
  return %r : tensor<5x7xf64>
}
