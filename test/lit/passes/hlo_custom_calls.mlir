// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(hlo-custom-calls,cse)' | FileCheck %s
// RUN: stablehlo-opt %s --pipeline=cpu --stop-after=linalg | FileCheck %s --check-prefix=LINALG

// What has no effect may be dropped; an assertion stays.
// CHECK-LABEL: func.func @main
// CHECK-NEXT: stablehlo.custom_call @check.expect_eq(%arg0, %arg0) {has_side_effect = true}
// CHECK-NEXT: %[[FACTOR:.*]]:2 = stablehlo.custom_call @lapack_spotrf_ffi(%arg0)
// CHECK-SAME: uplo = 76
// CHECK-SAME: -> (tensor<2x2xf32>, tensor<i32>)
// CHECK-NEXT: return %[[FACTOR]]#0

// In linalg a custom call is a call of a declared function that keeps what the call says.
// LINALG: %[[FACTOR:.*]]:2 = call @custom_call.lapack_spotrf_ffi(%arg0)
// LINALG-SAME: uplo = 76
// LINALG: func.func private @custom_call.lapack_spotrf_ffi(tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  stablehlo.custom_call @check.expect_eq(%x, %x) : (tensor<2x2xf32>, tensor<2x2xf32>) -> ()
  %unused:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {api_version = 4 : i32, backend_config = {uplo = 85 : ui8}}
    : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  %0 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {api_version = 4 : i32, backend_config = {uplo = 76 : ui8}}
    : (tensor<2x2xf32>) -> tuple<tensor<2x2xf32>, tensor<i32>>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<tensor<2x2xf32>, tensor<i32>>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}
