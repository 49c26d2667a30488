// relu(x @ weight + bias) becomes one kernel of the matrix unit, the bias and relu in its vector unit.
// RUN: stablehlo-opt %S/../../../examples/dense.mlir --pipeline=tpu | FileCheck %s
// 150x200 by 200x140 on the simulated chip: f32 multiplied as bf16.
// RUN: shlo run %S/../../../examples/dense.mlir --target=tpu --seed=0 | FileCheck %s --check-prefix=VALUES

// CHECK-NOT: stablehlo.{{dot_general|add|maximum}}
// CHECK: mxu.kernel
// CHECK: mxu.matmul
// CHECK: mxu.vector{{.*}}function = "add"
// CHECK: mxu.vector{{.*}}function = "maximum"
// CHECK: mxu.unpad
// CHECK-NOT: stablehlo.{{dot_general|add|maximum}}

// VALUES: result 0: float32[150, 140] [
// VALUES: ran in {{.*}} ms on tpu
