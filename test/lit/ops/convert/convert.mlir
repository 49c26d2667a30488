// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// What lies outside of the range never reaches the machine's conversion.
// CHECK-LABEL: func.func @float_to_integer
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.fptosi %[[SAFE]] : f32 to i8
func.func @float_to_integer(%x: tensor<4xf32>) -> tensor<4xi8> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi8>
  return %0 : tensor<4xi8>
}

// CHECK-LABEL: func.func @unsigned_to_float
// CHECK: arith.uitofp
// CHECK-NOT: arith.sitofp
func.func @unsigned_to_float(%x: tensor<4xui32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xui32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @float_to_bool
// CHECK: arith.cmpf une
// CHECK: linalg.yield %{{.*}} : i8
func.func @float_to_bool(%x: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// f64 goes to f16 over an f32 that keeps a mark of what was cut off: the last bit.
// CHECK-LABEL: func.func @one_rounding
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.ori
// CHECK: %[[ODD:.*]] = arith.select
// CHECK: arith.truncf %[[ODD]] : f32 to f16
func.func @one_rounding(%x: tensor<4xf64>) -> tensor<4xf16> {
  %0 = stablehlo.convert %x : (tensor<4xf64>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// CHECK-LABEL: func.func @real_part
// CHECK: complex.re
// CHECK-NOT: complex.im
func.func @real_part(%x: tensor<4xcomplex<f32>>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The same bits: nothing is rounded.
// CHECK-LABEL: func.func @bitcast
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK-NOT: truncf
func.func @bitcast(%x: tensor<4xf32>) -> tensor<4xi32> {
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @bitcast_to_bytes
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK: arith.shrui
// CHECK: arith.trunci %{{.*}} : i32 to i8
func.func @bitcast_to_bytes(%x: tensor<4xf32>) -> tensor<4x4xi8> {
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4x4xi8>
  return %0 : tensor<4x4xi8>
}
