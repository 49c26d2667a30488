// The transformer block on the way to the CPU: no StableHLO after `linalg`, no tensors after `memref`, LLVM alone at the end.
// RUN: stablehlo-opt %S/../../../examples/transformer.mlir --pipeline=cpu --stop-after=linalg | FileCheck %s --check-prefix=LINALG
// RUN: stablehlo-opt %S/../../../examples/transformer.mlir --pipeline=cpu | FileCheck %s --check-prefix=LLVM

// LINALG-NOT: {{(stablehlo|chlo)\.}}
// LINALG: func.func public @main(%{{.*}}: tensor<32x64xf32>
// LINALG: linalg.
// LINALG-NOT: {{(stablehlo|chlo)\.}}

// LLVM-NOT: {{(linalg|scf|memref|tensor|arith)\.}}
// LLVM: llvm.func
// LLVM-NOT: {{(linalg|scf|memref|tensor|arith)\.}}
