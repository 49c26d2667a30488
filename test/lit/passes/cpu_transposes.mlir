// RUN: stablehlo-opt %s --pass-pipeline='builtin.module(cpu-transposes{features=+avx2})' | FileCheck %s

#in = affine_map<(d0, d1) -> (d1, d0)>
#out = affine_map<(d0, d1) -> (d0, d1)>

// Panels of 64 floats, blocks of 8 x 8 in three rounds of shuffles; the last panel and the last blocks overlap others.
// CHECK-LABEL: func.func @transpose
// CHECK: scf.for %{{.*}} = %{{.*}} to %c2
// CHECK: arith.minui %{{.*}}, %c36
// CHECK: scf.for %{{.*}} to %c8
// CHECK: scf.for %{{.*}} to %c64{{.*}} step %c8
// CHECK-COUNT-8: llvm.load {{.*}} vector<8xf32>
// CHECK-COUNT-24: vector.shuffle
// CHECK-COUNT-8: llvm.store
// CHECK-NOT: linalg
// CHECK: kernel.parallel
// CHECK: return
func.func @transpose(%x: memref<100x64xf32>, %y: memref<64x100xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<100x64xf32>) outs(%y : memref<64x100xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}

// Results of more than the last cache go past it, where they are aligned.
// CHECK-LABEL: func.func @large
// CHECK: scf.if
// CHECK: llvm.store {{.*}} {alignment = 32 : i64, nontemporal}
// CHECK: sfence
// CHECK: } else {
// CHECK: llvm.store {{.*}} {alignment = 4 : i64}
// CHECK: return
func.func @large(%x: memref<4096x2048xf32>, %y: memref<2048x4096xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<4096x2048xf32>) outs(%y : memref<2048x4096xf32>) {
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

// Three columns are no block: elements one by one.
// CHECK-LABEL: func.func @narrow
// CHECK: memref.load
// CHECK-NOT: llvm.load
// CHECK: return
func.func @narrow(%x: memref<3x4096xf32>, %y: memref<4096x3xf32>) {
  linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel"]}
      ins(%x : memref<3x4096xf32>) outs(%y : memref<4096x3xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  }
  return
}
