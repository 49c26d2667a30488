// Parts are programs of their own; a bad one does not stop the others, and its error has the line of the whole file.
// RUN: not stablehlo-opt %s --split-input-file 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t.err

// CHECK: func.func @same
func.func @same() { return }

// -----

// ERROR: split.mlir:[[# @LINE + 3]]:8: error: custom op 'stablehlo.addd' is unknown
// ERROR: hint: did you mean stablehlo.add
func.func @bad(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.addd %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// CHECK: // -----
// CHECK: func.func @same
func.func @same() { return }
