// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// CHECK-LABEL: func.func @add
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel"]
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: linalg.yield %[[SUM]] : f32
func.func @add(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.add %x, %y : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// Small floats are added in f32 and rounded once.
// CHECK-LABEL: func.func @add_bf16
// CHECK: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK-NOT: arith.addf
// CHECK: %[[STORED:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK-NOT: arith.trunci
// CHECK: linalg.yield %[[STORED]]
func.func @add_bf16(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = stablehlo.add %x, %y : tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// The divisor is replaced before the division, so that nothing traps.
// CHECK-LABEL: func.func @divide_signed
// CHECK: %[[SAFE:.*]] = arith.select
// CHECK: arith.divsi %{{.*}}, %[[SAFE]] : i32
func.func @divide_signed(%x: tensor<4xi32>, %y: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.divide %x, %y : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @divide_unsigned
// CHECK-NOT: divsi
// CHECK: arith.divui
func.func @divide_unsigned(%x: tensor<4xui8>, %y: tensor<4xui8>) -> tensor<4xui8> {
  %0 = stablehlo.divide %x, %y : tensor<4xui8>
  return %0 : tensor<4xui8>
}

// A count that reaches the width gives zero.
// CHECK-LABEL: func.func @shift_left
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult
// CHECK: %[[SHIFTED:.*]] = arith.shli
// CHECK: arith.select %[[INSIDE]], %[[SHIFTED]]
func.func @shift_left(%x: tensor<4xi32>, %n: tensor<4xi32>) -> tensor<4xi32> {
  %0 = stablehlo.shift_left %x, %n : tensor<4xi32>
  return %0 : tensor<4xi32>
}

// CHECK-LABEL: func.func @less_unsigned
// CHECK: arith.cmpi ult
func.func @less_unsigned(%x: tensor<4xui32>, %y: tensor<4xui32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %x, %y, UNSIGNED : (tensor<4xui32>, tensor<4xui32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// NE holds on NaN.
// CHECK-LABEL: func.func @unequal
// CHECK: arith.cmpf une
func.func @unequal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare NE, %x, %y, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// The total order compares bits.
// CHECK-LABEL: func.func @total_order
// CHECK-NOT: arith.cmpf
// CHECK: arith.cmpi slt
func.func @total_order(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

// A predicate without dimensions is read for every element.
// CHECK-LABEL: func.func @select_scalar
// CHECK: arith.select
func.func @select_scalar(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.select %p, %x, %y : tensor<i1>, tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @clamp
// CHECK: %[[LOW:.*]] = arith.maximumf
// CHECK: arith.minimumf %[[LOW]]
func.func @clamp(%l: tensor<f32>, %x: tensor<4xf32>, %h: tensor<f32>) -> tensor<4xf32> {
  %0 = stablehlo.clamp %l, %x, %h : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
