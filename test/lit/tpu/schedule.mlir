// RUN: stablehlo-opt %s --pipeline=tpu --stop-after=mxu | stablehlo-opt --pass-pipeline='mxu-schedule' | FileCheck %s

// The second layer's weights are on their way while the first layer runs; those of the first are waited for at once.
// CHECK-LABEL: func.func @two_layers
// CHECK: %[[A:.*]] = "mxu.prefetch_start"(%{{.*}}) {offset = {{.*}}, shared = false, space = "vmem"}
// CHECK: %[[B:.*]] = "mxu.prefetch_start"
// CHECK: %[[W:.*]] = "mxu.prefetch_wait"(%[[A]])
// CHECK: "mxu.kernel"(%{{.*}}, %[[W]])
// CHECK: %[[V:.*]] = "mxu.prefetch_wait"(%[[B]])
// CHECK: "mxu.kernel"(%{{.*}}, %[[V]])
func.func @two_layers(%x: tensor<512x1024xbf16>, %w: tensor<1024x1024xbf16>, %v: tensor<1024x1024xbf16>) -> tensor<512x1024xbf16> {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<512x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<512x1024xbf16>
  %t = stablehlo.tanh %h : tensor<512x1024xbf16>
  %r = stablehlo.dot_general %t, %v, contracting_dims = [1] x [0] : (tensor<512x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<512x1024xbf16>
  return %r : tensor<512x1024xbf16>
}
