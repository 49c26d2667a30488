// One flag a pass, in order, with one dash or two; a pass for functions is put into them.
// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py -cse --test-tag='value=2 key=a' --test-tag=value=7 --stablehlo-legalize-deprecated-ops=fail-on-unused=false | FileCheck %s

// CHECK: module attributes {test.a = "2", test.tag = "7"}
// CHECK: stablehlo.dot_general
// CHECK-NOT: stablehlo.dot_general
func.func @dot(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<4x4xf32>
  return %2 : tensor<4x4xf32>
}
