// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(cpu-fold-loops)' --split-input-file | FileCheck %s

// Register tiles: equal values are made one, nothing is folded.
// CHECK-LABEL: func.func @tiles
// CHECK-COUNT-1: arith.constant 0
// CHECK-NOT: arith.constant 0
// CHECK: arith.addi
func.func @tiles(%out: memref<2xindex>, %i: index) attributes {kernel = "single", kernel.tiles, kernel.vectors} {
  %zero = arith.constant 0 : index
  %again = arith.constant 0 : index
  %sum = arith.addi %i, %zero : index
  memref.store %sum, %out[%again] : memref<2xindex>
  return
}

// -----

// CHECK-LABEL: func.func @loops
// CHECK-NOT: arith.addi
// CHECK: memref.store
func.func @loops(%out: memref<2xindex>, %i: index) attributes {kernel = "single"} {
  %zero = arith.constant 0 : index
  %again = arith.constant 0 : index
  %sum = arith.addi %i, %zero : index
  memref.store %sum, %out[%again] : memref<2xindex>
  return
}
