// RUN: stablehlo-opt %s --pass-pipeline='mxu-split-cores{chip=v5p}' | FileCheck %s
// RUN: stablehlo-opt %s --pass-pipeline='mxu-split-cores{chip=v5e}' | FileCheck %s --check-prefix=ONE

// Two layers: rows of the first are rows of the second, and nothing goes from core to core.
// CHECK-LABEL: func.func @layers
// CHECK: "mxu.contract"{{.*}}split = "m"
// CHECK: "mxu.contract"{{.*}}split = "m"
// ONE-LABEL: func.func @layers
// ONE-NOT: split
func.func @layers(%x: tensor<1x2048x1024xbf16>, %w: tensor<1x1024x1024xbf16>, %v: tensor<1x1024x1024xbf16>) -> tensor<1x2048x1024xbf16> {
  %h = "mxu.contract"(%x, %w) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x2048x1024xbf16>, tensor<1x1024x1024xbf16>) -> tensor<1x2048x1024xbf16>
  %r = "mxu.contract"(%h, %v) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x2048x1024xbf16>, tensor<1x1024x1024xbf16>) -> tensor<1x2048x1024xbf16>
  return %r : tensor<1x2048x1024xbf16>
}

// Weights that are made by rows would be needed whole; those of a batch belong to it.
// CHECK-LABEL: func.func @batch
// CHECK: "mxu.contract"{{.*}}split = "b"
// CHECK: "mxu.contract"{{.*}}split = "b"
func.func @batch(%x: tensor<4x512x512xbf16>, %w: tensor<4x512x512xbf16>, %v: tensor<4x512x512xbf16>) -> tensor<4x512x512xbf16> {
  %h = "mxu.contract"(%x, %w) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<4x512x512xbf16>, tensor<4x512x512xbf16>) -> tensor<4x512x512xbf16>
  %r = "mxu.contract"(%v, %h) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<4x512x512xbf16>, tensor<4x512x512xbf16>) -> tensor<4x512x512xbf16>
  return %r : tensor<4x512x512xbf16>
}

// What is small and then needed whole is made by both.
// CHECK-LABEL: func.func @small_and_needed_whole
// CHECK: "mxu.contract"{{.*}}split = "whole"
// CHECK: "mxu.contract"{{.*}}split = "m"
func.func @small_and_needed_whole(%a: tensor<1x128x128xbf16>, %b: tensor<1x128x128xbf16>, %x: tensor<1x8192x128xbf16>) -> tensor<1x8192x128xbf16> {
  %w = "mxu.contract"(%a, %b) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x128x128xbf16>, tensor<1x128x128xbf16>) -> tensor<1x128x128xbf16>
  %r = "mxu.contract"(%x, %w) {lhs_t = false, rhs_t = false, passes = 1 : i64} : (tensor<1x8192x128xbf16>, tensor<1x128x128xbf16>) -> tensor<1x8192x128xbf16>
  return %r : tensor<1x8192x128xbf16>
}
