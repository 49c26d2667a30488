// The dialect that Python defines can be read back, printed and transformed.
// RUN: stablehlo-opt %s --pipeline=tpu | stablehlo-opt - --cse | FileCheck %s

// CHECK: func.func @main
// CHECK: "mxu.kernel"
// CHECK: "mxu.matmul"
func.func @main(%a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}
