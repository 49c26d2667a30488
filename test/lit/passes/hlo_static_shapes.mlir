// RUN: stablehlo-opt %s --pass-pipeline='hlo-static-shapes,trivial-dce' --split-input-file | FileCheck %s

// Floats too compute shapes: ceil(5 / 2).
// CHECK-LABEL: func.func @ceil
// CHECK-NEXT: stablehlo.iota dim = 0 : tensor<3xf32>
// CHECK-NEXT: return
func.func @ceil(%x: tensor<5xf32>) -> tensor<?xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<5xf32>) -> tensor<i32>
  %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f64>
  %two = stablehlo.constant dense<2.0> : tensor<f64>
  %half = stablehlo.divide %f, %two : tensor<f64>
  %up = stablehlo.ceil %half : tensor<f64>
  %m = stablehlo.convert %up : (tensor<f64>) -> tensor<i32>
  %s = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
  %r = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

// A dimension that is set to less is a slice.
// CHECK-LABEL: func.func @set_dimension_size
// CHECK: stablehlo.slice %{{.*}} [0:2, 0:2] : (tensor<2x5xf32>) -> tensor<2x2xf32>
// CHECK: return %{{.*}} : tensor<2x2xf32>
func.func @set_dimension_size(%x: tensor<2x5xf32>) -> tensor<2x?xf32> {
  %n = stablehlo.constant dense<2> : tensor<i32>
  %r = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<2x5xf32>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 5>>
  %s = stablehlo.convert %r : (tensor<2x?xf32, #stablehlo.bounds<?, 5>>) -> tensor<2x?xf32>
  return %s : tensor<2x?xf32>
}

// -----

// An assertion that holds is gone.
// CHECK-LABEL: func.func @assertion
// CHECK-NOT: shape_assertion
func.func @assertion(%x: tensor<5xf32>) -> tensor<5xf32> {
  %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<5xf32>) -> tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %ok = stablehlo.compare EQ, %n, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "{0} rows", has_side_effect = true} : (tensor<i1>, tensor<i32>) -> ()
  return %x : tensor<5xf32>
}
