// RUN: not shlo run %s 2>&1 | FileCheck %s

// CHECK: error: {{.*}}no_result.mlir:{{[0-9]+}}:3: check.expect_serialized_eq is not supported: it has no result

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  "check.expect_serialized_eq"(%x) {probe_id = "x"} : (tensor<2xf32>) -> ()
  return %x : tensor<2xf32>
}
