// RUN: stablehlo-opt --list-passes --load-pass-plugin=%S/Inputs/passes.py | FileCheck %s --check-prefix=ALL
// RUN: stablehlo-opt --list-passes=canonical | FileCheck %s --check-prefix=WORD
// RUN: stablehlo-opt --list-pipelines | FileCheck %s --check-prefix=PIPELINES

// ALL: passes in Python
// ALL: test-tag {{ *}}Give the op an attribute, which shows where and with which options the pass ran.
// ALL: passes in C++
// ALL: canonicalize {{ *}}fold ops
// ALL: one-shot-bufferize {{.*}}[builtin.module]
// WORD-NOT: symbol-dce
// WORD: canonicalize
// WORD-NEXT: cse-between-iterations=false
// WORD-NOT: symbol-dce
// PIPELINES: cleanup: fold, and merge equal ops
