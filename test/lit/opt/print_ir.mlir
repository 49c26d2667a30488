// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pass-pipeline='test-tag,cse,symbol-dce' --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s --check-prefix=AFTER-ALL
// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pass-pipeline='test-tag,cse,symbol-dce' --mlir-print-ir-before-all -o %t 2>&1 | FileCheck %s --check-prefix=BEFORE-ALL
// RUN: stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --pass-pipeline='test-tag,cse,symbol-dce' --mlir-print-ir-before=cse --mlir-print-ir-after=cse,test-tag -o %t 2>&1 | FileCheck %s --check-prefix=CHOSEN

// AFTER-ALL: // -----// IR Dump After test-tag //----- //
// AFTER-ALL: test.tag
// AFTER-ALL: // -----// IR Dump After cse //----- //
// AFTER-ALL: // -----// IR Dump After symbol-dce //----- //
// AFTER-ALL-NOT: IR Dump

// BEFORE-ALL: // -----// IR Dump Before test-tag //----- //
// BEFORE-ALL-NOT: test.tag
// BEFORE-ALL: // -----// IR Dump Before cse //----- //
// BEFORE-ALL: // -----// IR Dump Before symbol-dce //----- //
// BEFORE-ALL-NOT: IR Dump

// CHOSEN-NOT: IR Dump Before test-tag
// CHOSEN: // -----// IR Dump After test-tag //----- //
// CHOSEN: // -----// IR Dump Before cse //----- //
// CHOSEN: // -----// IR Dump After cse //----- //
// CHOSEN-NOT: IR Dump
func.func @f() { return }
