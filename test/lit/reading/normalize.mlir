// RUN: stablehlo-opt %s --pass-pipeline='hlo-normalize' | FileCheck %s

// CHECK-NOT: sdy.mesh
sdy.mesh @mesh = <["x"=2]>

// Calls and shardings are gone, what is computed twice is computed once.
// CHECK-LABEL: func.func public @main
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[TWICE:.*]] = stablehlo.add %[[X]], %[[X]]
// CHECK-NEXT: %[[PRODUCT:.*]] = stablehlo.multiply %[[TWICE]], %[[TWICE]]
// CHECK-NEXT: return %[[PRODUCT]]
// CHECK-NOT: func.func
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = sdy.reshard %x <@mesh, [{}]> : tensor<4xf32>
  %2 = call @twice(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.multiply %0, %2 : tensor<4xf32>
  return %3 : tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
