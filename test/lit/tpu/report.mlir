// RUN: shlo report %s --chip=v4 --what-if | FileCheck %s
// RUN: shlo report %s --json -o %t.html --trace=%t.json | FileCheck %s --check-prefix=JSON
// RUN: FileCheck %s --check-prefix=PAGE --input-file=%t.html
// RUN: FileCheck %s --check-prefix=TRACE --input-file=%t.json

// CHECK: v4: 1 kernels
// CHECK: matmul.0{{ +}}1x64x128x256
// CHECK-NOT: on the host:
// CHECK: on v4-megacore:
// JSON: "model": "a model of a TPU: nothing here ran on one"
// JSON: "kernels"
// PAGE: <h2>Timeline</h2>
// PAGE: <h2>What if: other chips</h2>
// TRACE: "traceEvents"
func.func @main(%x: tensor<64x256xbf16>, %w: tensor<256x128xbf16>) -> tensor<64x128xbf16> {
  %d = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x256xbf16>, tensor<256x128xbf16>) -> tensor<64x128xbf16>
  %r = stablehlo.tanh %d : tensor<64x128xbf16>
  return %r : tensor<64x128xbf16>
}
