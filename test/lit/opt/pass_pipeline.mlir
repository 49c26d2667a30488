// Python and C++ passes in one pipeline, nested and with options.
// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pass-pipeline='builtin.module(test-tag{value=3 scale=0.5 loud},func.func(cse,test-tag{key="in function"}),canonicalize{top-down=false})' | FileCheck %s
// The outer anchor may be left out, and standard input read.
// RUN: cat %s | stablehlo-opt - --load-pass-plugin=%S/Inputs/passes.py --pass-pipeline='test-tag{value=3 scale=0.5 loud=true}, func.func(cse, test-tag{key="in function" value=1})' | FileCheck %s

// CHECK: module attributes {test.tag = "1.5!"}
// CHECK: func.func @twice(%[[X:.*]]: tensor<4xf32>) -> tensor<4xf32> attributes {"test.in function" = "1"}
// CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK-NEXT: stablehlo.multiply %[[SUM]], %[[SUM]]
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %x, %x : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
