// What cannot run at all is told before anything runs.
// RUN: not stablehlo-opt %s --pass-pipeline='canonicalise' 2>&1 | FileCheck %s --check-prefix=TYPO
// RUN: not stablehlo-opt %s --pass-pipeline='func.func(sparsifier)' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// RUN: not stablehlo-opt %s --pass-pipeline='func.func(cse' 2>&1 | FileCheck %s --check-prefix=BRACKET
// RUN: not stablehlo-opt %s --canonicalize=bottom-up=1 2>&1 | FileCheck %s --check-prefix=OPTION
// RUN: not stablehlo-opt %s --pipeline=cleanup --stop-after=cleanap 2>&1 | FileCheck %s --check-prefix=STAGE

// TYPO: stablehlo-opt: error: --pass-pipeline: there is no pass 'canonicalise'
// TYPO-NEXT: hint: did you mean 'canonicalize'?
// ANCHOR: pass sparsifier runs on builtin.module, not on func.func
// ANCHOR-NEXT: hint: write sparsifier
// BRACKET: this bracket is not closed
// BRACKET-NEXT: func.func(cse
// BRACKET-NEXT: {{^ +\^$}}
// OPTION: pass canonicalize cannot be made: no such option bottom-up
// OPTION-NEXT: hint: its options and their defaults are {{.*}}top-down=
// STAGE: pipeline cleanup has no stage 'cleanap'
// STAGE-NEXT: hint: did you mean 'cleanup'?
func.func @f() { return }
