// RUN: stablehlo-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: stablehlo-opt %s --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LOCATIONS
// RUN: stablehlo-opt %s --mlir-elide-elementsattrs-if-larger=4 | FileCheck %s --check-prefix=ELIDED
// RUN: stablehlo-opt %s --emit-bytecode -o %t.mlirbc && stablehlo-opt %t.mlirbc | FileCheck %s

// CHECK: stablehlo.constant dense<[1.000000e+00, 2.000000e+00, 3.000000e+00, 4.000000e+00, 5.000000e+00]>
// GENERIC: "stablehlo.constant"() <{value = dense
// LOCATIONS: stablehlo.constant {{.*}} loc("jit(f)/constant"("/models/net.py":12:4))
// ELIDED: stablehlo.constant dense_resource<__elided__>
func.func @f() -> tensor<5xf32> {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32> loc("jit(f)/constant"("/models/net.py":12:4))
  return %0 : tensor<5xf32>
}
