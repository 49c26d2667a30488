// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(cpu-transposes)' | FileCheck %s

#in = affine_map<(d0, d1) -> (d1, d0)>
#out = affine_map<(d0, d1) -> (d0, d1)>

// 16 floats are a line of the result; 4 are left over.
// CHECK-LABEL: func.func @transpose
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %c96
// CHECK: scf.for
// CHECK: scf.for %{{.*}} to %c16
// CHECK: memref.store
// CHECK: scf.for %{{.*}} to %c4
// CHECK: memref.store
// CHECK-NOT: linalg
// CHECK: return
func.func @transpose(%x: memref<100x64xf32>, %y: memref<64x100xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x64xf32>) outs(%y : memref<64x100xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// CHECK-LABEL: func.func @small
// CHECK: linalg.generic
func.func @small(%x: memref<4x3xf32>, %y: memref<3x4xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4x3xf32>) outs(%y : memref<3x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}
