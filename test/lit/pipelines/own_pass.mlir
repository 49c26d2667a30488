// A user's pass of examples/, alone and in a user's pipeline.
// RUN: stablehlo-opt %s --load-pass-plugin=%S/../../../examples/python_pass.py --pass-pipeline=divide-to-multiply,canonicalize | FileCheck %s
// RUN: stablehlo-opt %S/../../../examples/transformer.mlir --load-pass-plugin=%S/../../../examples/python_pass.py --pipeline=%S/../../../examples/custom_pipeline.pipeline | FileCheck %s --check-prefix=PIPELINE

// PIPELINE-NOT: stablehlo.
// PIPELINE: linalg.

// CHECK-LABEL: func.func @powers_of_two
// CHECK-SAME: (%[[X:.*]]: tensor<3xf32>)
// CHECK-NEXT: %[[FACTOR:.*]] = stablehlo.constant dense<[1.250000e-01, -5.000000e-01, 2.000000e+00]>
// CHECK-NEXT: stablehlo.multiply %[[X]], %[[FACTOR]]
func.func @powers_of_two(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<[8.0, -2.0, 0.5]> : tensor<3xf32>
  %0 = stablehlo.divide %x, %c : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// 1/3 is not a float.
// CHECK-LABEL: func.func @three_stays
// CHECK: stablehlo.divide
func.func @three_stays(%x: tensor<3xf32>) -> tensor<3xf32> {
  %c = stablehlo.constant dense<[8.0, 3.0, 0.5]> : tensor<3xf32>
  %0 = stablehlo.divide %x, %c : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @integers_and_arguments_stay
// CHECK: stablehlo.divide
// CHECK: stablehlo.divide
func.func @integers_and_arguments_stay(%x: tensor<3xi32>, %y: tensor<f32>, %z: tensor<f32>) -> (tensor<3xi32>, tensor<f32>) {
  %c = stablehlo.constant dense<[8, -2, 4]> : tensor<3xi32>
  %0 = stablehlo.divide %x, %c : tensor<3xi32>
  %1 = stablehlo.divide %y, %z : tensor<f32>
  return %0, %1 : tensor<3xi32>, tensor<f32>
}
