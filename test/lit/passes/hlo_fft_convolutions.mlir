// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-fft-convolutions)' --split-input-file | FileCheck %s

// The window is reversed, both are filled up to one length, spectra are multiplied; the sums are left for what is not finite.
// CHECK-LABEL: func.func @large
// CHECK-SAME: (%[[X:.*]]: tensor<1x1x300x300xf32>, %[[W:.*]]: tensor<1x1x300x300xf32>)
// CHECK-DAG: stablehlo.pad %[[X]]{{.*}} -> tensor<1x1x450x450xf32>
// CHECK-DAG: stablehlo.reverse %[[W]], dims = [2, 3]
// CHECK: stablehlo.fft {{.*}} type = RFFT
// CHECK: stablehlo.fft {{.*}} type = RFFT
// CHECK: %[[Y:.*]] = stablehlo.multiply {{.*}} tensor<1x1x1x450x226xcomplex<f32>>
// CHECK: stablehlo.fft {{.*}} type = IRFFT
// CHECK: %[[FAST:.*]] = stablehlo.slice {{.*}} [0:1, 0:1, 150:450, 150:450]
// CHECK: stablehlo.is_finite %[[FAST]]
// CHECK: %[[R:.*]] = "stablehlo.if"
// CHECK: stablehlo.return %[[FAST]]
// CHECK: stablehlo.convolution(%[[X]], %[[W]])
// CHECK: return %[[R]]
func.func @large(%x: tensor<1x1x300x300xf32>, %w: tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[149, 150], [149, 150]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x1x300x300xf32>, tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32>
  return %0 : tensor<1x1x300x300xf32>
}

// -----

// Precision HIGHEST asks for sums.
// CHECK-LABEL: func.func @highest
// CHECK-NOT: stablehlo.fft
func.func @highest(%x: tensor<1x1x300x300xf32>, %w: tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
    window = {pad = [[149, 150], [149, 150]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision HIGHEST>, #stablehlo<precision DEFAULT>]}
    : (tensor<1x1x300x300xf32>, tensor<1x1x300x300xf32>) -> tensor<1x1x300x300xf32>
  return %0 : tensor<1x1x300x300xf32>
}

// -----

// A small window, integers, sums over features: as they are.
// CHECK-LABEL: func.func @others
// CHECK-NOT: stablehlo.fft
func.func @others(%x: tensor<1x1x300x300xf32>, %w: tensor<1x1x5x5xf32>, %i: tensor<1x1x300x300xi32>, %j: tensor<1x1x300x300xi32>,
    %y: tensor<1x2x300x300xf32>, %v: tensor<1x2x300x300xf32>)
    -> (tensor<1x1x296x296xf32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x1x300x300xf32>, tensor<1x1x5x5xf32>) -> tensor<1x1x296x296xf32>
  %1 = stablehlo.convolution(%i, %j) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x1x300x300xi32>, tensor<1x1x300x300xi32>) -> tensor<1x1x1x1xi32>
  %2 = stablehlo.convolution(%y, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x2x300x300xf32>, tensor<1x2x300x300xf32>) -> tensor<1x1x1x1xf32>
  return %0, %1, %2 : tensor<1x1x296x296xf32>, tensor<1x1x1x1xi32>, tensor<1x1x1x1xf32>
}
