// A pipeline file stops after any of its stages, and each stage can be written out.
// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pipeline=%S/Inputs/stages.pipeline --stop-after=first | FileCheck %s --check-prefix=FIRST
// RUN: rm -rf %t && stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pipeline=%S/Inputs/stages.pipeline --stop-after=second --dump-stages=%t -o %t.out
// RUN: FileCheck %s --check-prefix=FIRST --input-file=%t/01-first.mlir
// RUN: FileCheck %s --check-prefix=SECOND --input-file=%t/02-second.mlir
// RUN: FileCheck %s --check-prefix=SECOND --input-file=%t.out
// What a stage forbids is an error at the op, which says the stage and what to try.
// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pipeline=%S/Inputs/stages.pipeline 2>&1 | FileCheck %s --check-prefix=ILLEGAL

// FIRST: module attributes {test.first = "1"}
// FIRST-NOT: test.included
// SECOND: module attributes {test.first = "1", test.second = "16"}
// SECOND: test.included = "1!"
// SECOND: stablehlo.add
// SECOND-NOT: stablehlo.add

// ILLEGAL: stages.mlir:[[# @LINE + 5]]:8: error: stablehlo.add may not remain after stage third
// ILLEGAL-NEXT: %0 = stablehlo.add
// ILLEGAL-NEXT: {{^ +\^}}
// ILLEGAL-NEXT: hint: {{.*}}shlo explain stablehlo.add
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %x, %x : tensor<4xf32>
  %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
  return %2 : tensor<4xf32>
}
