// What a user is told when a pass cannot do a program: the place, the op, the pass, what to try.
// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-refuse=how=raise 2>&1 | FileCheck %s --check-prefix=RAISED
// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-refuse='op=stablehlo.multiply' 2>&1 | FileCheck %s --check-prefix=FRAMES
// RUN: not stablehlo-opt %s --one-shot-bufferize 2>&1 | FileCheck %s --check-prefix=NATIVE
// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-break 2>&1 | FileCheck %s --check-prefix=BROKEN
// RUN: not stablehlo-opt %s --load-pass-plugin=%S/Inputs/passes.py --test-refuse=how=crash 2>&1 | FileCheck %s --check-prefix=CRASH

// RAISED: errors.mlir:[[# @LINE + 20]]:8: error: stablehlo.subtract is not supported: the test wants it so
// RAISED-NEXT: %0 = stablehlo.subtract
// RAISED-NEXT: {{^ +\^}}
// RAISED-NEXT: in pass test-refuse
// RAISED-NEXT: hint: use another op

// FRAMES: /models/net.py:12:4: error: stablehlo.multiply is refused [jit(f)/mul]
// FRAMES-NEXT: in pass test-refuse

// NATIVE: errors.mlir:[[# @LINE + 11]]:8: error: op was not bufferized
// NATIVE: note: see current operation: {{.*}}stablehlo.subtract
// NATIVE: in pass one-shot-bufferize

// BROKEN: error: 'func.func' op entry block must have 0 arguments to match function signature
// BROKEN: in pass test-break

// CRASH-NOT: Traceback
// CRASH: errors.mlir: error: internal error in pass test-refuse: KeyError: 'a mistake in a pass'
// CRASH-NOT: Traceback
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.subtract %x, %x : tensor<4xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<4xf32> loc("jit(f)/mul"(callsite("f"("/models/net.py":12:4 to :9) at "<module>"("/models/run.py":3:1))))
  return %1 : tensor<4xf32>
}
