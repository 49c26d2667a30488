// RUN: stablehlo-opt %s --pass-pipeline='hlo-quantized' --split-input-file | FileCheck %s

// Ops on quantized tensors are done in the expressed type; arguments and results are tensors of the storage type.
// CHECK-LABEL: func.func @add
// CHECK-SAME: (%[[X:.*]]: tensor<4xi8>, %[[Y:.*]]: tensor<4xi8>) -> tensor<4xi8>
// CHECK: %[[WIDE:.*]] = stablehlo.convert %[[X]] : (tensor<4xi8>) -> tensor<4xi32>
// CHECK: %[[ZERO:.*]] = stablehlo.subtract %[[WIDE]]
// CHECK: stablehlo.convert %[[ZERO]] : (tensor<4xi32>) -> tensor<4xf32>
// CHECK: %[[SUM:.*]] = stablehlo.add {{.*}} : tensor<4xf32>
// CHECK: stablehlo.divide %[[SUM]]
// CHECK: stablehlo.clamp
// CHECK: %[[ROUNDED:.*]] = stablehlo.round_nearest_even
// CHECK: %[[STORED:.*]] = stablehlo.convert %[[ROUNDED]] : (tensor<4xf32>) -> tensor<4xi8>
// CHECK: return %[[STORED]]
// CHECK-NOT: !quant
func.func @add(%x: tensor<4x!quant.uniform<i8:f32, 0.5:3>>, %y: tensor<4x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x!quant.uniform<i8:f32, 0.5:3>> {
  %0 = stablehlo.add %x, %y : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
  return %0 : tensor<4x!quant.uniform<i8:f32, 0.5:3>>
}

// -----

// What only moves elements moves what is stored.
// CHECK-LABEL: func.func @transpose
// CHECK-NEXT: stablehlo.transpose {{.*}} : (tensor<2x3xui8>) -> tensor<3x2xui8>
// CHECK-NEXT: return
func.func @transpose(%x: tensor<2x3x!quant.uniform<u8:f32:1, {0.5, 1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<u8:f32:0, {0.5, 1.0, 2.0}>> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3x!quant.uniform<u8:f32:1, {0.5, 1.0, 2.0}>>) -> tensor<3x2x!quant.uniform<u8:f32:0, {0.5, 1.0, 2.0}>>
  return %0 : tensor<3x2x!quant.uniform<u8:f32:0, {0.5, 1.0, 2.0}>>
}

// -----

// No zero point, nothing to subtract; a scale for each slice is broadcast along its axis.
// CHECK-LABEL: func.func @dequantize
// CHECK-NOT: stablehlo.subtract
// CHECK: %[[SCALES:.*]] = stablehlo.constant dense<[5.000000e-01, 1.000000e+00, 2.000000e+00]> : tensor<3xf32>
// CHECK: stablehlo.broadcast_in_dim %[[SCALES]], dims = [1]
func.func @dequantize(%x: tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 1.0, 2.0}>>) -> tensor<2x3xf32> {
  %0 = stablehlo.uniform_dequantize %x : (tensor<2x3x!quant.uniform<i8:f32:1, {0.5, 1.0, 2.0}>>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
