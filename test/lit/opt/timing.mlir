// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pipeline=%S/Inputs/stages.pipeline --stop-after=second --mlir-timing -o %t 2>&1 | FileCheck %s

// CHECK: Pass execution timing: {{[0-9.]+}} ms in 4 passes
// CHECK: ms share name
// CHECK-NEXT: {{[0-9.]+ +[0-9.]+%}} first
// CHECK-NEXT: {{[0-9.]+ +[0-9.]+%}} test-tag
// CHECK-NEXT: {{[0-9.]+ +[0-9.]+%}} second
// CHECK-NEXT: test-tag
// CHECK-NEXT: test-tag
// CHECK-NEXT: cse
func.func @f() { return }
