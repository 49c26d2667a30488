// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-to-linalg)' | FileCheck %s

// One element repeated is a fill, not memory in the program.
// CHECK-LABEL: func.func @splat
// CHECK: linalg.fill
// CHECK-NOT: dense
// CHECK: return
func.func @splat() -> tensor<100xf32> {
  %0 = stablehlo.constant dense<1.0> : tensor<100xf32>
  return %0 : tensor<100xf32>
}

// CHECK-LABEL: func.func @elements
// CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
func.func @elements() -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0 : tensor<2xf32>
}

// bf16 and booleans in memory: bits, and one byte each.
// CHECK-LABEL: func.func @stored
// CHECK: arith.constant dense<[16256, -32768]> : tensor<2xi16>
// CHECK: arith.constant dense<[1, 0]> : tensor<2xi8>
func.func @stored() -> (tensor<2xbf16>, tensor<2xi1>) {
  %0 = stablehlo.constant dense<[1.0, -0.0]> : tensor<2xbf16>
  %1 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
  return %0, %1 : tensor<2xbf16>, tensor<2xi1>
}

// CHECK-LABEL: func.func @iota
// CHECK: linalg.index 1
// CHECK: arith.sitofp
func.func @iota() -> tensor<2x3xf32> {
  %0 = stablehlo.iota dim = 1 : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
